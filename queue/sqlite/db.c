/* SPDX-License-Identifier: MIT */
/* db.c - statements of a store's file, and what becomes of their failures. */
#include "queue/sqlite/db.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/grow.h"

static const char *const sql[GPQ_SQLS] = {
#define GPQ_X_SQL(name, text) [GPQ_SQL_##name] = text,
    GPQ_SQL_MAP(GPQ_X_SQL)
#undef GPQ_X_SQL
};

static int code_of(int result)
{
    switch (result & 0xff) {
    case SQLITE_FULL:
        return GPQ_EFULL;
    case SQLITE_NOMEM:
        return GPQ_ENOMEM;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CONSTRAINT: /* a row that cannot be: ids and keys are the engine's own */
    case SQLITE_MISMATCH:
        return GPQ_EDAMAGED;
    default: /* BUSY and LOCKED, too: there is one connection */
        return GPQ_EIO;
    }
}

static int fail(struct gpq_db *db, int code, struct gpq_error *e)
{
    if (db->failed == 0)
        db->failed = code;
    if (code == GPQ_EIO || code == GPQ_EDAMAGED)
        db->broken = code;
    return gpq_fail(e, code, "%s", db->why);
}

int gpq_db_fail(struct gpq_db *db, int result, struct gpq_error *e)
{
    if (db->failed != 0)
        return gpq_fail(e, db->failed, "%s", db->why);
    int code = code_of(result);
    snprintf(db->why, sizeof(db->why), "store: %s: %s (SQLite %d)", gpq_error_text(code),
             sqlite3_errmsg(db->file), result);
    return fail(db, code, e);
}

int gpq_db_no_memory(struct gpq_db *db, struct gpq_error *e)
{
    snprintf(db->why, sizeof(db->why), "store: no memory");
    return fail(db, GPQ_ENOMEM, e);
}

int gpq_db_damaged(struct gpq_db *db, struct gpq_error *e, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = snprintf(db->why, sizeof(db->why), "store: the file is damaged: ");
    vsnprintf(db->why + n, sizeof(db->why) - (size_t)n, format, list);
    va_end(list);
    return fail(db, GPQ_EDAMAGED, e);
}

int gpq_db_enter(struct gpq_db *db, bool inside, struct gpq_error *e)
{
    if (!db->inside) /* a reader that ran out of memory costs the next call nothing */
        db->failed = db->broken;
    int code = db->failed;
    if (code != 0)
        return gpq_fail(e, code, "%s", db->why);
    if (inside && !db->inside)
        return gpq_fail(e, GPQ_EINVAL, "store: this call needs a transaction (begin)");
    return 0;
}

sqlite3_stmt *gpq_db_use(struct gpq_db *db, enum gpq_sql name)
{
    sqlite3_stmt **st = &db->statement[name];
    if (!*st) {
        int result =
            sqlite3_prepare_v3(db->file, sql[name], -1, SQLITE_PREPARE_PERSISTENT, st, NULL);
        if (result != SQLITE_OK) {
            gpq_db_fail(db, result, NULL);
            return NULL;
        }
        return *st;
    }
    sqlite3_reset(*st);
    return *st;
}

int gpq_db_next(struct gpq_db *db, sqlite3_stmt *st, struct gpq_error *e)
{
    if (!st || db->failed != 0)
        return gpq_db_fail(db, SQLITE_ERROR, e);
    int result = sqlite3_step(st);
    if (result == SQLITE_ROW)
        return 1;
    int code = result == SQLITE_DONE ? 0 : gpq_db_fail(db, result, e);
    sqlite3_reset(st);
    return code;
}

int gpq_db_rows(struct gpq_db *db, sqlite3_stmt *st, int (*each)(sqlite3_stmt *st, void *user),
                void *user, struct gpq_error *e)
{
    int code;
    while ((code = gpq_db_next(db, st, e)) > 0) {
        code = each(st, user);
        if (code != 0) {
            sqlite3_reset(st);
            break;
        }
    }
    return code;
}

int gpq_db_run(struct gpq_db *db, sqlite3_stmt *st, struct gpq_error *e)
{
    int n = gpq_db_next(db, st, e);
    if (n > 0)
        sqlite3_reset(st);
    return n < 0 ? n : 0;
}

void gpq_bind(sqlite3_stmt *st, int at, int64_t value)
{
    if (st)
        sqlite3_bind_int64(st, at, value);
}

void gpq_bind_text(sqlite3_stmt *st, int at, const char *text)
{
    if (st) /* NULL binds NULL */
        sqlite3_bind_text(st, at, text, -1, SQLITE_STATIC);
}

void gpq_bind_bytes(sqlite3_stmt *st, int at, struct gpq_bytes bytes)
{
    if (st)
        sqlite3_bind_blob64(st, at, bytes.size != 0 ? bytes.data : "", bytes.size, SQLITE_STATIC);
}

void gpq_bind_some(sqlite3_stmt *st, int at, struct gpq_bytes bytes)
{
    if (bytes.size != 0)
        gpq_bind_bytes(st, at, bytes);
    else if (st)
        sqlite3_bind_null(st, at);
}

