/* SPDX-License-Identifier: MIT */
/* table.h - one table without index: the least that a queue can write. */
#ifndef BENCH_QUEUE_TABLE_H
#define BENCH_QUEUE_TABLE_H

#include "load.h"
#include "side.h"
#include "tap.h"

struct bq_table {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *op[BQ_OPS];
    sqlite3_int64 next[BQ_OPS]; /* id */
    uint64_t now;
};

/* Makes the file, then opens it, with the settings of a connection.  Each returns: 0, or -1 after
 * a complaint. */
int bq_table_make(const char *file, sqlite3 *settings);
int bq_table_open(struct bq_table *t, const char *file, sqlite3 *settings);
void bq_table_close(struct bq_table *t);

/* Does `op` for the next n tasks.  Returns: 0, or -1 after a complaint. */
int bq_table_commit(struct bq_table *t, enum bq_op op, const struct bq_load *load, uint32_t n);

#endif
