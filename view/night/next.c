/* SPDX-License-Identifier: MIT */
/* next.c - the commands to type next. */
#include "view/night/next.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "view/names.h"
#include "view/words.h"

enum { NAME = 64 };
#define PROGRAM "gpudispatch "

/* ---- The command of a finding ---- */

__attribute__((format(printf, 2, 3))) static void type(char command[GPV_FINDING_COMMAND],
                                                       const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(command, GPV_FINDING_COMMAND, format, list);
    va_end(list);
}

static const struct gpv_batch *batch_of(const struct gpv_night *n, const struct gpv_finding *f)
{
    uint32_t index = gpv_find_batch(n, f->batch);
    return index != GPV_NONE ? &n->batches.row[index] : NULL;
}

/* Whether `retry --failed` selects tasks that end so; LOST has an option of its own. */
static bool is_failed(uint32_t outcome)
{
    return outcome == GPV_ERROR || outcome == GPV_TIMEOUT || outcome == GPV_CRASHED ||
           outcome == GPV_NO_WORKER;
}

/* The tasks that the retry of a finding selects; 0: it has none. */
static uint64_t retries(const struct gpv_batch *b, uint32_t outcome)
{
    uint64_t sum = 0;
    if (outcome == GPV_LOST)
        return b->ended_by[GPV_LOST];
    for (uint32_t i = 0; is_failed(outcome) && i < GPV_OUTCOMES; i++)
        sum += is_failed(i) ? b->ended_by[i] : 0;
    return sum;
}

static void type_retry(char command[GPV_FINDING_COMMAND], const struct gpv_finding *f)
{
    type(command, PROGRAM "retry %" PRIu32 " --%s", f->batch,
         f->outcome == GPV_LOST ? "lost" : "failed");
}

/* The first task of the finding was not on a GPU, and printed nothing. */
static bool has_log(const struct gpv_night *n, const struct gpv_finding *f)
{
    return f->outcome != GPV_NO_WORKER && f->outcome != GPV_LOST &&
           (f->row >= n->attempts.n || n->attempts.row[f->row].number != 0);
}

/* A returned task is back at its place, and a cancelled one is as a person wants it. */
static void command_of_ends(const struct gpv_night *n, const struct gpv_batch *b,
                            struct gpv_finding *f)
{
    if (f->still == 0)
        return;
    if (f->outcome == GPV_SKIPPED)
        type(f->command, PROGRAM "show %" PRIu32 ".%" PRIu32, f->batch, f->still_first);
    else if (is_failed(f->outcome) && has_log(n, f))
        type(f->command, PROGRAM "log %" PRIu32 ".%" PRIu32, f->batch, f->still_first);
    else if (retries(b, f->outcome) > 0)
        type_retry(f->command, f);
}

/* A name that a shell takes as one plain word. */
static bool is_plain(const char *name)
{
    size_t plain = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:");
    return plain > 0 && plain < NAME && name[plain] == 0;
}

static void command_of_out(const struct gpv_night *n, struct gpv_finding *f)
{
    const char *name = gpv_gpu_name(n, f->gpu);
    if (!f->goes_on)
        return;
    if (n->outs.row[f->row].kind == GPV_OUT_DRAINED && is_plain(name))
        type(f->command, PROGRAM "undrain %s", name);
    else
        type(f->command, PROGRAM "gpus");
}

void gpv_finding_command(const struct gpv_night *n, struct gpv_finding *f)
{
    const struct gpv_batch *b = batch_of(n, f);
    if (n->no_queue)
        return;
    switch (f->kind) {
    case GPV_FINDING_BAD:
        if (b)
            command_of_ends(n, b, f);
        return;
    case GPV_FINDING_OUT:
        command_of_out(n, f);
        return;
    case GPV_FINDING_KEPT:
    case GPV_FINDING_LIMITED:
        if (b && b->first != 0)
            type(f->command, PROGRAM "explain %" PRIu32 ".%" PRIu32, f->batch, b->first);
        return;
    case GPV_FINDING_UNKNOWN:
        if (f->goes_on && !n->over)
            type(f->command, PROGRAM "agent start");
        return;
    default:
        return;
    }
}

/* ---- The list ---- */

