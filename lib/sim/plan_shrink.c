/* SPDX-License-Identifier: MIT */
#include "sim/plan_shrink.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sim/trial.h"

#define CHILD_CPU_S 5u

/* Shared with the child, which may crash. */
struct verdict {
    char id[GPI_PLAN_ID_SIZE];
    size_t used;         /* facts up to the objection */
    unsigned char fed[]; /* of each fact: a caller may feed it */
};

struct search {
    struct gpi_plan_facts *facts;
    struct gpi_fact *trial; /* facts of an attempt */
    char id[GPI_PLAN_ID_SIZE];
    uint32_t attempts;
};

/* ---- an attempt ---- */

static void note_id(struct verdict *v, const char *text)
{
    size_t n = strcspn(text, ":");

    n = n < sizeof v->id - 1 ? n : sizeof v->id - 1;
    memcpy(v->id, text, n);
    v->id[n] = 0;
}

static _Noreturn void be_child(const struct gpi_fact *facts, size_t n, struct verdict *v)
{
    const struct rlimit cpu = { .rlim_cur = CHILD_CPU_S, .rlim_max = CHILD_CPU_S + 1 };
    const struct rlimit none = { 0 };
    struct gpi_trial t = { .alone = false };

    (void)signal(SIGABRT, SIG_DFL);
    (void)setrlimit(RLIMIT_CPU, &cpu);
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)!freopen("/dev/null", "w", stderr);
    for (; v->used < n && !t.broken; v->used++) {
        v->fed[v->used] = !gpi_trial_refuses(&t, &facts[v->used]);
        if (v->fed[v->used])
            gpi_trial_feed(&t, &facts[v->used]);
    }
    if (t.broken)
        note_id(v, t.broken);
    _exit(0);
}

static struct verdict *judge(const struct gpi_fact *facts, size_t n)
{
    const size_t size = sizeof(struct verdict) + n;
    struct verdict *v = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    pid_t pid;

    if (v == MAP_FAILED)
        exit(70);
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0)
        be_child(facts, n, v);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        exit(70);
    if (WIFSIGNALED(status)) {
        note_id(v, WTERMSIG(status) == SIGXCPU ? "no end" : "abort");
        v->used += v->used < n; /* the fact that it died of */
    } else if (WEXITSTATUS(status)) {
        note_id(v, "abort"); /* a sanitizer's exit */
        v->used += v->used < n;
    }
    return v;
}

static void drop(struct verdict *v, size_t n)
{
    (void)munmap(v, sizeof *v + n);
}

void gpi_plan_judge(const struct gpi_plan_facts *facts, char ret_id[GPI_PLAN_ID_SIZE])
{
    struct verdict *v = judge(facts->at, facts->n);

    memcpy(ret_id, v->id, GPI_PLAN_ID_SIZE);
    drop(v, facts->n);
}

/* Adopts the facts of the attempt if they still have the id.  Drops each fact that no caller may
 * feed any more. */
static bool adopt(struct search *s, size_t n)
{
    struct verdict *v = judge(s->trial, n);
    const bool same = !strcmp(v->id, s->id);
    size_t kept = 0;

    s->attempts++;
    for (size_t i = 0; i < v->used && same; i++)
        if (v->fed[i])
            s->facts->at[kept++] = s->trial[i];
    if (same)
        s->facts->n = kept;
    drop(v, n);
    return same;
}

/* ---- fewer facts ---- */

static bool without(struct search *s, size_t from, size_t n)
{
    const struct gpi_plan_facts *f = s->facts;
    size_t kept = 0;

    for (size_t i = 0; i < f->n; i++)
        if (i < from || i >= from + n)
            s->trial[kept++] = f->at[i];
    return kept < f->n && adopt(s, kept);
}

static bool take_out_facts(struct search *s)
{
    const size_t before = s->facts->n;

    for (size_t n = before / 2; n > 0; n /= 2)
        for (size_t at = s->facts->n; at > 0;) {
            at = at > n ? at - n : 0;
            (void)without(s, at, n);
            at = at < s->facts->n ? at : s->facts->n;
        }
    return s->facts->n < before;
}

