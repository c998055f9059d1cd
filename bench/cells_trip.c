/* SPDX-License-Identifier: MIT */
/* cells_trip.c - the round trip of one small task. */
#include "cells.h"
#include "measure.h"
#include "ours.h"
#include "pairs.h"
#include "place.h"
#include "raw_pipe.h"
#include "report.h"

#define ROUNDS 30
#define QUICK_ROUNDS 4
#define TRIPS_1CPU 8000 /* a round, of about 3 us each */
#define TRIPS_2CPU 400  /* a round, of about 60 us each: a halted CPU is woken twice */

struct trip {
    struct b_ours *ours;
    struct gpud_task_desc task;
    struct b_order order;
};

static int make_trip(void *user)
{
    struct trip *t = user;

    return b_ours_trip(t->ours, &t->task);
}

#ifdef BENCH_HAVE_WAIT
/* Submits a task of its own and waits for that very one. */
static int make_awaited_trip(void *user)
{
    struct gpud_event event = { .struct_size = (uint32_t)sizeof(event) };
    struct trip *t = user;
    uint32_t outcome;
    uint64_t id;
    int rc = gpud_dispatcher_submit(t->ours->d, &t->task, 0, &id, NULL);

    if (rc == 0)
        rc = gpud_dispatcher_wait(t->ours->d, id, &event, GPUD_NEVER, NULL);
    if (rc)
        return b_complain("submit and wait: %s", gpud_error_name(rc));
    outcome = event.outcome;
    rc = gpud_event_release(&event);
    if (rc)
        return b_complain("event_release: %s", gpud_error_name(rc));
    return outcome == GPUD_OUTCOME_SUCCESS ? 0 : b_complain("a task did not end SUCCESS");
}

#endif

/* Trips of one kind, one round of them. */
struct trips {
    b_trip_fn *make;
    void *user;
    size_t n;
};

static int make_trips(void *user, struct b_round *ret)
{
    struct trips *t = user;

    *ret = (struct b_round){ .value = b_trips(t->make, t->user, t->n) };
    return ret->value < 0 ? -1 : 0;
}

/* Takes pairs of raw and one kind of trips, a quarter round of both to warm up. */
static int report_trips(unsigned key, struct trips raw, struct trips own)
{
    struct b_side theirs = { make_trips, &raw }, ours = { make_trips, &own };
    struct b_pairs pairs = { .n = 0 };
    size_t i;

    if (b_trips(raw.make, raw.user, raw.n / 4) < 0 || b_trips(own.make, own.user, own.n / 4) < 0)
        return -1;
    for (i = 0; i < b_effort(ROUNDS, QUICK_ROUNDS); i++)
        if (b_pairs_take(&pairs, &theirs, &ours))
            return -1;
    b_report_pairs(key, &pairs, B_VALUE, 1);
    return 0;
}

static int report_awaited(struct trip *t, struct trips raw)
{
#ifdef BENCH_HAVE_WAIT
    t->task.awaited = 1;
    return report_trips(B_KEY_rtt_wait_vs_pipe_1cpu, raw,
                        (struct trips){ make_awaited_trip, t, raw.n });
#else
    (void)t;
    (void)raw;
    b_report_skipped(B_KEY_rtt_wait_vs_pipe_1cpu, "this build has no gpud_dispatcher_wait");
    return 0;
#endif
}

/* Both drives over raw. */
static int measure(struct b_raw_pool *pool, struct trip *caller, struct trip *thread, unsigned cpus)
{
    size_t n = cpus == 1 ? TRIPS_1CPU : TRIPS_2CPU;
    struct trips raw = { b_raw_trip, pool, n };

    if (report_trips(cpus == 1 ? B_KEY_rtt_vs_pipe_1cpu : B_KEY_rtt_vs_pipe_2cpu, raw,
                     (struct trips){ make_trip, caller, n }))
        return -1;
    if (report_trips(cpus == 1 ? B_KEY_rtt_thread_vs_pipe_1cpu : B_KEY_rtt_thread_vs_pipe_2cpu, raw,
                     (struct trips){ make_trip, thread, n }))
        return -1;
    return cpus == 1 ? report_awaited(caller, raw) : 0;
}

int b_cell_trip(const struct b_cell *cell)
{
    struct b_ours_options options = { .workers = 1,
                                      .cpu = b_cpu_number(cell->cpus - 1),
                                      .drive = GPUD_DRIVE_CALLER,
                                      .task_limit = 10 * B_S };
    struct b_ours caller, thread;
    struct trip t = { .ours = &caller }, u = { .ours = &thread };
    struct b_raw_pool pool;
    int rc = -1;

    if (b_pin(0, b_cpu_number(0)))
        return b_complain("this process could not be pinned");
    if (b_raw_pool_open(&pool, 1, options.cpu))
        return b_complain("the raw worker could not be forked");
    if (b_ours_open(&caller, &options))
        goto close_pool;
    options.drive = GPUD_DRIVE_THREAD;
    if (b_ours_open(&thread, &options))
        goto close_caller;
    b_ours_task(&t.task, &t.order, B_NOTHING);
    b_ours_task(&u.task, &u.order, B_NOTHING);
    rc = measure(&pool, &t, &u, cell->cpus);
    b_ours_close(&thread);
close_caller:
    b_ours_close(&caller);
close_pool:
    b_raw_pool_close(&pool);
    return rc;
}
