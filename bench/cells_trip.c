/* SPDX-License-Identifier: MIT */
/* cells_trip.c - the round trip of one small task. */
#include "cells.h"
#include "measure.h"
#include "ours.h"
#include "place.h"
#include "raw_pipe.h"
#include "report.h"

#define ROUNDS 15
#define TRIPS_1CPU 3000 /* of about 3 us */
#define TRIPS_2CPU 600  /* of about 60 us: a halted CPU is woken twice */

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

static void report_awaited(struct trip *t, struct b_raw_pool *pool, size_t trips)
{
    double raw[ROUNDS], own[ROUNDS];
    int i;

    t->task.awaited = 1;
    for (i = 0; i < ROUNDS; i++) {
        raw[i] = b_trips(b_raw_trip, pool, trips);
        own[i] = b_trips(make_awaited_trip, t, trips);
        if (raw[i] < 0 || own[i] < 0)
            return;
    }
    b_report(B_KEY_rtt_wait_vs_pipe_1cpu, b_median(own, ROUNDS) / b_median(raw, ROUNDS), b_median(raw, ROUNDS),
             b_median(own, ROUNDS));
}
#else
static void report_awaited(struct trip *t, struct b_raw_pool *pool, size_t trips)
{
    (void)t;
    (void)pool;
    (void)trips;
    b_report_skipped(B_KEY_rtt_wait_vs_pipe_1cpu, "this build has no gpud_dispatcher_wait");
}
#endif

/* Raw and both drives by turns. */
static int measure(struct b_raw_pool *pool, struct trip *caller, struct trip *thread, unsigned cpus)
{
    size_t trips = cpus == 1 ? TRIPS_1CPU : TRIPS_2CPU;
    double raw[ROUNDS], own[ROUNDS], threaded[ROUNDS];
    double base;
    int i;

    (void)b_trips(b_raw_trip, pool, trips / 4); /* warm */
    (void)b_trips(make_trip, caller, trips / 4);
    (void)b_trips(make_trip, thread, trips / 4);
    for (i = 0; i < ROUNDS; i++) {
        raw[i] = b_trips(b_raw_trip, pool, trips);
        own[i] = b_trips(make_trip, caller, trips);
        threaded[i] = b_trips(make_trip, thread, trips);
        if (raw[i] < 0 || own[i] < 0 || threaded[i] < 0)
            return -1;
    }
    base = b_median(raw, ROUNDS);
    b_report(cpus == 1 ? B_KEY_rtt_vs_pipe_1cpu : B_KEY_rtt_vs_pipe_2cpu, b_median(own, ROUNDS) / base, base,
             b_median(own, ROUNDS));
    b_report(cpus == 1 ? B_KEY_rtt_thread_vs_pipe_1cpu : B_KEY_rtt_thread_vs_pipe_2cpu,
             b_median(threaded, ROUNDS) / base, base, b_median(threaded, ROUNDS));
    if (cpus == 1)
        report_awaited(caller, pool, trips);
    return 0;
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
