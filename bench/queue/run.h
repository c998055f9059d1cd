/* SPDX-License-Identifier: MIT */
/* run.h - gpudispatch-bench --queue: the cost of the store of the durable queue. */
#ifndef BENCH_QUEUE_RUN_H
#define BENCH_QUEUE_RUN_H

/* Runs the benchmark.  Returns the exit status of the program. */
int bq_run(int argc, char **argv);

#endif
