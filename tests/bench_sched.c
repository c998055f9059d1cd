/* SPDX-License-Identifier: MIT */
/* bench_sched.c - gpudispatch-bench --sched without the rest of the benchmark. */
#include "sched/run.h"

int main(int argc, char **argv)
{
    return b_sched_run(argc, argv);
}
