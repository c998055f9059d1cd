/* SPDX-License-Identifier: MIT */
/*
 * explain_table.c - small worlds, each with the first reason that a task has there.
 *
 * A device has 80 GiB, of which 8 GiB are headroom.  Limits are 1000 ns and the grace 100 ns, so a
 * run that begins at 0 ends by 1100.  Class 0 is external.  Classes 1 and 2 are resident, on one
 * whole device with 60 GiB, with one worker at most: a boot takes 20000 ns, an unload 1000, a run
 * 500; class 2 is pinned.  Class 3 has 20 GiB and two workers.  Classes 4 and 5 are transient, with
 * one worker and two at most.  A task may evict a busy worker when it has waited for 50 ms, and is
 * late when it has waited for as long as a boot.
 */
#include "explain_table.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "explain_remove.h"
#include "explain_world.h"

#define GIB (1ull << 30)
#define MOST (80 * GIB - 80 * GIB / 10000 * 1000) /* without the headroom */
#define PART (80 * GIB / 64 + 1)                  /* readings are rounded up to this */
#define FACTS 12u
#define NOWHERE GPI_NOWHERE

enum need {
    WHOLE,
    TWO,
    SIX_TENTHS,
    HALF,
    TENTH,
    BIG,
    MEDIUM,
    SMALL,
    CPUS_3,
    CPUS_2,
    HUGE_ONE,
    NEWER,
    HOST
};

static const struct gpi_request request[] = {
    [WHOLE] = { .devices = 1, .share = GPI_SHARE_ALL, .memory = GPI_MEMORY_ALL },
    [TWO] = { .devices = 2, .share = GPI_SHARE_ALL, .memory = GPI_MEMORY_ALL },
    [SIX_TENTHS] = { .devices = 1, .share = 6000, .memory = GIB },
    [HALF] = { .devices = 1, .share = 5000, .memory = GIB },
    [TENTH] = { .devices = 1, .share = 1000, .memory = GIB },
    [BIG] = { .devices = 1, .share = 1000, .memory = 60 * GIB },
    [MEDIUM] = { .devices = 1, .share = 6000, .memory = 40 * GIB },
    [SMALL] = { .devices = 1, .share = 1000, .memory = 20 * GIB },
    [CPUS_3] = { .cpus = 3 },
    [CPUS_2] = { .cpus = 2 },
    [HUGE_ONE] = { .devices = 1, .share = GPI_SHARE_ALL, .memory = 100 * GIB },
    [NEWER] = { .devices = 1, .share = GPI_SHARE_ALL, .memory = GIB, .compute = 1000 },
    [HOST] = { .cpus = 1, .host_memory = 10 * GIB },
};

#define TASK(t, c, need, ns)                  \
    {                                         \
        .kind = T_SUBMIT, .who = t, .what = { \
            .class = c,                       \
            .order = 1 + (t),                 \
            .limit = ns,                      \
            .request = &request[need],        \
            .n_requests = 1                   \
        }                                     \
    }
#define SUBMIT(t, need) TASK(t, 0, need, 1000)
#define ENDLESS(t, need) TASK(t, 0, need, GPI_NEVER)
#define ADOPT(t, parts, bytes, slots, by)                                  \
    {                                                                      \
        .kind = T_ADOPT, .who = t, .what.limit = GPI_NEVER, .at = by,      \
        .has = {                                                           \
            .devices = 1, .share = parts, .memory = bytes, .cpus = slots   \
        }                                                                  \
    }
#define DECIDE(at)                  \
    {                               \
        .kind = T_DECIDE, .now = at \
    }
#define DEVICE(d, state)                                    \
    {                                                       \
        .kind = T_DEVICE, .who = d, .how = GPI_PLAN_##state \
    }
#define UP(worker, at)                         \
    {                                          \
        .kind = T_UP, .who = worker, .now = at \
    }
#define GONE(worker, when, again)                                  \
    {                                                              \
        .kind = T_GONE, .who = worker, .now = when, .at = again    \
    }
#define WITHDRAW(task)                   \
    {                                    \
        .kind = T_WITHDRAW, .who = task  \
    }
#define END(task, at)                                       \
    {                                                       \
        .kind = T_END, .who = task, .how = true, .now = at  \
    }
