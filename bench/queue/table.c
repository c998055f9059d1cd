/* SPDX-License-Identifier: MIT */
#include "table.h"

#include "../report.h"

static const char schema[] =
    "CREATE TABLE task(id INTEGER PRIMARY KEY, state INTEGER, outcome INTEGER, priority INTEGER,"
    " attempt INTEGER, submitted INTEGER, claimed INTEGER, started INTEGER, ended INTEGER,"
    " status INTEGER, line INTEGER, content BLOB, devices TEXT, run TEXT, stamp BLOB)";
static const char *const ops[BQ_OPS] = {
    [BQ_SUBMIT] = "INSERT INTO task(id, state, priority, attempt, submitted, line, content)"
                  " VALUES (?1, 2, 0, 0, ?2, ?3, ?4)",
    [BQ_CLAIM] = "UPDATE task SET state = 3, attempt = attempt + 1, claimed = ?2, devices = ?3,"
                 " run = ?4 WHERE id = ?1",
    [BQ_COMPLETE] = "UPDATE task SET state = 4, outcome = 1, status = 0, started = ?2, ended = ?2,"
                    " stamp = ?3 WHERE id = ?1",
};

static int prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret)
{
    return sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL) ? -1 : 0;
}

int bq_table_make(const char *file, sqlite3 *settings)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(file, &db, flags, NULL);

    if (rc)
        rc = b_complain("%s: %s", file, sqlite3_errmsg(db));
    else if (bq_tap_settings(settings, db) || bq_tap_run(db, schema))
        rc = -1;
    (void)sqlite3_close(db);
    return rc;
}

int bq_table_open(struct bq_table *t, const char *file, sqlite3 *settings)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;

    *t = (struct bq_table){ .next = { 1, 1, 1 }, .now = BQ_EPOCH };
    if (sqlite3_open_v2(file, &t->db, flags, NULL) == SQLITE_OK &&
        bq_tap_settings(settings, t->db) == 0 &&
        prepare(t->db, "BEGIN IMMEDIATE", &t->begin) == 0 &&
        prepare(t->db, "COMMIT", &t->commit) == 0 &&
        prepare(t->db, ops[BQ_SUBMIT], &t->op[BQ_SUBMIT]) == 0 &&
        prepare(t->db, ops[BQ_CLAIM], &t->op[BQ_CLAIM]) == 0 &&
        prepare(t->db, ops[BQ_COMPLETE], &t->op[BQ_COMPLETE]) == 0)
        return 0;
    (void)b_complain("one table: %s", sqlite3_errmsg(t->db));
    bq_table_close(t);
    return -1;
}

void bq_table_close(struct bq_table *t)
{
    for (int i = 0; i < BQ_OPS; i++)
        (void)sqlite3_finalize(t->op[i]);
    (void)sqlite3_finalize(t->begin);
    (void)sqlite3_finalize(t->commit);
    (void)sqlite3_close(t->db);
    *t = (struct bq_table){ 0 };
}

static int step(sqlite3_stmt *s)
{
    const int rc = sqlite3_step(s);

    return sqlite3_reset(s) == SQLITE_OK && rc == SQLITE_DONE ? 0 : -1;
}

static int do_one(struct bq_table *t, enum bq_op op, const struct gpq_item *item)
{
    sqlite3_stmt *s = t->op[op];

    (void)sqlite3_bind_int64(s, 1, t->next[op]++);
    (void)sqlite3_bind_int64(s, 2, (sqlite3_int64)t->now++);
    if (op == BQ_SUBMIT) {
        (void)sqlite3_bind_int64(s, 3, item->line);
        (void)sqlite3_bind_blob(s, 4, item->content.data, (int)item->content.size, SQLITE_STATIC);
    } else if (op == BQ_CLAIM) {
        (void)sqlite3_bind_text(s, 3, BQ_DEVICES, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(s, 4, BQ_RUN, -1, SQLITE_STATIC);
    } else {
        (void)sqlite3_bind_blob(s, 3, bq_stamp.data, (int)bq_stamp.size, SQLITE_STATIC);
    }
    return step(s);
}

int bq_table_commit(struct bq_table *t, enum bq_op op, const struct bq_load *load, uint32_t n)
{
    int rc = step(t->begin);

    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = do_one(t, op, &load->items[op == BQ_SUBMIT ? i : 0]);
    if (rc == 0)
        rc = step(t->commit);
    return rc ? b_complain("one table: %s", sqlite3_errmsg(t->db)) : 0;
}
