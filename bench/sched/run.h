/* SPDX-License-Identifier: MIT */
/* run.h - gpudispatch-bench --sched: what the scheduler's decisions cost, and how well they use
 * devices.  It needs no device and no worker. */
#ifndef BENCH_SCHED_RUN_H
#define BENCH_SCHED_RUN_H

/* Runs the benchmark.  Returns the exit status of the program. */
int b_sched_run(int argc, char **argv);

#endif
