/* SPDX-License-Identifier: MIT */
/* same.h - checks that two files have the same rows. */
#ifndef BENCH_QUEUE_SAME_H
#define BENCH_QUEUE_SAME_H

#include "tap.h"

/* Compares all tables of two connections, row by row.  Returns: 0, or -1 after a complaint. */
int bq_same(sqlite3 *a, sqlite3 *b);

#endif