#define CLASS(c, state)                                     \
    {                                                       \
        .kind = T_CLASS, .who = c, .how = GPI_CLASS_##state \
    }

struct row {
    uint32_t device, kind, other;
    uint64_t have, need, until;
};

static const struct small {
    const char *name;
    uint32_t devices, runs;
    enum gpi_mode mode;
    struct t_fact fact[FACTS];
    uint32_t task; /* NOWHERE: `what` */
    enum need what;
    struct row first;
    uint32_t rows;
    uint32_t class; /* of `what` */
    uint64_t asked; /* 0: at the time of the last fact */
} small[] = {
    { "a share",
      1,
      9,
      GPI_MODE_BACKFILL,
      { SUBMIT(0, SIX_TENTHS), SUBMIT(1, HALF), DECIDE(0) },
      1,
      0,
      { 0, GPI_REASON_SHARE, 0, 4000, 5000, 1100 },
      1 },
    { "a share, without a limit",
      1,
      9,
      GPI_MODE_BACKFILL,
      { ENDLESS(0, SIX_TENTHS), SUBMIT(1, HALF), DECIDE(0) },
      1,
      0,
      { 0, GPI_REASON_SHARE, 0, 4000, 5000, GPI_NEVER },
      1 },
    { "memory",
      1,
      9,
      GPI_MODE_BACKFILL,
      { SUBMIT(0, BIG), SUBMIT(1, SMALL), DECIDE(0) },
      1,
      0,
      { 0, GPI_REASON_MEMORY, 0, MOST - 60 * GIB, 20 * GIB, 1100 },
      1 },
    { "all memory",
      1,
      9,
      GPI_MODE_BACKFILL,
      { SUBMIT(0, TENTH), SUBMIT(1, WHOLE), DECIDE(0) },
      1,
      0,
      { 0, GPI_REASON_SHARE, 0, 9000, 10000, 1100 },
      1 },
    { "CPU slots",
      1,
      9,
      GPI_MODE_BACKFILL,
      { SUBMIT(0, CPUS_3), SUBMIT(1, CPUS_2), DECIDE(0) },
      1,
      0,
      { NOWHERE, GPI_REASON_CPUS, 0, 1, 2, 1100 },
      1 },
    { "host memory",
      1,
      9,
      GPI_MODE_BACKFILL,
      { SUBMIT(0, HOST), SUBMIT(1, HOST), DECIDE(0) },
      1,
      0,
      { NOWHERE, GPI_REASON_MEMORY, NOWHERE, 6 * GIB, 10 * GIB, GPI_NEVER },
      1 },
    { "CPU slots that a head keeps",
      1,
      9,
      GPI_MODE_BACKFILL,
      { SUBMIT(0, CPUS_2), SUBMIT(1, CPUS_3), ENDLESS(2, HOST), DECIDE(0) },
      2,
      0,
      { NOWHERE, GPI_REASON_HEAD_HOLDS, 1, 2, 1, 1100 },
      1 },
    { "a share, of which more is in use than there is",
      1,
      9,
      GPI_MODE_BACKFILL,
      { ADOPT(0, 10000, 0, 0, 500), ADOPT(1, 6000, 0, 0, 900), SUBMIT(2, HALF), DECIDE(0) },
      2,
      0,
      { 0, GPI_REASON_SHARE, 0, 0, 5000, 900 },
      1 },
    { "memory, of which more is in use than there is",
      1,
      9,
      GPI_MODE_BACKFILL,
      { ADOPT(0, 0, 40 * GIB, 0, 500), ADOPT(1, 0, 60 * GIB, 0, 900), SUBMIT(2, SMALL), DECIDE(0) },
      2,
      0,
      { 0, GPI_REASON_MEMORY, 0, 0, 20 * GIB, 900 },
      1 },
    { "all memory, which two have",
      1,
      9,
      GPI_MODE_BACKFILL,
      { ADOPT(0, 0, GPI_MEMORY_ALL, 0, 500), ADOPT(1, 0, GPI_MEMORY_ALL, 0, 900),
        SUBMIT(2, SMALL), DECIDE(0) },
      2,
      0,
      { 0, GPI_REASON_MEMORY, 0, 0, 20 * GIB, 900 },
      1 },
    { "CPU slots, of which more are in use than there are",
      1,
      9,
      GPI_MODE_BACKFILL,
      { ADOPT(0, 0, 0, 5, 500), ADOPT(1, 0, 0, 3, 900), SUBMIT(2, CPUS_2), DECIDE(0) },
      2,
      0,
      { NOWHERE, GPI_REASON_CPUS, 1, 0, 2, 900 },
      1 },
    { "it runs already, and was behind another one before",
      1,
      9,
      GPI_MODE_BACKFILL,
      { SUBMIT(0, WHOLE),
        SUBMIT(1, WHOLE),
        DECIDE(0),
        { .kind = T_END, .now = 5 },
        { .kind = T_WITHDRAW, .who = 1 },
        ADOPT(1, 10000, 0, 0, 900),
        SUBMIT(2, HALF),
        DECIDE(5) },
      1,
      0,
      { 0, 0, 0, 0, 0, 0 },
      0 },
    { "behind its own shape",
      1,
      9,
      GPI_MODE_BACKFILL,
      { SUBMIT(0, WHOLE), SUBMIT(1, WHOLE), SUBMIT(2, WHOLE), DECIDE(0) },
      2,
      0,
      { NOWHERE, GPI_REASON_PASSED_OVER_BY, 1, 0, 0, 1100 },
      2 },
    { "in order",
      1,
      9,
      GPI_MODE_STRICT,
      { SUBMIT(0, SIX_TENTHS), SUBMIT(1, HALF), SUBMIT(2, TENTH), DECIDE(0) },
      2,
      0,
      { NOWHERE, GPI_REASON_PASSED_OVER_BY, 1, 0, 0, 1100 },
      1 },
    { "a head",
      2,
      9,
      GPI_MODE_BACKFILL,
      { SUBMIT(0, WHOLE), SUBMIT(1, TWO), ENDLESS(2, HALF), DECIDE(0) },
      2,
      0,
      { 0, GPI_REASON_HEAD_HOLDS, 1, 0, 0, 1100 },
      2 },
    { "a paused device",
      1,
      9,
      GPI_MODE_BACKFILL,
      { DEVICE(0, PAUSED), SUBMIT(0, HALF), DECIDE(0) },
      0,
      0,
      { 0, GPI_REASON_PAUSED, NOWHERE, 0, 0, GPI_NEVER },
      1 },
    { "a drained device",
      1,
      9,
      GPI_MODE_BACKFILL,
      { DEVICE(0, DRAINED), SUBMIT(0, HALF), DECIDE(0) },
      0,
      0,
      { 0, GPI_REASON_DRAINED, NOWHERE, 0, 0, GPI_NEVER },
      1 },
    { "a broken device",
      2,
      9,
      GPI_MODE_BACKFILL,
      { DEVICE(1, OUT), SUBMIT(0, WHOLE), SUBMIT(1, TWO), DECIDE(0) },
      1,
      0,
      { 1, GPI_REASON_FAULT, NOWHERE, 0, 0, GPI_NEVER },
      1 },
    { "a paused class",
      1,
      9,
      GPI_MODE_BACKFILL,
      { CLASS(0, PAUSE), SUBMIT(0, HALF), DECIDE(0) },
      0,
      0,
      { NOWHERE, GPI_REASON_PAUSED, 0, 0, 0, GPI_NEVER },
      1 },
    { "memory of others",
      1,
      9,
      GPI_MODE_BACKFILL,
      { { .kind = T_FOREIGN, .who = 0, .at = 2 * GIB }, SUBMIT(0, WHOLE), DECIDE(0) },
      0,
      0,
      { 0, GPI_REASON_FOREIGN, NOWHERE, 2 * PART, GIB, GPI_NEVER },
      1 },
    { "memory of others, in its way",
      1,
      9,
      GPI_MODE_BACKFILL,
      { { .kind = T_FOREIGN, .who = 0, .at = 20 * GIB }, SUBMIT(0, BIG), DECIDE(0) },
      0,
      0,
      { 0, GPI_REASON_FOREIGN, NOWHERE, 16 * PART, MOST - 60 * GIB, GPI_NEVER },
      1 },
    { "no run is left",
      1,
      1,
      GPI_MODE_BACKFILL,
      { SUBMIT(0, TENTH), SUBMIT(1, HALF), DECIDE(0) },
      1,
      0,
      { NOWHERE, GPI_REASON_SEATS, NOWHERE, 1, 2, GPI_NEVER },
      1 },
    { "a boot",
      1,
      9,
      GPI_MODE_BACKFILL,
      { TASK(0, 1, 0, 1000), DECIDE(0) },
      0,
      0,
      { 0, GPI_REASON_BOOTING, 1, 0, 0, 20000 },
      1 },
    { "its worker is busy",
      1,
      9,
      GPI_MODE_BACKFILL,
      { TASK(0, 1, 0, 1000), TASK(1, 1, 0, 1000), DECIDE(0), UP(0, 7000), DECIDE(7000) },
      1,
      0,
      { 0, GPI_REASON_BUSY, 0, 0, 0, 7500 },
      2 },
    { "its class has enough workers until it is late",
      1,
      9,
      GPI_MODE_BACKFILL,
      { TASK(0, 3, 0, GPI_NEVER), DECIDE(0), UP(0, 7000), DECIDE(7000), DECIDE(3 * GPI_MS),
        TASK(1, 3, 0, 1000), DECIDE(3 * GPI_MS) },
      1,
      0,
      { NOWHERE, GPI_REASON_BUSY, NOWHERE, 7000, 0, 3 * GPI_MS + 7000 },
      2 },
    { "it is late, but its class has all shares",
      1,
      9,
      GPI_MODE_BACKFILL,
      { TASK(0, 3, 0, GPI_NEVER), DECIDE(0), UP(0, 7000), DECIDE(7000), DECIDE(3 * GPI_MS),
        TASK(1, 3, 0, 1000), DECIDE(3 * GPI_MS), DECIDE(3 * GPI_MS + 7000) },
      1,
      0,
      { 0, GPI_REASON_BUSY, 0, 0, 0, GPI_NEVER },
      2 },
    { "a share that the device of its worker lacks",
      1,
      9,
      GPI_MODE_BACKFILL,
      { TASK(0, 1, 0, 1000),
        DECIDE(0),
        UP(0, 7000),
        DECIDE(7000),
        { .kind = T_END, .now = 7500, .how = 1 },
        SUBMIT(1, TENTH),
        DECIDE(7500),
        TASK(2, 1, 0, 1000),
        DECIDE(7500) },
      2,
      0,
      { 0, GPI_REASON_SHARE, 1, 9000, 10000, 8600 },
      2 },
    { "its class may not boot yet",
      1,
      9,
      GPI_MODE_BACKFILL,
      { TASK(0, 1, 0, 1000), DECIDE(0), { .kind = T_GONE, .now = 5, .at = 90 }, DECIDE(5) },
      0,
      0,
      { NOWHERE, GPI_REASON_FAULT, 1, 0, 0, 90 },
      1 },
    { "a worker is not ripe",
      1,
      9,
      GPI_MODE_BACKFILL,
      { TASK(0, 1, 0, 1000),
        DECIDE(0),
        UP(0, 7000),
        DECIDE(7000),
        { .kind = T_END, .now = 7500, .how = 1 },
        SUBMIT(1, WHOLE),
        DECIDE(7500) },
      1,
      0,
      { 0, GPI_REASON_MIN_RESIDENCE, 1, 0, 0, 37000 },
      1 },
    { "a worker leaves",
      1,
      9,
      GPI_MODE_BACKFILL,
      { TASK(0, 1, 0, 1000),
        DECIDE(0),
        UP(0, 7000),
        DECIDE(7000),
        { .kind = T_END, .now = 7500, .how = 1 },
        SUBMIT(1, WHOLE),
        DECIDE(7500),
        DECIDE(37000) },
      1,
      0,
      { 0, GPI_REASON_UNLOADING, 1, MOST - 60 * GIB, MOST, 38000 },
      1 },
    { "a worker has work",
      1,
      9,
      GPI_MODE_BACKFILL,
      { TASK(0, 1, 0, GPI_NEVER), DECIDE(0), UP(0, 7000), DECIDE(7000), SUBMIT(1, WHOLE),
        DECIDE(7000) },
      1,
      0,
      { 0, GPI_REASON_MAX_WAIT, 1, 0, 0, 50 * GPI_MS },
      1 },
    { "a pinned worker",
      1,
      9,
      GPI_MODE_BACKFILL,
      { TASK(0, 2, 0, 1000), DECIDE(0), UP(0, 7000), DECIDE(7000), SUBMIT(1, WHOLE), DECIDE(7000) },
      1,
      0,
      { 0, GPI_REASON_PINNED, 2, 0, 0, GPI_NEVER },
      1 },
    { "a pinned worker, and two devices could never do",
      2,
      9,
      GPI_MODE_BACKFILL,
      { TASK(0, 2, 0, 1000), DECIDE(0), SUBMIT(1, WHOLE), SUBMIT(2, TWO), DECIDE(0) },
      2,
      0,
      { 0, GPI_REASON_PINNED, 2, 0, 0, GPI_NEVER },
      1 },
    { "another class boots",
      1,
      9,
      GPI_MODE_BACKFILL,
      { TASK(0, 1, 0, 1000), DECIDE(0), SUBMIT(1, WHOLE), DECIDE(0) },
      1,
      0,
      { 0, GPI_REASON_BOOTING, 1, 0, 0, 20000 },
      1 },
    { "a worker stays for an older task",
      1,
      9,
      GPI_MODE_BACKFILL,
      { ENDLESS(0, HALF), TASK(1, 4, MEDIUM, 1000), DECIDE(0), UP(1, 7000), DECIDE(7000),
        TASK(2, 1, 0, 1000), DECIDE(7000) },
      2,
      0,
      { 0, GPI_REASON_HEAD_HOLDS, 1, 0, 0, GPI_NEVER },
      1 },
    { "memory of a worker and of a task",
      1,
      9,
      GPI_MODE_BACKFILL,
      { TASK(0, 3, 0, 1000), DECIDE(0), UP(0, 7000), DECIDE(7000), END(0, 8000),
        ADOPT(1, 0, 30 * GIB, 0, GPI_NEVER), SUBMIT(2, MEDIUM), DECIDE(8000) },
      2,
      0,
      { 0, GPI_REASON_MEMORY, 1, MOST - 50 * GIB, 40 * GIB, GPI_NEVER },
      1 },
    { "other devices could hold it",
      2,
      9,
      GPI_MODE_BACKFILL,
      { TASK(0, 1, 0, 1000), DECIDE(0), UP(0, 7000), DECIDE(7000), SUBMIT(1, WHOLE),
        SUBMIT(2, WHOLE), DECIDE(7000) },
      2,
      0,
      { 1, GPI_REASON_SHARE, 1, 0, 10000, 8100 },
      2 },
    { "not submitted: starts",
      1,
      9,
      GPI_MODE_BACKFILL,
      { DECIDE(0) },
      NOWHERE,
      WHOLE,
      { 0, 0, 0, 0, 0, 0 },
      0 },
    { "not submitted: a share",
      1,
      9,
      GPI_MODE_BACKFILL,
      { SUBMIT(0, SIX_TENTHS), DECIDE(0) },
      NOWHERE,
      HALF,
      { 0, GPI_REASON_SHARE, 0, 4000, 5000, 1100 },
      1 },
    { "not submitted: its class may boot again since the last decision",
      1,
      9,
      GPI_MODE_BACKFILL,
      { TASK(0, 5, HALF, 1000), DECIDE(0), UP(0, 7000), DECIDE(7000), TASK(1, 5, SMALL, 1000),
        DECIDE(7000), GONE(1, 8000, 9000), WITHDRAW(1), DECIDE(8000) },
      NOWHERE,
      SMALL,
      { NOWHERE, GPI_REASON_BOOTING, 5, 0, 0, 16000 },
      1,
      5,
      9000 },
    { "not submitted: too much memory",
      2,
      9,
      GPI_MODE_BACKFILL,
      { DECIDE(0) },
      NOWHERE,
      HUGE_ONE,
      { NOWHERE, GPI_REASON_NEVER, GPI_LACKS_DEVICES, 0, 1, GPI_NEVER },
      3 },
    { "not submitted: too old a device",
      1,
      9,
      GPI_MODE_BACKFILL,
      { DECIDE(0) },
      NOWHERE,
      NEWER,
      { NOWHERE, GPI_REASON_NEVER, GPI_LACKS_DEVICES, 0, 1, GPI_NEVER },
      2 },
};

