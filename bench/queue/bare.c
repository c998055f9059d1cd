/* SPDX-License-Identifier: MIT */
#include "bare.h"

#include <stdio.h>
#include <stdlib.h>

#include "../report.h"

#define TRIGGERS "SELECT name FROM sqlite_schema WHERE type = 'trigger'"

/* Removes the triggers: the record has what they write. */
static int drop_triggers(sqlite3 *db)
{
    char sql[256] = "";
    sqlite3_stmt *s = NULL;

    do {
        sql[0] = '\0';
        if (sqlite3_prepare_v2(db, TRIGGERS, -1, &s, NULL))
            return b_complain("the triggers: %s", sqlite3_errmsg(db));
        if (sqlite3_step(s) == SQLITE_ROW)
            (void)snprintf(sql, sizeof sql, "DROP TRIGGER \"%s\"", sqlite3_column_text(s, 0));
        (void)sqlite3_finalize(s);
        if (sql[0] && bq_tap_run(db, sql))
            return -1;
    } while (sql[0]);
    return 0;
}

static int prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret)
{
    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL) == SQLITE_OK)
        return 0;
    return b_complain("%s: %s", sql, sqlite3_errmsg(db));
}

static int prepare_all(struct bq_bare *b)
{
    uint32_t values;

    if (prepare(b->db, "BEGIN IMMEDIATE", &b->begin) || prepare(b->db, "COMMIT", &b->commit))
        return -1;
    for (size_t i = 0; i < b->record->n_statements; i++)
        if (prepare(b->db, bq_record_sql(b->record, i, &values), &b->statements[i]))
            return -1;
    return 0;
}

int bq_bare_open(struct bq_bare *b, const struct bq_record *record, const char *file,
                 sqlite3 *settings)
{
    *b = (struct bq_bare){ .record = record };
    b->statements = calloc(record->n_statements + 1, sizeof(sqlite3_stmt *));
    if (!b->statements)
        return b_complain("out of memory");
    if (sqlite3_open_v2(file, &b->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL))
        (void)b_complain("%s: %s", file, sqlite3_errmsg(b->db));
    else if (bq_tap_settings(settings, b->db) == 0 && drop_triggers(b->db) == 0 &&
             prepare_all(b) == 0)
        return 0;
    bq_bare_close(b);
    return -1;
}

void bq_bare_close(struct bq_bare *b)
{
    for (size_t i = 0; b->statements && i < b->record->n_statements; i++)
        (void)sqlite3_finalize(b->statements[i]);
    (void)sqlite3_finalize(b->begin);
    (void)sqlite3_finalize(b->commit);
    (void)sqlite3_close(b->db);
    free(b->statements);
    *b = (struct bq_bare){ 0 };
}

static void bind(sqlite3_stmt *s, int at, const struct bq_record *r, const struct bq_value *v)
{
    if (v->type == SQLITE_INTEGER)
        (void)sqlite3_bind_int64(s, at, v->whole);
    else if (v->type == SQLITE_FLOAT)
        (void)sqlite3_bind_double(s, at, v->real);
    else if (v->type == SQLITE_TEXT)
        (void)sqlite3_bind_text(s, at, r->bytes + v->at, v->size, SQLITE_STATIC);
    else if (v->type == SQLITE_BLOB)
        (void)sqlite3_bind_blob(s, at, r->bytes + v->at, v->size, SQLITE_STATIC);
    else
        (void)sqlite3_bind_null(s, at);
}

static int step(sqlite3_stmt *s)
{
    const int rc = sqlite3_step(s);

    return sqlite3_reset(s) == SQLITE_OK && (rc == SQLITE_DONE || rc == SQLITE_ROW) ? 0 : -1;
}

static int change(const struct bq_bare *b, const struct bq_change *c)
{
    sqlite3_stmt *s = b->statements[c->statement];
    uint32_t values;

    (void)bq_record_sql(b->record, c->statement, &values);
    for (uint32_t i = 0; i < values; i++)
        bind(s, (int)i + 1, b->record, &b->record->values[c->values + i]);
    return step(s);
}

int bq_bare_commit(struct bq_bare *b)
{
    const struct bq_record *r = b->record;
    uint32_t i = b->next ? r->ends[b->next - 1] : 0;

    if (b->next == r->n_ends)
        return b_complain("the record has no further transaction");
    if (step(b->begin))
        return b_complain("bare loop: %s", sqlite3_errmsg(b->db));
    for (; i < r->ends[b->next]; i++)
        if (change(b, &r->changes[i]))
            return b_complain("bare loop, %s: %s",
                              sqlite3_sql(b->statements[r->changes[i].statement]),
                              sqlite3_errmsg(b->db));
    b->next++;
    return step(b->commit) ? b_complain("bare loop: %s", sqlite3_errmsg(b->db)) : 0;
}
