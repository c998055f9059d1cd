/* SPDX-License-Identifier: MIT */
/* report.h - the keys this program measures, their goals, and how figures are printed. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "pairs.h"

/* How a value is judged. */
enum b_judge {
    B_ANY = 0,      /* printed only */
    B_AT_MOST = 1,  /* at most the goal */
    B_AT_LEAST = 2, /* at least the goal */
    B_NEAR_ONE = 3  /* from 1 less the goal to 1 plus the goal */
};

/* X(key, unit of raw_ and ours_, judge, goal, sentence): the one list; gpu/ has its own. */
#ifdef BENCH_KEYS
#include BENCH_KEYS
#else
#define B_KEY_MAP(X)                                                                               \
    X(rtt_vs_pipe_1cpu, "us", B_AT_MOST, 1.25, "round trip of one 64 B task, all on one CPU")      \
    X(rtt_vs_pipe_2cpu, "us", B_AT_MOST, 1.10, "the same, host and worker on a CPU each")          \
    X(pipelined_vs_raw_w1, "M/s", B_AT_LEAST, 0.90,                                                \
      "64 B tasks a second, 8 workers, 1 sent ahead")                                              \
    X(pipelined_vs_raw_w8, "M/s", B_AT_LEAST, 0.85, "the same, 8 sent ahead")                      \
    X(pipelined_vs_raw_w64, "M/s", B_AT_LEAST, 0.50, "the same, 64 sent ahead")                    \
    X(pipelined_vs_raw_w1_1cpu, "M/s", B_ANY, 0, "1 sent ahead, all on one CPU")                   \
    X(pipelined_vs_raw_w8_1cpu, "M/s", B_ANY, 0, "8 sent ahead, all on one CPU")                   \
    X(pipelined_vs_raw_w64_1cpu, "M/s", B_ANY, 0, "64 sent ahead, all on one CPU")                 \
    X(pipelined_run_vs_raw_w1, "M/s", B_ANY, 0, "1 sent ahead, run() with a source")               \
    X(pipelined_run_vs_raw_w8, "M/s", B_ANY, 0, "8 sent ahead, run() with a source")               \
    X(pipelined_run_vs_raw_w64, "M/s", B_AT_LEAST, 0.35, "64 sent ahead, run() with a source")     \
    X(pipelined_thread_vs_raw_w1, "M/s", B_ANY, 0, "1 sent ahead, drive THREAD")                   \
    X(pipelined_thread_vs_raw_w8, "M/s", B_ANY, 0, "8 sent ahead, drive THREAD")                   \
    X(pipelined_thread_vs_raw_w64, "M/s", B_AT_LEAST, 0.35, "64 sent ahead, drive THREAD")         \
    X(host_ns_vs_raw_w1, "ns", B_AT_MOST, 1.2, "host CPU time per task, 1 sent ahead")             \
    X(host_ns_vs_raw_w8, "ns", B_AT_MOST, 1.3, "host CPU time per task, 8 sent ahead")             \
    X(host_ns_vs_raw_w64, "ns", B_AT_MOST, 2.5, "host CPU time per task, 64 sent ahead")           \
    X(host_ns_vs_raw_w1_1cpu, "ns", B_ANY, 0, "the same, 1 sent ahead, all on one CPU")            \
    X(host_ns_vs_raw_w8_1cpu, "ns", B_ANY, 0, "the same, 8 sent ahead, all on one CPU")            \
    X(host_ns_vs_raw_w64_1cpu, "ns", B_ANY, 0, "the same, 64 sent ahead, all on one CPU")          \
    X(restart_vs_forkserver, "us", B_AT_MOST, 1.5, "worker killed to next task started, two CPUs") \
    X(restart_vs_forkserver_1cpu, "us", B_ANY, 0, "the same, all on one CPU")                      \
    X(restart_vs_eager_forkserver, "us", B_ANY, 0,                                                 \
      "against a server that forks without being asked")                                           \
    X(restart_rss1g_vs_0, "us", B_AT_MOST, 1.2,                                                    \
      "the same with 1 GiB in the host (ours) and without (raw)")                                  \
    X(death_to_outcome_ms_p99, "ms", B_AT_MOST, 5, "SIGKILL to CRASHED returned by poll, burners") \
    X(hard_limit_late_ms_loaded, "ms", B_AT_MOST, 10,                                              \
      "end past limit and grace, p99 of a loaded machine")                                         \
    X(idle_switches_10s, "switches", B_AT_MOST, 0, "context switches of all processes while idle") \
    X(idle_switches_in_poll_3s, "switches", B_AT_MOST, 0, "the same with a thread inside poll")    \
    X(bytes_per_queued_task, "bytes", B_AT_MOST, 128, "memory per queued task beside its payload") \
    X(payload_inplace_vs_64b, "us", B_AT_MOST, 1.05,                                               \
      "16 MiB in a lent buffer (ours), 64 B (raw), two CPUs")                                      \
    X(payload_inplace_vs_64b_1cpu, "us", B_ANY, 0, "the same, all on one CPU")                     \
    X(payload_copy_vs_memcpy, "GB/s", B_AT_LEAST, 0.95, "16 MiB copied by submit, against memcpy") \
    X(payload_faults_per_task, "faults", B_AT_MOST, 0,                                             \
      "page faults of host and worker per 16 MiB task, warm")                                      \
    X(payload_result_vs_64b_1cpu, "us", B_ANY, 0,                                                  \
      "16 MiB lent by result_alloc (ours), 64 B (raw)")                                            \
    X(result_faults_per_task, "faults", B_AT_MOST, 0, "page faults per 16 MiB result, warm")       \
    X(rtt_thread_vs_pipe_1cpu, "us", B_ANY, 0, "round trip, drive THREAD, all on one CPU")         \
    X(rtt_thread_vs_pipe_2cpu, "us", B_ANY, 0, "the same, host and worker on a CPU each")          \
    X(rtt_wait_vs_pipe_1cpu, "us", B_ANY, 0, "submit and wait for that task, all on one CPU")      \
    X(workers1_vs_raw_w64, "M/s", B_AT_LEAST, 0.50, "64 sent ahead, two CPUs, 1 worker")           \
    X(workers2_vs_raw_w64, "M/s", B_AT_LEAST, 2.00, "the same, 2 workers")                         \
    X(workers4_vs_raw_w64, "M/s", B_AT_LEAST, 0.50, "the same, 4 workers")                         \
    X(workers8_vs_raw_w64, "M/s", B_AT_LEAST, 0.50, "the same, 8 workers")                         \
    X(workers16_vs_raw_w64, "M/s", B_ANY, 0, "the same, 16 workers")                               \
    X(workers32_vs_raw_w64, "M/s", B_ANY, 0, "the same, 32 workers")                               \
    X(workers64_vs_raw_w64, "M/s", B_ANY, 0, "the same, 64 workers")                               \
    X(host_ns_workers1_vs_raw, "ns", B_ANY, 0, "host CPU time per task in these runs, 1 worker")   \
    X(host_ns_workers2_vs_raw, "ns", B_ANY, 0, "the same, 2 workers")                              \
    X(host_ns_workers4_vs_raw, "ns", B_ANY, 0, "the same, 4 workers")                              \
    X(host_ns_workers8_vs_raw, "ns", B_AT_MOST, 2.5, "the same, 8 workers")                        \
    X(host_ns_workers16_vs_raw, "ns", B_ANY, 0, "the same, 16 workers")                            \
    X(host_ns_workers32_vs_raw, "ns", B_ANY, 0, "the same, 32 workers")                            \
    X(host_ns_workers64_vs_raw, "ns", B_ANY, 0, "the same, 64 workers")                            \
    X(pipelined_batch_vs_raw_w8, "M/s", B_ANY, 0, "8 sent ahead, process_batch of up to 8")        \
    X(pipelined_batch_vs_raw_w64, "M/s", B_ANY, 0, "64 sent ahead, process_batch of up to 64")     \
    X(soft_limit_late_us_p99, "us", B_ANY, 0,                                                      \
      "a sleeping task past its limit until it runs (raw: a timer)")                               \
    X(endless_growth_kib, "KiB", B_AT_MOST, 64,                                                    \
      "growth of all processes over 8 M tasks of an endless source")                               \
    X(exec_restart_vs_posix_spawn, "us", B_AT_MOST, 1.3,                                           \
      "worker killed to next task started, start EXEC")                                            \
    X(idle_switches_30s, "switches", B_AT_MOST, 0,                                                 \
      "context switches 1 to 30 s after create, no task")                                          \
    X(pipelined_many_vs_raw_w64, "M/s", B_AT_LEAST, 0.55, "64 sent ahead, submit_many of 64")      \
    X(host_ns_many_vs_raw_w64, "ns", B_AT_MOST, 2.3,                                               \
      "host CPU time per task, 64 sent ahead, submit_many")                                        \
    X(host_ns_run_vs_raw_w64, "ns", B_ANY, 0, "the same, run() with a source")                     \
    X(host_ns_thread_vs_raw_w64, "ns", B_ANY, 0, "the same, drive THREAD")                         \
    X(workers2_many_vs_raw_w64, "M/s", B_AT_LEAST, 2.00,                                           \
      "64 sent ahead, 2 workers, submit_many of 64")                                               \
    X(host_ns_workers2_many_vs_raw, "ns", B_ANY, 0, "host CPU time per task in these runs")        \
    X(ring_vs_raw_w64, "M/s", B_ANY, 0, "a bare ring of cells (ours) over pipes, 64 sent ahead")   \
    X(pipelined_vs_ring_w64, "M/s", B_ANY, 0,                                                      \
      "64 sent ahead, over the ring in place of pipes (raw)")                                      \
    X(pipelined_many_vs_ring_w64, "M/s", B_ANY, 0, "the same, submit_many of 64")                  \
    X(classes8_vs_one_w8_1cpu, "M/s", B_AT_LEAST, 0.9,                                             \
      "8 fakes, eight classes by turns over one class, 8 sent ahead, one CPU")                     \
    X(one_class_vs_plain_w8_1cpu, "M/s", B_ANY, 0, "the same, one class over no pool")             \
    X(classes8_vs_plain_w8_1cpu, "M/s", B_ANY, 0, "the same, eight classes over no pool")          \
    X(classes8_vs_one_w64_1cpu, "M/s", B_AT_LEAST, 0.9,                                            \
      "eight classes by turns over one class, 64 sent ahead, one CPU")                             \
    X(one_class_vs_plain_w64_1cpu, "M/s", B_ANY, 0, "the same, one class over no pool")            \
    X(classes8_vs_plain_w64_1cpu, "M/s", B_ANY, 0, "the same, eight classes over no pool")         \
    X(classes8_vs_one_w8, "M/s", B_AT_LEAST, 0.9,                                                  \
      "eight classes by turns over one class, 8 sent ahead, two CPUs")                             \
    X(one_class_vs_plain_w8, "M/s", B_ANY, 0, "the same, one class over no pool")                  \
    X(classes8_vs_plain_w8, "M/s", B_ANY, 0, "the same, eight classes over no pool")               \
    X(classes8_vs_one_w64, "M/s", B_AT_LEAST, 0.9,                                                 \
      "eight classes by turns over one class, 64 sent ahead, two CPUs")                            \
    X(one_class_vs_plain_w64, "M/s", B_ANY, 0, "the same, one class over no pool")                 \
    X(classes8_vs_plain_w64, "M/s", B_ANY, 0, "the same, eight classes over no pool")              \
    X(evict_beyond_unload_us_p50, "us", B_AT_MOST, 1000,                                           \
      "submit to START of B, less the cleanup of A, one fake")                                     \
    X(evict_beyond_unload_us_p99, "us", B_AT_MOST, 1000, "the same, p99")                          \
    X(evict_beyond_unload_us_1cpu, "us", B_ANY, 0, "the same, all on one CPU (raw: median)")       \
    X(evict_order_us_p99, "us", B_ANY, 0, "submit to END order to A (raw: median)")                \
    X(evict_gone_us_p99, "us", B_ANY, 0,                                                           \
      "END order until A and its memory are gone, less its cleanup (raw: median)")                 \
    X(evict_start_us_p99, "us", B_ANY, 0, "from then to START of B (raw: median)")                 \
    X(evict_setup_us_p99, "us", B_ANY, 0, "START of B until its setup begins (raw: median)")       \
    X(makespan_live_vs_sim, "s", B_NEAR_ONE, 0.05,                                                 \
      "4 classes, 4 fakes, live at 1/100 time (ours) over the simulator (raw)")                    \
    X(wait_live_vs_sim, "s", B_ANY, 0, "the same, the median wait of a task")
