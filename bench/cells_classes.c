/* SPDX-License-Identifier: MIT */
/*
 * cells_classes.c - many small tasks over 8 workers on fakes: of one class, of eight classes by
 * turns, and in a dispatcher without classes.
 */
#include "cells.h"
#include "measure.h"
#include "ours.h"
#include "pairs.h"
#include "place.h"
#include "pooled.h"
#include "report.h"
#include "stream.h"

#define ROUNDS 40
#define QUICK_ROUNDS 4
#define QUEUE_SIZE 4096
#define WORKERS 8

enum flow { PLAIN, ONE, EIGHT, FLOWS };

/* The keys of a window: which flow over which. */
static const struct row {
    unsigned window, cpus;
    enum flow raw, ours;
    unsigned key;
} rows[] = {
    { 8, 1, ONE, EIGHT, B_KEY_classes8_vs_one_w8_1cpu },
    { 8, 1, PLAIN, ONE, B_KEY_one_class_vs_plain_w8_1cpu },
    { 8, 1, PLAIN, EIGHT, B_KEY_classes8_vs_plain_w8_1cpu },
    { 64, 1, ONE, EIGHT, B_KEY_classes8_vs_one_w64_1cpu },
    { 64, 1, PLAIN, ONE, B_KEY_one_class_vs_plain_w64_1cpu },
    { 64, 1, PLAIN, EIGHT, B_KEY_classes8_vs_plain_w64_1cpu },
    { 8, 2, ONE, EIGHT, B_KEY_classes8_vs_one_w8 },
    { 8, 2, PLAIN, ONE, B_KEY_one_class_vs_plain_w8 },
    { 8, 2, PLAIN, EIGHT, B_KEY_classes8_vs_plain_w8 },
    { 64, 2, ONE, EIGHT, B_KEY_classes8_vs_one_w64 },
    { 64, 2, PLAIN, ONE, B_KEY_one_class_vs_plain_w64 },
    { 64, 2, PLAIN, EIGHT, B_KEY_classes8_vs_plain_w64 },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* Takes a pair of each row by turns. */
static int measure(const struct b_cell *cell, struct b_ours *ours)
{
    static struct b_pairs pairs[ROWS]; /* a cell is a process of its own */
    static struct b_stream streams[FLOWS];
    struct b_side sides[FLOWS];
    struct b_round warm;
    size_t i, round;

    for (i = 0; i < FLOWS; i++) {
        b_stream_init(&streams[i], &ours[i], B_BY_SUBMIT);
        sides[i] = (struct b_side){ b_stream_round, &streams[i] };
        if (b_stream_round(&streams[i], &warm))
            return -1;
    }
    for (round = 0; round < b_effort(ROUNDS, QUICK_ROUNDS); round++)
        for (i = 0; i < ROWS; i++)
            if (rows[i].window == cell->window && rows[i].cpus == cell->cpus &&
                b_is_wanted(rows[i].key) &&
                b_pairs_take(&pairs[i], &sides[rows[i].raw], &sides[rows[i].ours]))
                return -1;
    for (i = 0; i < ROWS; i++)
        if (pairs[i].n > 0)
            b_report_pairs(rows[i].key, &pairs[i], B_VALUE, 1e-6);
    return 0;
}

/* n classes, which have the 8 workers together. */
static int open_classes(struct b_ours *o, const struct b_cell *cell, unsigned n)
{
    static const char *const names[WORKERS] = { "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7" };
    const struct b_pooled_options options = { .devices = "fake:8",
                                              .queue_size = QUEUE_SIZE,
                                              .cpu = b_cpu_number(cell->cpus - 1) };
    struct b_pooled_class class[WORKERS];
    unsigned i;

    for (i = 0; i < n; i++)
        class[i] = (struct b_pooled_class){ .name = names[i],
                                            .devices = 1,
                                            .workers = WORKERS / n,
                                            .sent_ahead = cell->window,
                                            .task_limit = 10 * B_S };
    return b_pooled_open(o, &options, class, n);
}

int b_cell_classes(const struct b_cell *cell)
{
    const struct b_ours_options options = { .workers = WORKERS,
                                            .fakes = 1,
                                            .cpu = b_cpu_number(cell->cpus - 1),
                                            .drive = GPUD_DRIVE_CALLER,
                                            .queue_size = QUEUE_SIZE,
                                            .sent_ahead = cell->window,
                                            .task_limit = 10 * B_S };
    struct b_ours ours[FLOWS];
    int rc = -1;

    if (b_pin(0, b_cpu_number(0)))
        return b_complain("this process could not be pinned");
    if (b_ours_open(&ours[PLAIN], &options))
        return -1;
    if (open_classes(&ours[ONE], cell, 1) == 0) {
        if (open_classes(&ours[EIGHT], cell, WORKERS) == 0) {
            rc = measure(cell, ours);
            b_pooled_close(&ours[EIGHT]);
        }
        b_pooled_close(&ours[ONE]);
    }
    b_ours_close(&ours[PLAIN]);
    return rc;
}
