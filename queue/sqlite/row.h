/* SPDX-License-Identifier: MIT */
/* row.h - one task of the file, as the engine reads, changes and writes it. */
#ifndef GPQ_SQLITE_ROW_H
#define GPQ_SQLITE_ROW_H

#include "queue/sqlite/db.h"

enum { GPQ_LINK_SOURCE = 1, GPQ_LINK_JOINED = 2, GPQ_LINK_AFTER = 4 };

struct gpq_row {
    uint64_t id;
    uint32_t state; /* 0: not in the file yet */
    uint32_t holds, outcome, shape, spec;
    int32_t priority;
    int64_t order;
    uint32_t round, attempt, charged, losses;
    bool cancel;
    uint32_t unmet; /* conditions of --after */
    uint32_t links;
    uint64_t not_before, expires, ended, cause, ready;
};

/* The part of a spec that the engine uses. */
struct gpq_policy {
    uint32_t id, shape;
    int32_t priority;
    uint32_t retries[GPQ_CAUSES];
    uint64_t backoff, backoff_cap, begin, expires;
    bool once;
};

/*
 * Rows that were read or written last are kept in memory: a task is claimed soon after its submit
 * or its return, and a short one ends soon after its claim.  Each statement that changes a row
 * changes the kept one, so all of them are here.
 */

/* Columns of GPQ_TASK_COLUMNS. */
void gpq_row_columns(sqlite3_stmt *st, struct gpq_row *r);
int gpq_row_read(struct gpq_db *db, uint64_t id, struct gpq_row *r, struct gpq_error *e);
/* Inserts; key is the hash for joining, 0 = none. */
int gpq_row_add(struct gpq_db *db, const struct gpq_row *r, uint64_t key, struct gpq_error *e);
/* Writes the columns of the state; and gpq_row_place shape, spec, priority, order and expires. */
int gpq_row_write(struct gpq_db *db, const struct gpq_row *r, struct gpq_error *e);
int gpq_row_place(struct gpq_db *db, const struct gpq_row *r, struct gpq_error *e);
/* Writes state, attempt and charged, which a claim changes.  SQLite looks at fewer indexes then. */
int gpq_row_claim(struct gpq_db *db, const struct gpq_row *r, struct gpq_error *e);
/* Sets a flag of links. */
int gpq_row_link(struct gpq_db *db, uint64_t id, uint32_t flag, struct gpq_error *e);
int gpq_row_forget(struct gpq_db *db, uint64_t id, struct gpq_error *e);
void gpq_row_task(const struct gpq_row *r, struct gpq_task *t);
/* Columns of GPQ_ATTEMPT_COLUMNS. */
void gpq_attempt_columns(sqlite3_stmt *st, struct gpq_attempt *a);

/* Forgets the kept rows, as after a rollback; and frees them. */
void gpq_rows_drop(struct gpq_db *db);
void gpq_rows_free(struct gpq_db *db);

int gpq_policy_read(struct gpq_db *db, uint32_t spec, struct gpq_policy *plan, struct gpq_error *e);

#endif
