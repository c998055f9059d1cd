/* SPDX-License-Identifier: MIT */
/*
 * counts.h - the counts of batches and shapes, kept in memory between commits.
 *
 * A transaction that ends 1,024 tasks of a batch writes the row of the batch once, at its end.  One
 * process owns the file, so that the memory stays true from one transaction to the next.
 */
#ifndef GPQ_SQLITE_COUNTS_H
#define GPQ_SQLITE_COUNTS_H

#include "queue/sqlite/db.h"

enum {
    GPQ_BATCH_OPEN = 1,
    GPQ_BATCH_HELD = 2,
    GPQ_BATCH_FAILS = 4,
    GPQ_BATCH_FOLLOWED = 8,
    GPQ_BATCH_NOTIFY = 16,
};

/* One batch, without name and options. */
struct gpq_tally {
    uint32_t id;
    bool dirty;
    struct gpq_tally *next_dirty;
    bool building; /* the submit that makes it, or appends to it, goes on */
    uint64_t ended;
    uint64_t last_end; /* the latest end of a task, of any round */
    uint32_t numbers; /* the last number of a task */
    uint32_t total, joined;
    uint32_t busy; /* own tasks that are READY or RUNNING */
    uint32_t state[GPQ_STATES], outcome[GPQ_OUTCOMES];
    uint32_t at_once, max_fails, percent, flags;
};

struct gpq_ready {
    uint32_t id;
    bool dirty;
    struct gpq_ready *next_dirty;
    uint32_t ready, uses;
};

/* NULL: *ret_code is ENOTFOUND, or the transaction has failed.  Pointers live until the end of the
 * operation. */
struct gpq_tally *gpq_tally(struct gpq_db *db, uint32_t batch, int *ret_code, struct gpq_error *e);
struct gpq_ready *gpq_ready(struct gpq_db *db, uint32_t shape, int *ret_code, struct gpq_error *e);
/* 1: a task has a condition on the end of the batch. */
int gpq_tally_followed(struct gpq_db *db, const struct gpq_tally *t, struct gpq_error *e);
/* A task of the batch has ended. */
static inline void gpq_tally_end(struct gpq_tally *t, uint64_t ended)
{
    t->last_end = ended > t->last_end ? ended : t->last_end;
}
/* After a change of a record. */
void gpq_tally_touch(struct gpq_db *db, struct gpq_tally *t);
void gpq_ready_touch(struct gpq_db *db, struct gpq_ready *r);
/* Before the row is deleted. */
void gpq_tally_forget(struct gpq_db *db, uint32_t batch);
void gpq_ready_forget(struct gpq_db *db, uint32_t shape);

/* Reads the counters of the file. */
int gpq_counters_read(struct gpq_db *db, struct gpq_error *e);
/* Writes the records that have changed.  Readers see it, and so does a rollback to a savepoint. */
int gpq_counts_write(struct gpq_db *db, struct gpq_error *e);
/* Forgets everything, as after a rollback. */
void gpq_counts_drop(struct gpq_db *db);
/* Forgets most if there are very many; before a transaction. */
void gpq_counts_trim(struct gpq_db *db);
void gpq_counts_free(struct gpq_db *db);

/* Columns of GPQ_BATCH_COLUMNS. */
void gpq_tally_read(sqlite3_stmt *st, struct gpq_tally *t);

#endif
