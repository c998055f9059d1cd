/* SPDX-License-Identifier: MIT */
/* side.h - what is measured: three operations, each on n tasks per commit. */
#ifndef BENCH_QUEUE_SIDE_H
#define BENCH_QUEUE_SIDE_H

enum bq_op { BQ_SUBMIT = 0, BQ_CLAIM = 1, BQ_COMPLETE = 2, BQ_OPS = 3 };

#endif
