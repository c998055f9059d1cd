/* SPDX-License-Identifier: MIT */
/* check_file.c - whether the file of a store is whole, before any row of it is believed. */
#include <stdio.h>
#include <string.h>

#include "queue/sqlite/check.h"

enum { MOST = 100 }; /* findings of SQLite's check */

static int report(struct gpq_check *c, uint32_t kind, const char *place, const char *text)
{
    return gpq_check_report(
        c, &(struct gpq_finding){ .kind = kind, .place = place, .text = text ? text : "?" });
}

/* ---- What can still be read ---- */

static int count_rows(struct gpq_check *c, const char *table)
{
    char text[256], place[64];
    sqlite3_stmt *st = NULL;
    uint64_t n = 0;
    snprintf(text, sizeof(text), "SELECT * FROM \"%.60s\"", table);
    int result = sqlite3_prepare_v2(c->db->file, text, -1, &st, NULL);
    while (result == SQLITE_OK && (result = sqlite3_step(st)) == SQLITE_ROW) {
        n++;
        for (int i = 0; i < sqlite3_column_count(st); i++)
            (void)sqlite3_column_blob(st, i); /* reads the pages of long values */
        result = SQLITE_OK;
    }
    sqlite3_finalize(st);
    snprintf(place, sizeof(place), "table %.50s", table);
    snprintf(text, sizeof(text), "%llu rows can be read%s%s", (unsigned long long)n,
             result == SQLITE_DONE ? "" : ", and then: ",
             result == SQLITE_DONE ? "" : sqlite3_errstr(result));
    return report(c, GPQ_FINDING_DAMAGE, place, text);
}

static int show_readable(struct gpq_check *c)
{
    static const char *const tables[] = { "batch", "task",    "payload", "spec",  "shape",
                                          "edge",  "attempt", "round",   "result" };
    int code = 0;
    for (size_t i = 0; code == 0 && i < sizeof(tables) / sizeof(tables[0]); i++)
        code = count_rows(c, tables[i]);
    return code;
}

static int check_pages(struct gpq_check *c)
{
    char pragma[64];
    sqlite3_stmt *st = NULL;
    int n = 0, code = 0;
    snprintf(pragma, sizeof(pragma), "PRAGMA integrity_check(%d)", MOST);
    int result = sqlite3_prepare_v2(c->db->file, pragma, -1, &st, NULL);
    if (result == SQLITE_OK)
        while (code == 0 && (result = sqlite3_step(st)) == SQLITE_ROW) {
            const char *text = gpq_column_text(st, 0);
            if (text && strcmp(text, "ok") == 0)
                continue;
            n++;
            code = report(c, GPQ_FINDING_DAMAGE, "queue.db", text);
        }
    if (code == 0 && result != SQLITE_DONE) {
        if ((result & 0xff) != SQLITE_CORRUPT && (result & 0xff) != SQLITE_NOTADB)
            code = gpq_db_fail(c->db, result, c->e);
        else
            code = report(c, GPQ_FINDING_DAMAGE, "queue.db", sqlite3_errmsg(c->db->file));
        n++;
    }
    sqlite3_finalize(st);
    if (code == 0 && n != 0)
        code = show_readable(c);
    if (code == 0 && n != 0)
        code = gpq_db_damaged(c->db, c->e, "SQLite's check found %d faults%s", n,
                              n >= MOST ? " or more" : "");
    return code;
}

/* ---- Tables and indexes ---- */

/* Objects and columns, by name: a migration may have added columns in another order. */
static const char names[] =
    "SELECT type || ' ' || name FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    " UNION ALL SELECT 'column ' || m.name || '.' || c.name || ' ' || c.type || ' '"
    " || c.\"notnull\" || ' ' || c.pk FROM sqlite_schema m, pragma_table_info(m.name) c"
    " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1";

/* Both lists are in order: reports the names that only one of them has. */
static int compare(struct gpq_check *c, sqlite3_stmt *own, sqlite3_stmt *there, int *ret_missing)
{
    int code = 0, a = sqlite3_step(own), b = sqlite3_step(there);
    while (code == 0 && (a == SQLITE_ROW || b == SQLITE_ROW)) {
        const char *mine = a == SQLITE_ROW ? gpq_column_text(own, 0) : NULL;
        const char *its = b == SQLITE_ROW ? gpq_column_text(there, 0) : NULL;
        int order = !mine ? 1 : !its ? -1 : strcmp(mine, its);
        if (order < 0) {
            code = report(c, GPQ_FINDING_SCHEMA, mine, "is not there");
            ++*ret_missing;
        } else if (order > 0) {
            code = report(c, GPQ_FINDING_SCHEMA, its, "is none of this version");
        }
        if (order <= 0)
            a = sqlite3_step(own);
        if (order >= 0)
            b = sqlite3_step(there);
    }
    if (code == 0 && (a != SQLITE_DONE || b != SQLITE_DONE))
        code = gpq_db_fail(c->db, b != SQLITE_DONE ? b : a, c->e);
    return code;
}

static int check_schema(struct gpq_check *c)
{
    sqlite3 *fresh = NULL;
    sqlite3_stmt *own = NULL, *there = NULL;
    int missing = 0, code = 0;
    int result = sqlite3_open(":memory:", &fresh);
    if (result == SQLITE_OK)
        result = sqlite3_exec(fresh, GPQ_SCHEMA, NULL, NULL, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_prepare_v2(fresh, names, -1, &own, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_prepare_v2(c->db->file, names, -1, &there, NULL);
    if (result != SQLITE_OK)
        code = gpq_db_fail(c->db, result, c->e);
    else
        code = compare(c, own, there, &missing);
    sqlite3_finalize(own);
    sqlite3_finalize(there);
    sqlite3_close(fresh);
    if (code == 0 && missing != 0)
        code = gpq_db_damaged(c->db, c->e, "%d tables, columns or indexes are missing", missing);
    return code;
}

/* Nothing repairs the file itself: its findings are reported at once, also by a check that repairs.
 */
int gpq_check_file(struct gpq_check *c)
{
    int code = check_pages(c);
    return code == 0 ? check_schema(c) : code;
}
