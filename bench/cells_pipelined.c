/* SPDX-License-Identifier: MIT */
/*
 * cells_pipelined.c - many small tasks over 8 workers: how many a second, what each costs the host.
 * Ours has a time limit per task.
 */
#include "cells.h"
#include "measure.h"
#include "ours.h"
#include "place.h"
#include "raw_pipe.h"
#include "raw_ring.h"
#include "report.h"
#include "stream.h"

#define ROUNDS 40
#define QUICK_ROUNDS 4
#define QUEUE_SIZE 4096

/* What can be measured, raw or ours. */
enum flow { PIPE, RING, SUBMIT, MANY, RUN, THREAD, FLOWS };

#define NO_KEY B_KEY_COUNT

/* The keys of a window: which flow over which. */
static const struct row {
    unsigned window, cpus;
    enum flow raw, ours;
    unsigned rate, cpu;
} rows[] = {
    { 1, 1, PIPE, SUBMIT, B_KEY_pipelined_vs_raw_w1_1cpu, B_KEY_host_ns_vs_raw_w1_1cpu },
    { 8, 1, PIPE, SUBMIT, B_KEY_pipelined_vs_raw_w8_1cpu, B_KEY_host_ns_vs_raw_w8_1cpu },
    { 64, 1, PIPE, SUBMIT, B_KEY_pipelined_vs_raw_w64_1cpu, B_KEY_host_ns_vs_raw_w64_1cpu },
    { 1, 2, PIPE, SUBMIT, B_KEY_pipelined_vs_raw_w1, B_KEY_host_ns_vs_raw_w1 },
    { 1, 2, PIPE, RUN, B_KEY_pipelined_run_vs_raw_w1, NO_KEY },
    { 1, 2, PIPE, THREAD, B_KEY_pipelined_thread_vs_raw_w1, NO_KEY },
    { 8, 2, PIPE, SUBMIT, B_KEY_pipelined_vs_raw_w8, B_KEY_host_ns_vs_raw_w8 },
    { 8, 2, PIPE, RUN, B_KEY_pipelined_run_vs_raw_w8, NO_KEY },
    { 8, 2, PIPE, THREAD, B_KEY_pipelined_thread_vs_raw_w8, NO_KEY },
    { 64, 2, PIPE, SUBMIT, B_KEY_pipelined_vs_raw_w64, B_KEY_host_ns_vs_raw_w64 },
    { 64, 2, PIPE, MANY, B_KEY_pipelined_many_vs_raw_w64, B_KEY_host_ns_many_vs_raw_w64 },
    { 64, 2, PIPE, RUN, B_KEY_pipelined_run_vs_raw_w64, B_KEY_host_ns_run_vs_raw_w64 },
    { 64, 2, PIPE, THREAD, B_KEY_pipelined_thread_vs_raw_w64, B_KEY_host_ns_thread_vs_raw_w64 },
    { 64, 2, PIPE, RING, B_KEY_ring_vs_raw_w64, NO_KEY },
    { 64, 2, RING, SUBMIT, B_KEY_pipelined_vs_ring_w64, NO_KEY },
    { 64, 2, RING, MANY, B_KEY_pipelined_many_vs_ring_w64, NO_KEY },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static int concerns(const struct row *row, const struct b_cell *cell)
{
    return row->window == cell->window && row->cpus == cell->cpus &&
           (b_is_wanted(row->rate) || (row->cpu != NO_KEY && b_is_wanted(row->cpu)));
}

/* Measures the rows of a cell by turns: a pair of each, then the next pair of each. */
static int measure(const struct b_cell *cell, const struct b_side *sides)
{
    static struct b_pairs pairs[ROWS]; /* a cell is a process of its own */
    struct b_round warm;
    size_t i, round;

    for (round = 0; round < b_effort(ROUNDS, QUICK_ROUNDS); round++)
        for (i = 0; i < ROWS; i++) {
            const struct b_side *raw = &sides[rows[i].raw], *ours = &sides[rows[i].ours];

            if (!concerns(&rows[i], cell))
                continue;
            if (round == 0 && (raw->measure(raw->user, &warm) || ours->measure(ours->user, &warm)))
                return -1;
            if (b_pairs_take(&pairs[i], raw, ours))
                return -1;
        }
    for (i = 0; i < ROWS; i++) {
        if (pairs[i].n == 0)
            continue;
        b_report_pairs(rows[i].rate, &pairs[i], B_VALUE, 1e-6);
        if (rows[i].cpu != NO_KEY)
            b_report_pairs(rows[i].cpu, &pairs[i], B_CPU, 1);
    }
    return 0;
}

static int measure_flows(const struct b_cell *cell, struct b_raw_pool *pipes,
                         struct b_ring_pool *rings, struct b_ours *caller, struct b_ours *thread)
{
    struct b_stream submit, many, run, threaded;
    struct b_raw_stream raw;
    const struct b_side sides[FLOWS] = {
        [PIPE] = { b_raw_round, &raw },         [RING] = { b_ring_round, rings },
        [SUBMIT] = { b_stream_round, &submit }, [MANY] = { b_stream_round, &many },
        [RUN] = { b_stream_round, &run },       [THREAD] = { b_stream_round, &threaded }
    };

    b_raw_stream_init(&raw, pipes, cell->window);
    b_stream_init(&submit, caller, B_BY_SUBMIT);
    b_stream_init(&many, caller, B_BY_MANY);
    b_stream_init(&run, caller, B_BY_RUN);
    b_stream_init(&threaded, thread, B_BY_SUBMIT);
    return measure(cell, sides);
}

/* Opens both dispatchers. */
static int measure_ours(const struct b_cell *cell, struct b_raw_pool *pipes,
                        struct b_ring_pool *rings)
{
    struct b_ours_options options = { .workers = B_WORKERS,
                                      .cpu = b_cpu_number(cell->cpus - 1),
                                      .drive = GPUD_DRIVE_CALLER,
                                      .queue_size = QUEUE_SIZE,
                                      .sent_ahead = cell->window,
                                      .task_limit = 10 * B_S };
    struct b_ours caller, thread;
    int rc = -1;

    if (b_ours_open(&caller, &options))
        return -1;
    options.drive = GPUD_DRIVE_THREAD;
    if (b_ours_open(&thread, &options) == 0) {
        rc = measure_flows(cell, pipes, rings, &caller, &thread);
        b_ours_close(&thread);
    }
    b_ours_close(&caller);
    return rc;
}

int b_cell_pipelined(const struct b_cell *cell)
{
    int cpu = b_cpu_number(cell->cpus - 1), rc = -1;
    struct b_ring_pool rings;
    struct b_raw_pool pipes;

    if (b_pin(0, b_cpu_number(0)))
        return b_complain("this process could not be pinned");
    if (b_raw_pool_open(&pipes, B_WORKERS, cpu))
        return b_complain("the raw workers could not be forked");
    if (b_ring_pool_open(&rings, B_WORKERS, cpu)) {
        (void)b_complain("the ring's workers could not be forked");
    } else {
        rc = measure_ours(cell, &pipes, &rings);
        b_ring_pool_close(&rings);
    }
    b_raw_pool_close(&pipes);
    return rc;
}
