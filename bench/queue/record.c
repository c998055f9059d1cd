/* SPDX-License-Identifier: MIT */
#include "record.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../report.h"

#define LISTED "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
#define COLUMNS "SELECT name, pk FROM pragma_table_info(?) ORDER BY cid"
#define SQL 4096

struct bq_table_info {
    char *name;
    char *columns[BQ_COLUMNS];
    bool in_key[BQ_COLUMNS];
    int n;
    bool by_key; /* WITHOUT ROWID */
};

/* A statement that the changes of one kind have in common. */
struct bq_written {
    const struct bq_table_info *table;
    int op;
    uint64_t set; /* the columns that it sets */
    char *sql;
    uint32_t values;
};

/* Returns list, or a larger one if `n` entries fill it; NULL without memory. */
static void *grown(void *list, size_t n, size_t *most, size_t size)
{
    void *larger;

    if (n < *most)
        return list;
    larger = realloc(list, (*most * 2 + 64) * size);
    if (larger)
        *most = *most * 2 + 64;
    return larger;
}

#define GROW(r, what, n)                                                           \
    do {                                                                           \
        void *list_ = grown((r)->what, (n), &(r)->most_##what, sizeof *(r)->what); \
        if (list_)                                                                 \
            (r)->what = list_;                                                     \
        else                                                                       \
            (r)->failed = b_complain("out of memory");                             \
    } while (0)

/* ---- What the tables are ---- */

static int read_columns(sqlite3 *db, struct bq_table_info *t)
{
    sqlite3_stmt *s = NULL;

    if (sqlite3_prepare_v2(db, COLUMNS, -1, &s, NULL))
        return b_complain("the columns of %s: %s", t->name, sqlite3_errmsg(db));
    (void)sqlite3_bind_text(s, 1, t->name, -1, SQLITE_STATIC);
    while (sqlite3_step(s) == SQLITE_ROW && t->n < BQ_COLUMNS) {
        t->columns[t->n] = strdup((const char *)sqlite3_column_text(s, 0));
        t->in_key[t->n++] = sqlite3_column_int(s, 1) > 0;
    }
    (void)sqlite3_finalize(s);
    return 0;
}

static int read_tables(struct bq_record *r, sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    size_t most = 0;
    int rc = 0;

    if (sqlite3_prepare_v2(db, LISTED, -1, &s, NULL))
        return b_complain("the tables: %s", sqlite3_errmsg(db));
    while (rc == 0 && sqlite3_step(s) == SQLITE_ROW) {
        struct bq_table_info *tables = grown(r->tables, r->n_tables, &most, sizeof *tables);

        if (!tables) {
            rc = b_complain("out of memory");
            break;
        }
        r->tables = tables;
        tables[r->n_tables] =
            (struct bq_table_info){ .name = strdup((const char *)sqlite3_column_text(s, 0)),
                                    .by_key = sqlite3_column_int(s, 1) };
        rc = read_columns(db, &tables[r->n_tables++]);
    }
    (void)sqlite3_finalize(s);
    return rc;
}

static const struct bq_table_info *find_table(const struct bq_record *r, const char *name)
{
    for (size_t i = 0; i < r->n_tables; i++)
        if (strcmp(r->tables[i].name, name) == 0)
            return &r->tables[i];
    return NULL;
}

/* ---- The statement of a change ---- */

__attribute__((format(printf, 2, 3))) static void put(char *sql, const char *format, ...)
{
    const size_t n = strlen(sql);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(sql + n, SQL - n, format, args);
    va_end(args);
}

/* Appends the condition that finds the row.  Returns the number of its values. */
static uint32_t put_where(char *sql, const struct bq_table_info *t)
{
    uint32_t n = 0;

    put(sql, " WHERE ");
    if (!t->by_key) {
        put(sql, "rowid = ?");
        return 1;
    }
    for (int i = 0; i < t->n; i++)
        if (t->in_key[i])
            put(sql, "%s\"%s\" = ?", n++ ? " AND " : "", t->columns[i]);
    return n;
}

static uint32_t put_insert(char *sql, const struct bq_table_info *t)
{
    uint32_t n = 0;

    put(sql, "INSERT INTO \"%s\"(", t->name);
    if (!t->by_key)
        put(sql, "%s", n++ ? "" : "rowid");
    for (int i = 0; i < t->n; i++)
        put(sql, "%s\"%s\"", n++ ? ", " : "", t->columns[i]);
    put(sql, ") VALUES (");
    for (uint32_t i = 0; i < n; i++)
        put(sql, "%s", i ? ", ?" : "?");
    put(sql, ")");
    return n;
}

static uint32_t put_update(char *sql, const struct bq_table_info *t, uint64_t set)
{
    uint32_t n = 0;

    put(sql, "UPDATE \"%s\" SET ", t->name);
    for (int i = 0; i < t->n; i++)
        if (set >> i & 1)
            put(sql, "%s\"%s\" = ?", n++ ? ", " : "", t->columns[i]);
    return n + put_where(sql, t);
}

/* Returns the number of the statement, which it adds if it is new. */
static uint32_t find_statement(struct bq_record *r, const struct bq_table_info *t, int op,
                               uint64_t set)
{
    char sql[SQL] = "";
    uint32_t i, values;

    for (i = 0; i < r->n_statements; i++)
        if (r->statements[i].table == t && r->statements[i].op == op && r->statements[i].set == set)
            return i;
    if (op == SQLITE_INSERT) {
        values = put_insert(sql, t);
    } else if (op == SQLITE_UPDATE) {
        values = put_update(sql, t, set);
    } else {
        put(sql, "DELETE FROM \"%s\"", t->name);
        values = put_where(sql, t);
    }
    GROW(r, statements, r->n_statements);
    if (r->failed)
        return 0;
    r->statements[r->n_statements++] = (struct bq_written){
        .table = t, .op = op, .set = set, .sql = strdup(sql), .values = values
    };
    return i;
}

/* ---- The values ---- */

static void add_value(struct bq_record *r, sqlite3_value *v)
{
    struct bq_value kept = { .type = sqlite3_value_type(v) };

    if (kept.type == SQLITE_INTEGER) {
        kept.whole = sqlite3_value_int64(v);
    } else if (kept.type == SQLITE_FLOAT) {
        kept.real = sqlite3_value_double(v);
    } else if (kept.type != SQLITE_NULL) {
        const void *data =
            kept.type == SQLITE_TEXT ? (const void *)sqlite3_value_text(v) : sqlite3_value_blob(v);

        kept.size = sqlite3_value_bytes(v);
        kept.at = r->n_bytes;
        while (!r->failed && r->n_bytes + (size_t)kept.size >= r->most_bytes)
            GROW(r, bytes, r->most_bytes);
        if (r->failed)
            return;
        if (kept.size)
            memcpy(r->bytes + kept.at, data, (size_t)kept.size);
        r->n_bytes += (size_t)kept.size;
    }
    GROW(r, values, r->n_values);
    if (!r->failed)
        r->values[r->n_values++] = kept;
}

static void add_whole(struct bq_record *r, sqlite3_int64 n)
{
    GROW(r, values, r->n_values);
    if (!r->failed)
        r->values[r->n_values++] = (struct bq_value){ .type = SQLITE_INTEGER, .whole = n };
}

static bool is_equal(sqlite3_value *a, sqlite3_value *b)
{
    const int type = sqlite3_value_type(a);
    int n;

    if (type != sqlite3_value_type(b))
        return false;
    if (type == SQLITE_NULL)
        return true;
    if (type == SQLITE_INTEGER)
        return sqlite3_value_int64(a) == sqlite3_value_int64(b);
    n = sqlite3_value_bytes(a);
    return n == sqlite3_value_bytes(b) &&
           (n == 0 || memcmp(sqlite3_value_blob(a), sqlite3_value_blob(b), (size_t)n) == 0);
}

/* Returns the columns that an update changes. */
static uint64_t changed(sqlite3 *db, const struct bq_table_info *t)
{
    sqlite3_value *before, *after;
    uint64_t set = 0;

    for (int i = 0; i < t->n; i++)
        if (sqlite3_preupdate_old(db, i, &before) == SQLITE_OK &&
            sqlite3_preupdate_new(db, i, &after) == SQLITE_OK && !is_equal(before, after))
            set |= UINT64_C(1) << i;
    return set;
}

/* Adds the values that find the row. */
static void add_key(struct bq_record *r, sqlite3 *db, const struct bq_table_info *t,
                    sqlite3_int64 rowid)
{
    sqlite3_value *v;

    if (!t->by_key)
        add_whole(r, rowid);
    for (int i = 0; t->by_key && i < t->n; i++)
        if (t->in_key[i] && sqlite3_preupdate_old(db, i, &v) == SQLITE_OK)
            add_value(r, v);
}

static void note(void *user, sqlite3 *db, int op, const char *schema, const char *name,
                 sqlite3_int64 from, sqlite3_int64 to)
{
    struct bq_record *r = user;
    const struct bq_table_info *t = find_table(r, name);
    uint64_t set = op == SQLITE_UPDATE && t ? changed(db, t) : UINT64_MAX;
    sqlite3_value *v;

    if (r->failed || strcmp(schema, "main") != 0 || set == 0)
        return;
    if (!t) {
        r->failed = b_complain("the engine writes to %s, which it has made since", name);
        return;
    }
    GROW(r, changes, r->n_changes);
    if (r->failed)
        return;
    r->changes[r->n_changes++] = (struct bq_change){ .statement = find_statement(r, t, op, set),
                                                     .values = (uint32_t)r->n_values };
    if (op == SQLITE_INSERT && !t->by_key)
        add_whole(r, to);
    for (int i = 0; op != SQLITE_DELETE && i < t->n; i++)
        if ((set >> i & 1) && sqlite3_preupdate_new(db, i, &v) == SQLITE_OK)
            add_value(r, v);
    if (op != SQLITE_INSERT)
        add_key(r, db, t, from);
}

/* ---- The record ---- */

int bq_record_open(struct bq_record *r, sqlite3 *db)
{
    *r = (struct bq_record){ 0 };
    if (read_tables(r, db))
        return -1;
    (void)sqlite3_preupdate_hook(db, note, r);
    return 0;
}

long bq_record_cut(struct bq_record *r)
{
    const uint32_t from = r->n_ends ? r->ends[r->n_ends - 1] : 0;

    GROW(r, ends, r->n_ends);
    if (r->failed)
        return -1;
    r->ends[r->n_ends++] = (uint32_t)r->n_changes;
    return (long)(r->n_changes - from);
}

void bq_record_end(struct bq_record *r, sqlite3 *db)
{
    (void)r;
    (void)sqlite3_preupdate_hook(db, NULL, NULL);
}

void bq_record_close(struct bq_record *r)
{
    for (size_t i = 0; i < r->n_tables; i++) {
        for (int k = 0; k < r->tables[i].n; k++)
            free(r->tables[i].columns[k]);
        free(r->tables[i].name);
    }
    for (size_t i = 0; i < r->n_statements; i++)
        free(r->statements[i].sql);
    free(r->tables);
    free(r->statements);
    free(r->changes);
    free(r->values);
    free(r->bytes);
    free(r->ends);
    *r = (struct bq_record){ 0 };
}

const char *bq_record_sql(const struct bq_record *r, size_t statement, uint32_t *ret_values)
{
    *ret_values = r->statements[statement].values;
    return r->statements[statement].sql;
}
