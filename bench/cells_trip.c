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

int b_cell_trip(const struct b_cell *cell)
{
    size_t trips = cell->cpus == 1 ? TRIPS_1CPU : TRIPS_2CPU;
    unsigned key = cell->cpus == 1 ? B_KEY_rtt_vs_pipe_1cpu : B_KEY_rtt_vs_pipe_2cpu;
    struct b_ours_options options = { .workers = 1,
                                      .cpu = b_cpu_number(cell->cpus - 1),
                                      .drive = GPUD_DRIVE_CALLER,
                                      .task_limit = 10 * B_S };
    double raw[ROUNDS], own[ROUNDS];
    struct b_raw_pool pool;
    struct b_ours ours;
    struct trip t = { .ours = &ours };
    int i, rc = -1;

    if (b_pin(0, b_cpu_number(0)))
        return b_complain("this process could not be pinned");
    if (b_raw_pool_open(&pool, 1, options.cpu))
        return b_complain("the raw worker could not be forked");
    if (b_ours_open(&ours, &options))
        goto close_pool;
    b_ours_task(&t.task, &t.order, B_NOTHING);
    (void)b_trips(b_raw_trip, &pool, trips / 4); /* warm */
    (void)b_trips(make_trip, &t, trips / 4);
    for (i = 0; i < ROUNDS; i++) {
        raw[i] = b_trips(b_raw_trip, &pool, trips);
        own[i] = b_trips(make_trip, &t, trips);
        if (raw[i] < 0 || own[i] < 0)
            goto close_ours;
    }
    b_report(key, b_median(own, ROUNDS) / b_median(raw, ROUNDS), b_median(raw, ROUNDS), b_median(own, ROUNDS));
    rc = 0;
close_ours:
    b_ours_close(&ours);
close_pool:
    b_raw_pool_close(&pool);
    return rc;
}
