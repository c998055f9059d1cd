/* SPDX-License-Identifier: MIT */
/* cells_scale.c - many small tasks over 1 to 64 workers, and over workers that take batches. */
#include "cells.h"
#include "measure.h"
#include "ours.h"
#include "place.h"
#include "raw_pipe.h"
#include "report.h"
#include "stream.h"

#define ROUNDS 30
#define QUICK_ROUNDS 3
#define QUEUE_SIZE 4096
#define MORE_QUEUE 16384 /* 64 workers with 64 tasks each, and as many again */

static const struct row {
    unsigned workers;
    enum b_way way;
    unsigned rate, cpu;
} rows[] = {
    { 1, B_BY_SUBMIT, B_KEY_workers1_vs_raw_w64, B_KEY_host_ns_workers1_vs_raw },
    { 2, B_BY_SUBMIT, B_KEY_workers2_vs_raw_w64, B_KEY_host_ns_workers2_vs_raw },
    { 2, B_BY_MANY, B_KEY_workers2_many_vs_raw_w64, B_KEY_host_ns_workers2_many_vs_raw },
    { 4, B_BY_SUBMIT, B_KEY_workers4_vs_raw_w64, B_KEY_host_ns_workers4_vs_raw },
    { 8, B_BY_SUBMIT, B_KEY_workers8_vs_raw_w64, B_KEY_host_ns_workers8_vs_raw },
    { 16, B_BY_SUBMIT, B_KEY_workers16_vs_raw_w64, B_KEY_host_ns_workers16_vs_raw },
    { 32, B_BY_SUBMIT, B_KEY_workers32_vs_raw_w64, B_KEY_host_ns_workers32_vs_raw },
    { 64, B_BY_SUBMIT, B_KEY_workers64_vs_raw_w64, B_KEY_host_ns_workers64_vs_raw },
};

static int take_pairs(struct b_raw_pool *pool, unsigned window, struct b_stream *stream,
                      struct b_pairs *pairs)
{
    struct b_raw_stream pipes;
    struct b_side raw = { b_raw_round, &pipes }, ours = { b_stream_round, stream };
    struct b_round warm;
    size_t i;

    b_raw_stream_init(&pipes, pool, window);
    if (b_stream_round(stream, &warm))
        return -1;
    for (i = 0; i < b_effort(ROUNDS, QUICK_ROUNDS); i++)
        if (b_pairs_take(pairs, &raw, &ours))
            return -1;
    return 0;
}

/* 0, -1, or B_NOT_BUILT. */
static int compare(const struct b_ours_options *options, enum b_way way, struct b_pairs *pairs)
{
    struct b_stream stream;
    struct b_raw_pool pool;
    struct b_ours ours;
    int rc;

    *pairs = (struct b_pairs){ .n = 0 };
    if (b_raw_pool_open(&pool, options->workers, options->cpu))
        return b_complain("the raw workers could not be forked");
    rc = b_ours_open(&ours, options);
    if (rc == 0) {
        b_stream_init(&stream, &ours, way);
        rc = take_pairs(&pool, options->sent_ahead, &stream, pairs);
        b_ours_close(&ours);
    }
    b_raw_pool_close(&pool);
    return rc;
}

int b_cell_scale(const struct b_cell *cell)
{
    struct b_ours_options options = { .cpu = b_cpu_number(cell->cpus - 1),
                                      .drive = GPUD_DRIVE_CALLER,
                                      .queue_size = MORE_QUEUE,
                                      .sent_ahead = cell->window,
                                      .task_limit = 10 * B_S };
    struct b_pairs pairs;
    size_t i;

    if (b_pin(0, b_cpu_number(0)))
        return b_complain("this process could not be pinned");
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!b_is_wanted(rows[i].rate) && !b_is_wanted(rows[i].cpu))
            continue;
        options.workers = rows[i].workers;
        if (compare(&options, rows[i].way, &pairs))
            return -1;
        b_report_pairs(rows[i].rate, &pairs, B_VALUE, 1e-6);
        b_report_pairs(rows[i].cpu, &pairs, B_CPU, 1);
    }
    return 0;
}

int b_cell_batch(const struct b_cell *cell)
{
    unsigned key = cell->window == 8 ? B_KEY_pipelined_batch_vs_raw_w8
                                     : B_KEY_pipelined_batch_vs_raw_w64;
    struct b_ours_options options = { .workers = B_WORKERS,
                                      .cpu = b_cpu_number(cell->cpus - 1),
                                      .drive = GPUD_DRIVE_CALLER,
                                      .queue_size = QUEUE_SIZE,
                                      .sent_ahead = cell->window,
                                      .max_batch = cell->window,
                                      .task_limit = 10 * B_S };
    struct b_pairs pairs;
    int rc;

    if (b_pin(0, b_cpu_number(0)))
        return b_complain("this process could not be pinned");
    rc = compare(&options, B_BY_SUBMIT, &pairs);
    if (rc == B_NOT_BUILT) {
        b_report_skipped(key, "this build has no process_batch");
        return 0;
    }
    if (rc == 0)
        b_report_pairs(key, &pairs, B_VALUE, 1e-6);
    return rc;
}
