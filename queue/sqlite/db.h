/* SPDX-License-Identifier: MIT */
/*
 * db.h - the open file of a store: its statements, and the transaction in progress.
 *
 * A failing statement is noted in db->failed, and every later statement of the transaction fails
 * with it.  db->broken stays until the store is closed.
 */
#ifndef GPQ_SQLITE_DB_H
#define GPQ_SQLITE_DB_H

#include <sqlite3.h>

#include "queue/sqlite/schema.h"
#include "queue/store.h"

/* The work that is left before an operation ends (settle.h). */
enum gpq_chore_kind {
    GPQ_CHORE_TASK_ENDED,
    GPQ_CHORE_BATCH,
    GPQ_CHORE_FAILS,
    GPQ_CHORE_TURN,
    GPQ_CHORE_KINDS
};
struct gpq_chore {
    uint32_t kind;
    uint64_t id;
};

struct gpq_counts; /* counts.h */
struct gpq_kept;   /* row.c */

struct gpq_db {
    struct gpq_store store; /* first */
    sqlite3 *file;
    sqlite3_stmt *statement[GPQ_SQLS];
    bool inside; /* a transaction */
    int failed;  /* of this transaction: GPQ_E code, 0 = none */
    int broken;  /* of this store */
    char why[256];
    struct gpq_counts *counts;
    struct gpq_kept *kept;
    int64_t order, low;           /* the counters */
    int64_t kept_order, kept_low; /* as they are in the file */
    size_t room_changes;
    struct gpq_chore *chore;
    size_t n_chores, room_chores;
    uint32_t results_inline;
};

static inline struct gpq_db *gpq_db_of(struct gpq_store *s)
{
    return (struct gpq_db *)s;
}

/* Reads the one number of a statement that is no part of the schema, such as a PRAGMA; and runs
 * statements of the kind. */
int gpq_db_number(struct gpq_db *db, const char *text, int64_t *ret, struct gpq_error *e);
int gpq_db_execute(struct gpq_db *db, const char *text, struct gpq_error *e);

/* The settings of a file that is written, which is left as it is until then. */
int gpq_db_write(struct gpq_db *db, struct gpq_error *e);

/* Maps a result code of SQLite, notes it, fills *e.  Returns the GPQ_E code. */
int gpq_db_fail(struct gpq_db *db, int result, struct gpq_error *e);
/* Notes that memory ran out, or a row that cannot be. */
int gpq_db_no_memory(struct gpq_db *db, struct gpq_error *e);
int gpq_db_damaged(struct gpq_db *db, struct gpq_error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* 0 if an operation may run: in a transaction, for `inside`, that has not failed. */
int gpq_db_enter(struct gpq_db *db, bool inside, struct gpq_error *e);

/* The statement, reset.  It has the values of its last use: bind all.  NULL: see db->failed. */
sqlite3_stmt *gpq_db_use(struct gpq_db *db, enum gpq_sql name);
/* Runs a statement that returns no row. */
int gpq_db_run(struct gpq_db *db, sqlite3_stmt *st, struct gpq_error *e);
/* 1: a row, 0: none is left and the statement is reset, or a GPQ_E code. */
int gpq_db_next(struct gpq_db *db, sqlite3_stmt *st, struct gpq_error *e);
/* Calls each(st, user) for all rows, until it returns another value than 0, which is returned. */
int gpq_db_rows(struct gpq_db *db, sqlite3_stmt *st, int (*each)(sqlite3_stmt *st, void *user),
                void *user, struct gpq_error *e);

/* Binding to a NULL statement does nothing. */
void gpq_bind(sqlite3_stmt *st, int at, int64_t value);
void gpq_bind_text(sqlite3_stmt *st, int at, const char *text);
/* Empty bytes are bound as such; gpq_bind_some binds NULL for them. */
void gpq_bind_bytes(sqlite3_stmt *st, int at, struct gpq_bytes bytes);
void gpq_bind_some(sqlite3_stmt *st, int at, struct gpq_bytes bytes);
struct gpq_bytes gpq_column_bytes(sqlite3_stmt *st, int at);
const char *gpq_column_text(sqlite3_stmt *st, int at);

/* Numbers of rows, such as ids. */
struct gpq_ids {
    uint64_t *id;
    size_t n, room;
};
int gpq_ids_add(struct gpq_db *db, struct gpq_ids *ids, uint64_t id, struct gpq_error *e);
void gpq_ids_free(struct gpq_ids *ids);

/* Statements whose parameters are all numbers.  GPQ_DB_DO runs one that returns no row.  GPQ_DB_ANY
 * returns 1 if it has a row, and 0 if it has none.  GPQ_DB_IDS adds all columns of all its rows. */
int gpq_db_do(struct gpq_db *db, enum gpq_sql name, const int64_t *number, size_t n,
              struct gpq_error *e);
int gpq_db_any(struct gpq_db *db, enum gpq_sql name, const int64_t *number, size_t n,
               struct gpq_error *e);
int gpq_db_ids(struct gpq_db *db, enum gpq_sql name, const int64_t *number, size_t n,
               struct gpq_ids *ids, struct gpq_error *e);
#define GPQ_NUMBERS(...) \
    (const int64_t[]){ __VA_ARGS__ }, sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)
#define GPQ_DB_DO(db, name, e, ...) gpq_db_do(db, name, GPQ_NUMBERS(__VA_ARGS__), e)
#define GPQ_DB_ANY(db, name, e, ...) gpq_db_any(db, name, GPQ_NUMBERS(__VA_ARGS__), e)
#define GPQ_DB_IDS(db, name, ids, e, ...) gpq_db_ids(db, name, GPQ_NUMBERS(__VA_ARGS__), ids, e)

/* Notes a change for followers, and something that is left to do. */
void gpq_db_changed(struct gpq_db *db, const struct gpq_change *c);
void gpq_db_chore(struct gpq_db *db, enum gpq_chore_kind kind, uint64_t id);

uint64_t gpq_hash(uint64_t seed, struct gpq_bytes bytes);
static inline bool gpq_same(struct gpq_bytes a, struct gpq_bytes b)
{
    return a.size == b.size && (a.size == 0 || __builtin_memcmp(a.data, b.data, a.size) == 0);
}

#endif
