/* SPDX-License-Identifier: MIT */
/* bench_queue.c - gpudispatch-bench --queue without the rest of the benchmark. */
#include "queue/run.h"

int main(int argc, char **argv)
{
    return bq_run(argc, argv);
}