static void drop_device(struct gpi_fact *f, uint32_t d)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->n_devices; i++)
        if (f->list[i] != d)
            f->list[n++] = (uint16_t)(f->list[i] - (f->list[i] > d));
    f->n_devices = n;
    if (f->kind == GPI_FACT_ADOPT)
        f->request[0].devices = n;
    f->device -= f->device > d;
}

static bool is_of_device(const struct gpi_fact *f, uint32_t d)
{
    return f->device == d && (f->kind == GPI_FACT_DEVICE || f->kind == GPI_FACT_STATE ||
                              f->kind == GPI_FACT_FOREIGN || f->kind == GPI_FACT_OBSERVED ||
                              f->kind == GPI_FACT_OBSERVED_OF);
}

static bool take_out_devices(struct search *s)
{
    uint32_t devices = 0;
    bool any = false;

    for (size_t i = 0; i < s->facts->n; i++)
        devices += s->facts->at[i].kind == GPI_FACT_DEVICE;
    for (uint32_t d = devices; d-- > 0;) {
        size_t n = 0;
        for (size_t i = 0; i < s->facts->n; i++) {
            if (is_of_device(&s->facts->at[i], d))
                continue;
            s->trial[n] = s->facts->at[i];
            drop_device(&s->trial[n++], d);
        }
        any |= adopt(s, n);
    }
    return any;
}

/* ---- simpler facts ---- */

static void simplify_request(struct gpi_request *r, uint32_t how)
{
    switch (how) {
    case 0:
        r->cpus = 0;
        break;
    case 1:
        r->host_memory = 0;
        break;
    case 2:
        r->places = 0;
        break;
    case 3:
        r->compute = 0;
        break;
    case 4:
        r->memory = 0;
        break;
    default:
        r->share = GPI_SHARE_ALL;
    }
}

#define SIMPLER 15u

static void simplify(struct gpi_fact *f, uint32_t how)
{
    for (uint32_t i = 0; i < f->n_requests && how < 6; i++)
        simplify_request(&f->request[i], how);
    if (how == 6 && f->n_requests > 1)
        f->n_requests--;
    if (how == 7 && f->n_requests > 1)
        memmove(f->request, f->request + 1, --f->n_requests * sizeof *f->request);
    if (how == 8 && f->kind == GPI_FACT_SUBMIT)
        f->job.priority = 0;
    if (how == 9 && f->kind == GPI_FACT_CLASS)
        f->is.residence = GPI_EXTERNAL;
    if (how == 10 && f->kind == GPI_FACT_CLASS)
        f->is.min_workers = 0, f->is.pinned = false, f->is.min_residence = 0;
    if (how == 11 && f->kind == GPI_FACT_CLASS)
        f->is.max_workers = UINT32_MAX, f->is.keep_alive = GPI_NEVER;
    if (how == 12 && f->kind == GPI_FACT_SUBMIT)
        f->job.stream = false;
    if (how == 13 && f->kind == GPI_FACT_END)
        f->run = f->keep_alive = 0;
    if (how == 14 && f->kind == GPI_FACT_ADOPT)
        f->at = f->job.limit = GPI_NEVER;
}

static bool make_simpler(struct search *s)
{
    bool any = false;

    for (size_t i = 0; i < s->facts->n; i++)
        for (uint32_t how = 0; how < SIMPLER; how++) {
            struct gpi_fact simpler;
            memcpy(&simpler, &s->facts->at[i], sizeof simpler);
            simplify(&simpler, how);
            if (!memcmp(&simpler, &s->facts->at[i], sizeof simpler))
                continue;
            memcpy(s->trial, s->facts->at, s->facts->n * sizeof *s->trial);
            memcpy(&s->trial[i], &simpler, sizeof simpler);
            any |= adopt(s, s->facts->n);
            if (i >= s->facts->n)
                return any;
        }
    return any;
}

uint32_t gpi_plan_shrink(struct gpi_plan_facts *facts)
{
    struct search s = { .facts = facts, .trial = malloc(facts->n * sizeof *s.trial) };
    bool any = true;

    if (!s.trial)
        exit(70);
    gpi_plan_judge(facts, s.id);
    while (any && *s.id) {
        any = take_out_facts(&s);
        any |= take_out_devices(&s);
        any |= make_simpler(&s);
    }
    free(s.trial);
    return s.attempts;
}
