/* SPDX-License-Identifier: MIT */
/* rows.h - the keys of --view with their goals, and its cells. */
#ifndef BENCH_VIEW_ROWS_H
#define BENCH_VIEW_ROWS_H

#include "../goals.h"
#include "../scratch.h"

/* X(key, unit, judge, goal, sentence).  Times of programs are from their start to their end. */
#define BV_ROWS(X)                                                                          \
    X(report_100k_s, "s", B_AT_MOST, 0.5, "report of 100,000 attempts: a file to a page")   \
    X(report_100k_cpu_s, "s", B_ANY, 0, "CPU time of it")                                   \
    X(report_100k_mib, "MiB", B_AT_MOST, 3, "the page")                                     \
    X(report_100k_peak_mib, "MiB", B_ANY, 0, "memory of the program, at most")              \
    X(json_100k_s, "s", B_ANY, 0, "report --json of the same")                              \
    X(csv_100k_s, "s", B_ANY, 0, "report --csv of the same")                                \
    X(trace_100k_s, "s", B_AT_MOST, 1, "trace of the same")                                 \
    X(trace_100k_cpu_s, "s", B_ANY, 0, "CPU time of it")                                    \
    X(trace_beyond_csv_mib, "MiB", B_AT_MOST, 1,                                            \
      "its memory beyond that of csv, which keeps nothing")                                 \
    X(report_1m_s, "s", B_AT_MOST, 5, "report of 1,000,000 attempts")                       \
    X(report_1m_cpu_s, "s", B_ANY, 0, "CPU time of it")                                     \
    X(report_1m_mib, "MiB", B_ANY, 0, "the page")                                           \
    X(report_1m_peak_mib, "MiB", B_AT_MOST, 64, "memory of the program, at most")           \
    X(snapshot_us, "us", B_AT_MOST, 50, "CPU time to write a snapshot: 8 GPUs, 64 batches") \
    X(snapshot_kib, "KiB", B_AT_MOST, 16, "that snapshot, a line")                          \
    X(metrics_us, "us", B_AT_MOST, 2000, "CPU time to write metrics: 8 GPUs, 32 classes")   \
    X(metrics_kib, "KiB", B_AT_MOST, 64, "these metrics")

#define BV_X(name, unit, judge, goal, text) BV_##name##_ROW,
enum bv_row { BV_ROWS(BV_X) BV_ROW_COUNT };
#undef BV_X

/* Each cell writes its figures, NaN where there is none.  Returns: 0, or -1 after a complaint. */
int bv_verbs(struct b_scratch *files, double *figures); /* the program with recordings */
int bv_present(double *figures);                        /* the present moment */

/* Attempts of the two nights. */
uint32_t bv_few(void);
uint32_t bv_many(void);

#endif
