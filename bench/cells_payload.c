/* SPDX-License-Identifier: MIT */
/* cells_payload.c - 16 MiB handed to a worker, in place and copied by submit; 16 MiB back from it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cells.h"
#include "measure.h"
#include "ours.h"
#include "pairs.h"
#include "place.h"
#include "processes.h"
#include "report.h"

#define ROUNDS 20
#define QUICK_ROUNDS 4
#define TRIPS_1CPU 3000 /* a round */
#define TRIPS_2CPU 300
#define COPIES 6
#define SIZE (UINT64_C(16) << 20)
#define BUDGET (UINT64_C(256) << 20)

struct load {
    struct b_ours *ours;
    struct gpud_task_desc small, big, back;
    struct b_order order, back_order; /* the latter asks for a result of SIZE bytes */
    char *source, *target; /* SIZE bytes each; the source orders nothing */
    size_t trips;          /* of a round */
    uint64_t tasks, faulted, results, faulted_back; /* of 16 MiB, and page faults meanwhile */
};

static int small_trip(void *user)
{
    struct load *l = user;

    return b_ours_trip(l->ours, &l->small);
}

/* Lends a buffer, hands it in, waits.  What a host writes there in between is its own affair. */
static int inplace_trip(void *user)
{
    struct load *l = user;
    struct gpud_task_desc task = l->big;
    void *data;
    int rc = gpud_dispatcher_buffer_alloc(l->ours->d, SIZE, &data);

    if (rc)
        return b_complain("buffer_alloc: %s", gpud_error_name(rc));
    task.data = data;
    if (b_ours_trip(l->ours, &task) == 0)
        return 0;
    (void)gpud_dispatcher_buffer_free(l->ours->d, data);
    return -1;
}

static int copied_trip(void *user)
{
    struct load *l = user;

    return b_ours_trip(l->ours, &l->big);
}

/* A result written in place.  What a worker writes there is its own affair. */
static int result_trip(void *user)
{
    struct load *l = user;

    if (b_ours_trip(l->ours, &l->back))
        return -1;
    return l->ours->events[0].result_size == SIZE ? 0 : b_complain("a result of another size");
}

static int plain_copy(void *user)
{
    struct load *l = user;

    memcpy(l->target, l->source, SIZE);
    __asm__ volatile("" : : "r"(l->target) : "memory");
    return 0;
}

/* Gives the page faults of host and worker so far. */
static uint64_t faults(struct load *l)
{
    struct gpud_slot_stats row = { .struct_size = (uint32_t)sizeof(row) };

    if (gpud_dispatcher_slots(l->ours->d, &row, 1) != 1)
        return 0;
    return b_faults(getpid()) + b_faults((pid_t)row.pid);
}

/* ---- rounds; user is the load ---- */

static int small_round(void *user, struct b_round *ret)
{
    struct load *l = user;

    *ret = (struct b_round){ .value = b_trips(small_trip, l, l->trips) };
    return ret->value < 0 ? -1 : 0;
}

static int inplace_round(void *user, struct b_round *ret)
{
    struct load *l = user;
    uint64_t before = faults(l);

    *ret = (struct b_round){ .value = b_trips(inplace_trip, l, l->trips) };
    l->faulted += faults(l) - before;
    l->tasks += l->trips;
    return ret->value < 0 ? -1 : 0;
}

static int result_round(void *user, struct b_round *ret)
{
    struct load *l = user;
    uint64_t before = faults(l);

    *ret = (struct b_round){ .value = b_trips(result_trip, l, l->trips) };
    l->faulted_back += faults(l) - before;
    l->results += l->trips;
    return ret->value < 0 ? -1 : 0;
}

/* Gives GB/s of what submit adds to a small trip.  On one CPU a trip is short, so taking it off
 * adds no noise. */
static int copied_round(void *user, struct b_round *ret)
{
    struct load *l = user;
    double trip = b_trips(small_trip, l, COPIES), copied;
    uint64_t before = faults(l);

    copied = b_trips(copied_trip, l, COPIES);
    l->faulted += faults(l) - before;
    l->tasks += COPIES;
    *ret = (struct b_round){ .value = (double)SIZE / (copied - trip) / 1e3 };
    return trip < 0 || copied < 0 ? -1 : 0;
}

static int plain_round(void *user, struct b_round *ret)
{
    *ret = (struct b_round){ .value = (double)SIZE / b_trips(plain_copy, user, COPIES) / 1e3 };
    return 0;
}

/* One kind of rounds over another; both are warm after a round each, which does not count. */
static int take_pairs(unsigned key, struct load *l, b_round_fn *raw, b_round_fn *ours)
{
    struct b_side theirs = { raw, l }, mine = { ours, l };
    struct b_pairs pairs = { .n = 0 };
    struct b_round warm;
    size_t i;

    if (raw(l, &warm) || ours(l, &warm))
        return -1;
    l->tasks = l->faulted = l->results = l->faulted_back = 0;
    for (i = 0; i < b_effort(ROUNDS, QUICK_ROUNDS); i++)
        if (b_pairs_take(&pairs, &theirs, &mine))
            return -1;
    b_report_pairs(key, &pairs, B_VALUE, 1);
    return 0;
}

static int measure(struct load *l, unsigned cpus)
{
    uint64_t tasks, faulted;

    if (take_pairs(cpus == 1 ? B_KEY_payload_inplace_vs_64b_1cpu : B_KEY_payload_inplace_vs_64b, l,
                   small_round, inplace_round))
        return -1;
    if (cpus == 2)
        return 0;
    tasks = l->tasks;
    faulted = l->faulted;
    if (take_pairs(B_KEY_payload_copy_vs_memcpy, l, plain_round, copied_round))
        return -1;
    b_report(B_KEY_payload_faults_per_task,
             (double)(faulted + l->faulted) / (double)(tasks + l->tasks), NAN, NAN);
    if (take_pairs(B_KEY_payload_result_vs_64b_1cpu, l, small_round, result_round))
        return -1;
    b_report(B_KEY_result_faults_per_task, (double)l->faulted_back / (double)l->results, NAN, NAN);
    return 0;
}

int b_cell_payload(const struct b_cell *cell)
{
    struct b_ours_options options = { .workers = 1,
                                      .cpu = b_cpu_number(cell->cpus - 1),
                                      .drive = GPUD_DRIVE_CALLER,
                                      .task_limit = 10 * B_S,
                                      .payload_budget = BUDGET };
    struct b_ours ours;
    struct load l = { .ours = &ours, .trips = cell->cpus == 1 ? TRIPS_1CPU : TRIPS_2CPU };
    int rc = -1;

    if (b_pin(0, b_cpu_number(0)))
        return b_complain("this process could not be pinned");
    l.source = calloc(1, SIZE);
    l.target = malloc(SIZE);
    if (!l.source || !l.target)
        goto free_memory;
    memset(l.source, 0, SIZE);
    memset(l.target, 1, SIZE);
    if (b_ours_open(&ours, &options))
        goto free_memory;
    b_ours_task(&l.small, &l.order, B_NOTHING);
    b_ours_task(&l.back, &l.back_order, B_RESULT);
    l.back_order.size = (uint32_t)SIZE;
    l.big = l.small;
    l.big.data = l.source;
    l.big.size = SIZE;
    rc = measure(&l, cell->cpus);
    b_ours_close(&ours);
free_memory:
    free(l.source);
    free(l.target);
    return rc;
}
