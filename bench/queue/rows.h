/* SPDX-License-Identifier: MIT */
/* rows.h - the keys of --queue with their goals, and its cells. */
#ifndef BENCH_QUEUE_ROWS_H
#define BENCH_QUEUE_ROWS_H

#include <stdint.h>

#include "../goals.h"
#include "disk.h"

/* X(key, unit, judge, goal, sentence). */
#define BQ_RATE_ROWS(X, op, n)                                                        \
    X(op##_##n, "tasks/s", B_ANY, 0, "the store, " #n " per commit")                  \
    X(op##_##n##_bare, "tasks/s", B_ANY, 0, "the same rows without the store")        \
    X(op##_##n##_table, "tasks/s", B_ANY, 0, "one table without index")               \
    X(op##_##n##_vs_bare, "", B_AT_LEAST, 0.8, "median of the rounds' ratios")        \
    X(op##_##n##_vs_table, "", B_AT_LEAST, 0.3, "median of the rounds' ratios")       \
    X(op##_##n##_cpu_us, "us", B_ANY, 0, "CPU time per task, the store")              \
    X(op##_##n##_cpu_vs_bare, "", B_ANY, 0, "CPU time, the store over the bare loop") \
    X(op##_##n##_rows, "rows", B_ANY, 0, "that the store writes per task")

#define BQ_ROWS(X)                                                                                \
    X(sync_us, "us", B_ANY, 0, "append 4 KiB and fdatasync: what one commit waits for")           \
    X(sync_after_us, "us", B_ANY, 0, "the same after the cells: has the disk changed?")           \
    BQ_RATE_ROWS(X, submit, 1)                                                                    \
    BQ_RATE_ROWS(X, claim, 1)                                                                     \
    BQ_RATE_ROWS(X, complete, 1)                                                                  \
    BQ_RATE_ROWS(X, submit, 64)                                                                   \
    BQ_RATE_ROWS(X, claim, 64)                                                                    \
    BQ_RATE_ROWS(X, complete, 64)                                                                 \
    BQ_RATE_ROWS(X, submit, 1024)                                                                 \
    BQ_RATE_ROWS(X, claim, 1024)                                                                  \
    BQ_RATE_ROWS(X, complete, 1024)                                                               \
    X(list_10000_s, "s", B_AT_MOST, 0.5, "10,000 tasks by one submit, an empty store")            \
    X(list_fifth_vs_first, "", B_AT_MOST, 1.2, "the fifth such list over the first")              \
    X(list_fifth_same_name, "", B_ANY, 0, "the same, all five with one name")                     \
    X(claim_64_empty_us, "us", B_ANY, 0, "find 64 tasks and claim them, nothing else waits")      \
    X(claim_64_behind_held, "", B_AT_MOST, 2, "the same with 100,000 HELD tasks, over that")      \
    X(claim_64_behind_ready, "", B_AT_MOST, 2, "with 100,000 READY of another shape, over that")  \
    X(open_many_s, "s", B_AT_MOST, 2, "open with 10^6 tasks, no page of the file in memory")      \
    X(open_many_warm_s, "s", B_ANY, 0, "the same again")                                          \
    X(open_many_rss_mib, "MiB", B_AT_MOST, 64, "memory of the process then")                      \
    X(many_rss_mib, "MiB", B_AT_MOST, 64, "memory of it after the commits below")                 \
    X(many_bytes_per_task, "bytes", B_ANY, 0, "of the file")                                      \
    X(many_list_s, "s", B_ANY, 0, "the last 10,000 of these tasks by one submit")                 \
    X(many_first_submit_s, "s", B_AT_MOST, 2, "the first 64 tasks that are submitted after open") \
    X(submit_1_many_vs_few, "", B_AT_MOST, 1.3, "time with 10^6 tasks over that with 1,000")      \
    X(claim_1_many_vs_few, "", B_AT_MOST, 1.3, "the same, 1 per commit")                          \
    X(complete_1_many_vs_few, "", B_AT_MOST, 1.3, "the same")                                     \
    X(submit_64_many_vs_few, "", B_AT_MOST, 1.3, "the same, 64 per commit")                       \
    X(claim_64_many_vs_few, "", B_AT_MOST, 1.3, "the same")                                       \
    X(complete_64_many_vs_few, "", B_AT_MOST, 1.3, "the same")                                    \
    X(start_us, "us", B_ANY, 0, "from the submit of a task to its start in a ready worker")       \
    X(start_reply_us, "us", B_ANY, 0, "the same until the reply: the submit is committed")        \
    X(start_commits_us, "us", B_ANY, 0, "the two commits of it by a store without an agent")      \
    X(start_beyond_us, "us", B_AT_MOST, 1000, "median of the differences of both")                \
    X(start_beyond_p10_us, "us", B_ANY, 0, "difference of the 10th percentiles")                  \
    X(adopt_64_ms, "ms", B_AT_MOST, 100, "exec of an agent to its reply, 64 commands run")        \
    X(adopt_64_cpu_ms, "ms", B_ANY, 0, "CPU time of that agent")                                  \
    X(adopt_0_ms, "ms", B_ANY, 0, "the same without tasks")                                       \
    X(adopt_part_ms, "ms", B_ANY, 0, "median of the differences: the adoption itself")            \
    X(commands_us, "us", B_ANY, 0, "per command, 8 at a time: true, from submit to the last end") \
    X(commands_xargs_us, "us", B_ANY, 0, "the same by xargs -P 8")                                \
    X(commands_tsp_us, "us", B_ANY, 0, "by task-spooler, tsp -S 8: a submit for each command")    \
    X(commands_parallel_us, "us", B_ANY, 0, "by GNU parallel -j 8")                               \
    X(commands_vs_xargs, "", B_ANY, 0, "the queue over it, median of the rounds' ratios")         \
    X(commands_vs_tsp, "", B_ANY, 0, "the same")                                                  \
    X(commands_vs_parallel, "", B_ANY, 0, "the same")                                             \
    X(agent_list_s, "s", B_ANY, 0, "the last 10,000 of 10^6 tasks by one submit to an agent")     \
    X(agent_rss_mib, "MiB", B_AT_MOST, 64, "memory of the agent then, with `ls` and `wait`")      \
    X(agent_peak_mib, "MiB", B_ANY, 0, "the largest one, since its start")

#define BQ_X(name, unit, judge, goal, text) BQ_##name##_ROW,
enum bq_row { BQ_ROWS(BQ_X) BQ_ROW_COUNT };
#undef BQ_X

/* The disk and the sizes of a run. */
struct bq_set {
    struct bq_disk disk;
    uint32_t tasks;   /* of the large store */
    uint32_t blocked; /* that wait before those that are claimed */
    uint32_t list;    /* tasks by one submit */
};

/* Each cell writes its figures, NaN where there is none.  Returns: 0, or -1 after a complaint. */
int bq_rates(const struct bq_set *set, double *figures);
int bq_lists(const struct bq_set *set, double *figures);
int bq_blocked(const struct bq_set *set, double *figures);
int bq_many_fill(const struct bq_set *set, double *figures);
int bq_many_open(const struct bq_set *set, double *figures);
int bq_many_use(const struct bq_set *set, double *figures);
int bq_warm(const struct bq_set *set, double *figures);
int bq_adopt(const struct bq_set *set, double *figures);
int bq_commands(const struct bq_set *set, double *figures);
int bq_waiting(const struct bq_set *set, double *figures);

/* The program as a worker of the agent in cell warm.  Returns an exit status if it is none. */
int bq_warm_worker(void);

/* Prints the statements that SQLite runs for each operation of the store. */
int bq_statements(const struct bq_set *set, double *figures);

extern const struct b_goals bq_rows;

#endif