static struct gpi_plan *make_plan(const struct small *s)
{
    const struct gpi_plan_settings set = { .tasks = 8,
                                           .shapes = 8,
                                           .classes = 6,
                                           .devices = s->devices,
                                           .runs = s->runs,
                                           .mode = s->mode,
                                           .passing = GPI_PASS_APART,
                                           .cpus = 4,
                                           .host_memory = 16 * GIB,
                                           .headroom = 1000,
                                           .foreign_memory = GIB };
    struct gpi_plan *p = gpi_plan_create(&set);

    if (!p)
        abort();
    for (uint32_t i = 0; i < s->devices; i++)
        gpi_plan_device_add(p, i, &(struct gpi_plan_has){ .memory = 80 * GIB, .compute = 900 });
    gpi_plan_class_add(p, 0, &(struct gpi_plan_class){ .grace = 100, .max_wait = 50 * GPI_MS });
    for (uint32_t i = 1; i < 4; i++)
        gpi_plan_class_add(p, i,
                           &(struct gpi_plan_class){ .residence = GPI_RESIDENT,
                                                     .grace = 100,
                                                     .n_needs = 1,
                                                     .need = { { 1, GPI_SHARE_ALL, 0, 0, 0,
                                                                 i < 3 ? 60 * GIB : 20 * GIB, 0 } },
                                                     .max_workers = i < 3 ? 1 : 2,
                                                     .pinned = i == 2,
                                                     .min_residence = 30000,
                                                     .max_wait = 50 * GPI_MS,
                                                     .keep_alive = GPI_NEVER,
                                                     .boot = 20000,
                                                     .unload = 1000,
                                                     .run = 500 });
    for (uint32_t i = 4; i < 6; i++)
        gpi_plan_class_add(p, i,
                           &(struct gpi_plan_class){ .residence = GPI_TRANSIENT,
                                                     .grace = 100,
                                                     .max_workers = i - 3,
                                                     .max_wait = 50 * GPI_MS,
                                                     .keep_alive = GPI_NEVER,
                                                     .boot = 20000,
                                                     .unload = 1000,
                                                     .run = 500 });
    return p;
}

