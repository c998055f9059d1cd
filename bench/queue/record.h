/* SPDX-License-Identifier: MIT */
/* record.h - the rows that an engine writes, to write the same ones without the engine.
 *
 * SQLite reports each row that a statement inserts, updates or deletes.  A record keeps them by
 * transaction: the writes that a bare loop has to do. */
#ifndef BENCH_QUEUE_RECORD_H
#define BENCH_QUEUE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "tap.h"

#define BQ_COLUMNS 64

struct bq_value {
    int type; /* of SQLite */
    int size;
    union {
        sqlite3_int64 whole;
        double real;
        size_t at; /* of a text or a blob, in bytes */
    };
};

/* One row: the number of its statement, and the first of its values. */
struct bq_change {
    uint32_t statement;
    uint32_t values;
};

struct bq_written;

struct bq_record {
    struct bq_table_info *tables;
    struct bq_written *statements;
    struct bq_change *changes;
    struct bq_value *values;
    char *bytes;
    uint32_t *ends; /* of the changes of each transaction */
    size_t n_tables, n_statements, n_changes, n_values, n_bytes, n_ends;
    size_t most_statements, most_changes, most_values, most_bytes, most_ends;
    int failed;
};

/* Begins to record the rows that a connection writes.  Returns: 0, or -1 after a complaint. */
int bq_record_open(struct bq_record *r, sqlite3 *db);

/* Ends a transaction.  Returns the number of its changes, or -1 after a complaint. */
long bq_record_cut(struct bq_record *r);

/* Ends the recording; the record stays. */
void bq_record_end(struct bq_record *r, sqlite3 *db);
void bq_record_close(struct bq_record *r);

/* The text of a statement, and how many values it takes. */
const char *bq_record_sql(const struct bq_record *r, size_t statement, uint32_t *ret_values);

#endif
