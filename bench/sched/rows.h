/* SPDX-License-Identifier: MIT */
/* rows.h - the keys of --sched with their goals. */
#ifndef BENCH_SCHED_ROWS_H
#define BENCH_SCHED_ROWS_H

#include <stdint.h>

#include "../goals.h"
#include "sched/event.h"

/* X(key, unit, judge, goal, sentence).  A decision is the end of one run and what starts then. */
#define B_SCHED_ROWS(X)                                                                            \
    X(clock_ns, "ns", B_ANY, 0, "one reading of the clock: subtracted from all times below")       \
    X(interrupted, "", B_ANY, 0, "samples left out, since another program had the CPU")            \
    X(ns_per_decision_8, "ns", B_AT_MOST, 400, "mean, 24 shapes, 8 devices")                       \
    X(p50_ns_per_decision_8, "ns", B_ANY, 0, "half of them")                                       \
    X(p99_ns_per_decision_8, "ns", B_ANY, 0, "99 of 100")                                          \
    X(p999_ns_per_decision_8, "ns", B_AT_MOST, 20000, "999 of 1,000")                              \
    X(ns_per_decision_1000, "ns", B_AT_MOST, 1000, "mean, 24 shapes, 1,000 devices")               \
    X(p50_ns_per_decision_1000, "ns", B_ANY, 0, "half of them")                                    \
    X(p99_ns_per_decision_1000, "ns", B_ANY, 0, "99 of 100")                                       \
    X(p999_ns_per_decision_1000, "ns", B_AT_MOST, 20000, "999 of 1,000")                           \
    X(ns_per_decision_10000, "ns", B_AT_MOST, 1200, "mean, 24 shapes, 10,000 devices")             \
    X(p50_ns_per_decision_10000, "ns", B_ANY, 0, "half of them")                                   \
    X(p99_ns_per_decision_10000, "ns", B_ANY, 0, "99 of 100")                                      \
    X(p999_ns_per_decision_10000, "ns", B_AT_MOST, 20000, "999 of 1,000")                          \
    X(few_tasks_ns_8, "ns", B_ANY, 0, "mean with 1,000 tasks, 8 devices")                          \
    X(few_tasks_ns_1000, "ns", B_ANY, 0, "mean with 1,000 tasks, 1,000 devices")                   \
    X(tasks_many_vs_few_8, "", B_AT_MOST, 1.5, "all tasks over 1,000 tasks, 8 devices")            \
    X(tasks_many_vs_few_1000, "", B_AT_MOST, 1.5, "all tasks over 1,000 tasks, 1,000 devices")     \
    X(shapes_1000_vs_24_8, "", B_AT_MOST, 2, "1,000 shapes over 24, 8 devices")                    \
    X(shapes_1000_vs_24_1000, "", B_AT_MOST, 2, "1,000 shapes over 24, 1,000 devices")             \
    X(promise_ns, "ns", B_AT_MOST, 2000, "a new head: its try and its promise, 1,000 devices")     \
    X(p50_promise_ns, "ns", B_ANY, 0, "half of them")                                              \
    X(p99_promise_ns, "ns", B_ANY, 0, "99 of 100")                                                 \
    X(submit_ns, "ns", B_ANY, 0, "a task is put in its shape")                                     \
    X(bytes_per_task, "bytes", B_AT_MOST, 32, "memory of the object for each task")                \
    X(bytes_per_shape, "bytes", B_ANY, 0, "the same for each shape")                               \
    X(scans_while_blocked, "shapes", B_AT_MOST, 0, "examined while nothing they need has changed") \
    X(scans_per_start_8, "shapes", B_AT_MOST, 3, "examined per start, 8 devices")                  \
    X(scans_per_start_1000, "shapes", B_AT_MOST, 3, "examined per start, 1,000 devices")           \
    X(scans_per_start_10000, "shapes", B_AT_MOST, 3, "examined per start, 10,000 devices")         \
    X(scans_per_start_8_shapes_1000, "shapes", B_AT_MOST, 3, "the same, 1,000 shapes, 8 devices")  \
    X(scans_per_start_1000_shapes_1000, "shapes", B_AT_MOST, 3, "and 1,000 devices")               \
    X(utilisation_vs_bound_flow, "", B_AT_LEAST, 0.90, "LEARNED: narrow jobs and wide ones")       \
    X(utilisation_vs_bound_shares, "", B_AT_LEAST, 0.90, "LEARNED: shares, 24 and 80 GiB")         \
    X(utilisation_vs_bound_models, "", B_AT_LEAST, 0.90, "LEARNED: three models, batch jobs")      \
    X(held_for_head_flow, "", B_AT_MOST, 0.05, "LEARNED: share of device-seconds")                 \
    X(held_for_head_shares, "", B_AT_MOST, 0.05, "LEARNED: share of device-seconds")               \
    X(held_for_head_models, "", B_AT_MOST, 0.05, "LEARNED: share of device-seconds")               \
    X(late_heads, "tasks", B_AT_MOST, 0, "heads that began after their promise, all workloads")    \
    X(apart_delay_s, "s", B_AT_MOST, 0, "longest delay of a head with APART, all workloads")

#define B_SCHED_X(name, unit, judge, goal, text) B_SCHED_##name,
enum b_sched_row { B_SCHED_ROWS(B_SCHED_X) B_SCHED_ROW_COUNT };
#undef B_SCHED_X

/* What the run is asked to do. */
struct b_sched_set {
    uint32_t tasks;           /* that wait at first */
    enum gpi_passing passing; /* of the decisions that are timed */
    double load;              /* of the workloads; 0: 0.85 to 0.95 */
    int json;
};

/* Each cell writes its figures, NaN where there is none.  Returns: 0, or -1 after a complaint. */
int b_sched_decisions(const struct b_sched_set *set, double *figures);
int b_sched_promises(const struct b_sched_set *set, double *figures);
int b_sched_blocked(const struct b_sched_set *set, double *figures);
int b_sched_bytes(const struct b_sched_set *set, double *figures);

extern const struct b_goals b_sched_rows;

#endif