static bool is_as_expected(const struct gpi_plan_reason *r, const struct row *e)
{
    return r->device == e->device && r->kind == e->kind && r->other == e->other &&
           r->have == e->have && r->need == e->need && r->until == e->until;
}

static void print(const struct gpi_plan_reason *r)
{
    printf("    device %d %s other %d have %llu need %llu until %lld\n", (int)r->device,
           t_reason_name[r->kind], (int)r->other, (unsigned long long)r->have,
           (unsigned long long)r->need, (long long)r->until);
}

/* Returns true if the plan explains as expected. */
static bool check(const struct small *s)
{
    const struct gpi_plan_task what = {
        .class = s->class,
        .order = 100,
        .limit = 1000,
        .request = &request[s->what],
        .n_requests = 1,
    };
    struct gpi_plan *p = make_plan(s);
    struct gpi_plan_reason row[4];
    struct gpi_plan_action a;
    uint64_t now = 0;
    uint32_t n;

    for (uint32_t i = 0; i < FACTS && (i == 0 || s->fact[i].kind || s->fact[i].what.request); i++) {
        struct t_fact f = s->fact[i];
        f.now = now = f.now > now ? f.now : now;
        (void)t_fact_feed(p, &f);
        while (gpi_plan_next(p, &a))
            ;
    }
    n = gpi_plan_explain(p, s->asked, s->task, s->task == NOWHERE ? &what : NULL, row, 4);
    gpi_plan_destroy(p);
    if (n == s->rows && (n == 0 || is_as_expected(&row[0], &s->first)))
        return true;
    printf("%s: %u rows, expected %u, the first one\n", s->name, n, s->rows);
    for (uint32_t i = 0; i < n && i < 4; i++)
        print(&row[i]);
    return false;
}

unsigned t_explain_table(void)
{
    unsigned wrong = 0;

    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        wrong += !check(&small[i]);
    printf("%zu small worlds, %u wrong\n", sizeof small / sizeof *small, wrong);
    return wrong;
}