struct gpq_bytes gpq_column_bytes(sqlite3_stmt *st, int at)
{
    const void *data = sqlite3_column_blob(st, at);
    return (struct gpq_bytes){ data, (size_t)sqlite3_column_bytes(st, at) };
}

const char *gpq_column_text(sqlite3_stmt *st, int at)
{
    return (const char *)sqlite3_column_text(st, at);
}

static sqlite3_stmt *use_with(struct gpq_db *db, enum gpq_sql name, const int64_t *number, size_t n)
{
    sqlite3_stmt *st = gpq_db_use(db, name);
    for (size_t i = 0; i < n; i++)
        gpq_bind(st, (int)i + 1, number[i]);
    return st;
}

int gpq_db_do(struct gpq_db *db, enum gpq_sql name, const int64_t *number, size_t n,
              struct gpq_error *e)
{
    return gpq_db_run(db, use_with(db, name, number, n), e);
}

int gpq_db_any(struct gpq_db *db, enum gpq_sql name, const int64_t *number, size_t n,
               struct gpq_error *e)
{
    sqlite3_stmt *st = use_with(db, name, number, n);
    int code = gpq_db_next(db, st, e);
    if (code > 0)
        sqlite3_reset(st);
    return code;
}

int gpq_ids_add(struct gpq_db *db, struct gpq_ids *ids, uint64_t id, struct gpq_error *e)
{
    uint64_t *larger = gpq_grown(ids->id, ids->n, &ids->room, sizeof(*larger));
    if (!larger)
        return gpq_db_no_memory(db, e);
    ids->id = larger;
    ids->id[ids->n++] = id;
    return 0;
}

int gpq_db_ids(struct gpq_db *db, enum gpq_sql name, const int64_t *number, size_t n,
               struct gpq_ids *ids, struct gpq_error *e)
{
    sqlite3_stmt *st = use_with(db, name, number, n);
    int code;
    while ((code = gpq_db_next(db, st, e)) > 0) {
        code = 0;
        for (int i = 0; code == 0 && i < sqlite3_column_count(st); i++)
            code = gpq_ids_add(db, ids, (uint64_t)sqlite3_column_int64(st, i), e);
        if (code < 0) {
            sqlite3_reset(st);
            break;
        }
    }
    return code;
}

void gpq_ids_free(struct gpq_ids *ids)
{
    free(ids->id);
    *ids = (struct gpq_ids){ 0 };
}

void gpq_db_changed(struct gpq_db *db, const struct gpq_change *c)
{
    struct gpq_change *larger =
        gpq_grown(db->store.changes, db->store.n_changes, &db->room_changes, sizeof(*larger));
    if (!larger) {
        gpq_db_no_memory(db, NULL);
        return;
    }
    db->store.changes = larger;
    struct gpq_change *kept = &db->store.changes[db->store.n_changes++];
    *kept = *c;
    if (kept->from_shape == 0)
        kept->from_shape = c->shape;
}

void gpq_db_chore(struct gpq_db *db, enum gpq_chore_kind kind, uint64_t id)
{
    struct gpq_chore *larger =
        gpq_grown(db->chore, db->n_chores, &db->room_chores, sizeof(*larger));
    if (!larger) {
        gpq_db_no_memory(db, NULL);
        return;
    }
    db->chore = larger;
    db->chore[db->n_chores++] = (struct gpq_chore){ kind, id };
}

/* FNV-1a: finds candidates, whose bytes are then compared. */
uint64_t gpq_hash(uint64_t seed, struct gpq_bytes bytes)
{
    const unsigned char *at = bytes.data;
    uint64_t hash = seed ^ 0xcbf29ce484222325U;
    for (size_t i = 0; i < bytes.size; i++)
        hash = (hash ^ at[i]) * 0x100000001b3U;
    return hash;
}

int gpq_db_number(struct gpq_db *db, const char *text, int64_t *ret, struct gpq_error *e)
{
    sqlite3_stmt *st = NULL;
    int result = sqlite3_prepare_v2(db->file, text, -1, &st, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(st);
    if (result == SQLITE_ROW)
        *ret = sqlite3_column_int64(st, 0);
    int code = result == SQLITE_ROW ? 0 : gpq_db_fail(db, result, e);
    sqlite3_finalize(st);
    return code;
}

int gpq_db_execute(struct gpq_db *db, const char *text, struct gpq_error *e)
{
    int result = sqlite3_exec(db->file, text, NULL, NULL, NULL);
    return result == SQLITE_OK ? 0 : gpq_db_fail(db, result, e);
}

/* Synced at each commit, with a log beside the file.  [Q1] */
static const char writing[] = "PRAGMA query_only = OFF;"
                              "PRAGMA journal_mode = WAL;"
                              "PRAGMA synchronous = FULL;"
                              "PRAGMA journal_size_limit = 67108864;";

int gpq_db_write(struct gpq_db *db, struct gpq_error *e)
{
    sqlite3_db_config(db->file, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return gpq_db_execute(db, writing, e);
}