static void add(struct gpv_next *l, enum gpv_step_kind kind, const struct gpv_finding *f,
                const char *command, uint64_t n)
{
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->step[i].command, command) != 0)
            continue;
        l->step[i].n += kind == GPV_STEP_GPU ? n : 0;
        return;
    }
    if (l->n == GPV_NEXT || (kind == GPV_STEP_READ && l->n >= GPV_NEXT_READS)) {
        l->more = true;
        return;
    }
    struct gpv_step *s = &l->step[l->n++];
    *s = (struct gpv_step){ .kind = kind, .finding = f, .n = n };
    (void)snprintf(s->command, sizeof(s->command), "%s", command);
}

static void add_retry(const struct gpv_night *n, const struct gpv_finding *f, struct gpv_next *l)
{
    const struct gpv_batch *b = batch_of(n, f);
    char command[GPV_FINDING_COMMAND];
    uint64_t tasks = b && f->still > 0 && !n->no_queue ? retries(b, f->outcome) : 0;
    if (tasks == 0)
        return;
    type_retry(command, f);
    add(l, GPV_STEP_RETRY, f, command, tasks);
}

/* What a finding adds to the part of the list that has a kind of steps. */
static void add_step(const struct gpv_night *n, const struct gpv_finding *f,
                     enum gpv_step_kind kind, struct gpv_next *l)
{
    static const enum gpv_step_kind kinds[] = { [GPV_FINDING_OUT] = GPV_STEP_GPU,
                                                [GPV_FINDING_KEPT] = GPV_STEP_EXPLAIN,
                                                [GPV_FINDING_LIMITED] = GPV_STEP_EXPLAIN,
                                                [GPV_FINDING_UNKNOWN] = GPV_STEP_START,
                                                [GPV_FINDING_CLOCK] = 0 };
    if (f->kind != GPV_FINDING_BAD && kinds[f->kind] == kind && *f->command)
        add(l, kind, f, f->command, 1);
    if (f->kind == GPV_FINDING_BAD && kind == GPV_STEP_RETRY)
        add_retry(n, f, l);
    if (f->kind == GPV_FINDING_BAD && kind == GPV_STEP_READ &&
        (strncmp(f->command, PROGRAM "log", sizeof(PROGRAM "log") - 1) == 0 ||
         strncmp(f->command, PROGRAM "show", sizeof(PROGRAM "show") - 1) == 0))
        add(l, kind, f, f->command, f->still);
}

void gpv_next_of(const struct gpv_night *n, const struct gpv_findings *f, struct gpv_next *ret)
{
    *ret = (struct gpv_next){ .n = 0 };
    for (enum gpv_step_kind kind = GPV_STEP_START; kind <= GPV_STEP_EXPLAIN; kind++)
        for (size_t i = 0; i < f->n; i++)
            add_step(n, &f->row[i], kind, ret);
}

/* "15 rec-11", cut so that what follows it has room. */
static const char *name_of(const struct gpv_night *n, uint32_t batch, char ret[NAME])
{
    struct gpv_cut cut = gpv_cut(ret, NAME);
    char id[GPV_WORD];
    (void)snprintf(id, sizeof(id), "%" PRIu32, batch);
    gpv_cut_add(&cut, "", id);
    gpv_cut_add(&cut, " ", gpv_batch_name(n, batch));
    return ret;
}

char *gpv_step_text(const struct gpv_night *n, const struct gpv_step *s, char *ret, size_t size)
{
    const struct gpv_finding *f = s->finding;
    char count[GPV_WORD], name[NAME], gpu[GPV_NAME], how[GPV_WORD];
    const char *many = s->n == 1 ? "" : "s";
    (void)gpv_count(s->n, count);
    (void)name_of(n, f->batch, name);
    switch (s->kind) {
    case GPV_STEP_START:
        (void)snprintf(ret, size, "tasks wait, and no agent runs");
        break;
    case GPV_STEP_READ:
        (void)snprintf(ret, size, "why %s task%s of %s %s", count, many, name,
                       gpv_finding_how(f, how));
        break;
    case GPV_STEP_RETRY:
        (void)snprintf(ret, size, "another attempt for %s %s task%s of %s, once the cause is mended", count,
                       f->outcome == GPV_LOST ? "lost" : "failed", many, name);
        break;
    case GPV_STEP_GPU:
        (void)snprintf(ret, size, s->n == 1 ? "%s is out of use" : "%s and others are out of use",
                       gpv_gpu_label(n, f->gpu, gpu));
        break;
    default:
        (void)snprintf(ret, size, "why the first task of %s waits", name);
    }
    return ret;
}
