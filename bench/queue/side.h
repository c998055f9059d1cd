/* SPDX-License-Identifier: MIT */
/* side.h - the operations that are measured: three, each on n tasks per commit. */
#ifndef BENCH_QUEUE_SIDE_H
#define BENCH_QUEUE_SIDE_H

enum bq_op { BQ_SUBMIT = 0, BQ_CLAIM = 1, BQ_COMPLETE = 2, BQ_OPS = 3 };

#endif
