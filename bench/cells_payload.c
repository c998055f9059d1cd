/* SPDX-License-Identifier: MIT */
/* cells_payload.c - 16 MiB handed to a worker, in place and copied by submit; 16 MiB back from it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cells.h"
#include "measure.h"
#include "ours.h"
#include "place.h"
#include "processes.h"
#include "report.h"

#define ROUNDS 9
#define SMALL_TRIPS 300
#define COPIES 8
#define SIZE (UINT64_C(16) << 20)
#define BUDGET (UINT64_C(256) << 20)

struct load {
    struct b_ours *ours;
    struct gpud_task_desc small, big, back;
    struct b_order order, back_order; /* the latter asks for a result of SIZE bytes */
    char *source, *target; /* SIZE bytes each; the source orders nothing */
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

static int measure(struct load *l, unsigned cpus)
{
    double small[ROUNDS], inplace[ROUNDS], copied[ROUNDS], plain[ROUNDS];
    double back[ROUNDS];
    uint64_t faulted = 0, faulted_back = 0, before;
    double trip, copy;
    int i;

    (void)b_trips(small_trip, l, SMALL_TRIPS);
    (void)b_trips(inplace_trip, l, SMALL_TRIPS);
    (void)b_trips(copied_trip, l, COPIES);
    (void)b_trips(plain_copy, l, COPIES);
    (void)b_trips(result_trip, l, SMALL_TRIPS);
    (void)faults(l);
    for (i = 0; i < ROUNDS; i++) {
        small[i] = b_trips(small_trip, l, SMALL_TRIPS);
        before = faults(l);
        inplace[i] = b_trips(inplace_trip, l, SMALL_TRIPS);
        copied[i] = b_trips(copied_trip, l, COPIES);
        faulted += faults(l) - before;
        plain[i] = b_trips(plain_copy, l, COPIES);
        before = faults(l);
        back[i] = b_trips(result_trip, l, SMALL_TRIPS);
        faulted_back += faults(l) - before;
        if (small[i] < 0 || inplace[i] < 0 || copied[i] < 0 || back[i] < 0)
            return -1;
    }
    trip = b_median(small, ROUNDS);
    if (cpus == 2) {
        b_report(B_KEY_payload_inplace_vs_64b, b_median(inplace, ROUNDS) / trip, trip, b_median(inplace, ROUNDS));
        return 0;
    }
    /* Here a trip is short, so taking it off the copied one adds no noise. */
    copy = b_median(copied, ROUNDS) - trip;
    b_report(B_KEY_payload_inplace_vs_64b_1cpu, b_median(inplace, ROUNDS) / trip, trip, b_median(inplace, ROUNDS));
    b_report(B_KEY_payload_copy_vs_memcpy, b_median(plain, ROUNDS) / copy, (double)SIZE / b_median(plain, ROUNDS) / 1e3,
             (double)SIZE / copy / 1e3);
    b_report(B_KEY_payload_faults_per_task, (double)faulted / (ROUNDS * (SMALL_TRIPS + COPIES)), NAN, NAN);
    b_report(B_KEY_payload_result_vs_64b_1cpu, b_median(back, ROUNDS) / trip, trip, b_median(back, ROUNDS));
    b_report(B_KEY_result_faults_per_task, (double)faulted_back / (ROUNDS * SMALL_TRIPS), NAN, NAN);
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
    struct load l = { .ours = &ours };
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