#endif

#define B_KEY_X(name, unit, judge, goal, text) B_KEY_##name,
enum b_key { B_KEY_MAP(B_KEY_X) B_KEY_COUNT };
#undef B_KEY_X

struct b_key_info {
    const char *name, *unit;
    enum b_judge judge;
    double goal;
    const char *text;
};

const struct b_key_info *b_key_info(unsigned key);

/* What came out for one key; NaN for what there is not. */
struct b_figure {
    unsigned key;
    double value, raw, ours;
    struct b_spread ratio;      /* of the pairs, with quartiles; zeros where there are none */
    struct b_spread line, loop; /* what machine.h saw meanwhile; zeros where it did not look */
    int changed, shared;        /* it saw more than one state; it saw other programs run */
    char skipped[48]; /* why there is none; "" when it was measured */
};

/* Records which keys were asked for, 1 each (borrowed); before that all are.  b_is_wanted: 1 or
 * 0. */
void b_want(const char *wanted);
int b_is_wanted(unsigned key);

/* Called in the process of a cell: hands a figure to the main one.  raw and ours may be NaN. */
void b_report_open(int fd);
void b_report(unsigned key, double value, double raw, double ours);
void b_report_figure(const struct b_figure *f);

/* The same for a median of pairs and what the machine was like; `scale` makes the key's unit of
 * both sides. */
void b_report_pairs(unsigned key, const struct b_pairs *pairs, enum b_what what, double scale);

/* The same for a value that is no ratio. */
void b_report_seen(unsigned key, double value, double raw, const struct b_states *states);

/* The same for a key that this build of the library cannot have; the cell has not failed. */
void b_report_skipped(unsigned key, const char *why);

/* Says on stderr what went wrong; gives -1. */
int b_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the figures whose `wanted` is set: one JSON object, or a table. */
void b_print_json(FILE *out, const struct b_figure *figures, const char *wanted, double seconds);
void b_print_table(FILE *out, const struct b_figure *figures, const char *wanted, double seconds);

/* Prints what the machine was like for these figures, and whether it changed: then they say little
 * beside each other. */
void b_print_states(FILE *out, const struct b_figure *figures, const char *wanted);

#endif
