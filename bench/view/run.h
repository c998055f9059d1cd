/* SPDX-License-Identifier: MIT */
/* run.h - gpudispatch-bench --view: what the views of a night cost. */
#ifndef BENCH_VIEW_RUN_H
#define BENCH_VIEW_RUN_H

/* Runs the benchmark.  Returns the exit status of the program. */
int bv_run(int argc, char **argv);

#endif
