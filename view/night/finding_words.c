/* SPDX-License-Identifier: MIT */
/* finding_words.c - a finding in words, and the command to type next. */
#include "view/night/finding_words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "view/names.h"
#include "view/words.h"

enum { NAME = 64 };

/* ---- What to type next ---- */

__attribute__((format(printf, 2, 3))) static void type(struct gpv_finding *f, const char *format,
                                                       ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(f->command, sizeof(f->command), format, list);
    va_end(list);
}

/* The tasks that `retry --failed` selects. */
static uint64_t failed(const struct gpv_batch *b)
{
    return (uint64_t)b->ended_by[GPV_ERROR] + b->ended_by[GPV_TIMEOUT] + b->ended_by[GPV_CRASHED] +
           b->ended_by[GPV_NO_WORKER];
}

/* A returned task is back at its place, and a cancelled one is as a person wants it. */
static void command_of_ends(const struct gpv_batch *b, struct gpv_finding *f)
{
    if (f->still == 0)
        return;
    switch (f->outcome) {
    case GPV_ERROR:
    case GPV_TIMEOUT:
    case GPV_CRASHED:
        if (f->still == 1)
            type(f, "gpudispatch log %" PRIu32 ".%" PRIu32, f->batch, f->still_first);
        else if (failed(b) > 0)
            type(f, "gpudispatch retry %" PRIu32 " --failed", f->batch);
        return;
    case GPV_NO_WORKER:
        if (failed(b) > 0)
            type(f, "gpudispatch retry %" PRIu32 " --failed", f->batch);
        return;
    case GPV_LOST:
        if (b->ended_by[GPV_LOST] > 0)
            type(f, "gpudispatch retry %" PRIu32 " --lost", f->batch);
        return;
    case GPV_SKIPPED:
        type(f, "gpudispatch show %" PRIu32 ".%" PRIu32, f->batch, f->still_first);
        return;
    default:
        return;
    }
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
        type(f, "gpudispatch undrain %s", name);
    else
        type(f, "gpudispatch gpus");
}

void gpv_finding_command(const struct gpv_night *n, struct gpv_finding *f)
{
    uint32_t index = gpv_find_batch(n, f->batch);
    const struct gpv_batch *b = index != GPV_NONE ? &n->batches.row[index] : NULL;
    if (n->no_queue)
        return;
    switch (f->kind) {
    case GPV_FINDING_BAD:
        if (b)
            command_of_ends(b, f);
        return;
    case GPV_FINDING_OUT:
        command_of_out(n, f);
        return;
    case GPV_FINDING_KEPT:
    case GPV_FINDING_LIMITED:
        if (b && b->first != 0)
            type(f, "gpudispatch explain %" PRIu32 ".%" PRIu32, f->batch, b->first);
        return;
    case GPV_FINDING_UNKNOWN:
        if (f->goes_on && !n->over)
            type(f, "gpudispatch agent start");
        return;
    default:
        return;
    }
}

/* ---- What happened ---- */

/* "NO WORKER" of "no worker". */
static const char *upper(const char *word, char ret[GPV_WORD])
{
    size_t i = 0;
    for (; i < GPV_WORD - 1 && word[i] != 0; i++)
        ret[i] = (char)(word[i] >= 'a' && word[i] <= 'z' ? word[i] - 'a' + 'A' : word[i]);
    ret[i] = 0;
    return ret;
}

static void put_status(int32_t status, char *ret, size_t size)
{
    *ret = 0;
    if (status > 0)
        (void)snprintf(ret, size, " exit %" PRIi32, status);
    else if (status < 0)
        (void)snprintf(ret, size, " signal %" PRIi64, -(int64_t)status);
}

static const char *class_of(const struct gpv_night *n, const struct gpv_finding *f)
{
    uint32_t class = f->row < n->tenancies.n ? n->tenancies.row[f->row].class : GPV_NONE;
    return class < n->classes.n ? gpv_text(n, n->classes.row[class].name) : "a worker";
}

/* Takes the bytes of a character away that was cut. */
static void end_at_character(char *text)
{
    size_t size = strlen(text), at = size;
    while (at > 0 && ((unsigned char)text[at - 1] & 0xc0) == 0x80)
        at--;
    if (at == 0)
        return;
    unsigned char lead = (unsigned char)text[at - 1];
    size_t whole = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (size - (at - 1) < whole)
        text[at - 1] = 0;
}

char *gpv_finding_text(const struct gpv_night *n, const struct gpv_finding *f, char *ret,
                       size_t size)
{
    char count[GPV_WORD], word[GPV_WORD], status[GPV_WORD], times[GPV_WORD + 4] = "";
    char name[GPV_NAME];
    const char *gpu = gpv_gpu_label(n, f->gpu, name);
    int length = 0;
    (void)gpv_count(f->count, count);
    if (f->count != 1)
        (void)snprintf(times, sizeof(times), "%sx ", count);
    switch (f->kind) {
    case GPV_FINDING_BAD:
        put_status(f->status, status, sizeof(status));
        length = snprintf(ret, size, "%sx %s%s", count, upper(gpv_outcome_word(f->outcome), word),
                          status);
        break;
    case GPV_FINDING_OUT:
        length = snprintf(ret, size, "%s%s %s", times, gpu,
                          upper(gpv_out_word(n->outs.row[f->row].kind), word));
        break;
    case GPV_FINDING_KEPT:
        length = snprintf(ret, size, "%s%s kept free", times, gpu);
        break;
    case GPV_FINDING_LIMITED:
        length = snprintf(ret, size, "%s%s idle although tasks waited", times, gpu);
        break;
    case GPV_FINDING_EVICTED:
        length = snprintf(ret, size, "%s%s left %s", times, class_of(n, f), gpu);
        break;
    case GPV_FINDING_UNKNOWN:
        length = snprintf(ret, size, "%sno agent ran", times);
        break;
    default:
        length = snprintf(ret, size, "%sclock set", times);
        break;
    }
    if (length >= 0 && (size_t)length >= size)
        end_at_character(ret);
    return ret;
}
