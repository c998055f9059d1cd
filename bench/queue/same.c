/* SPDX-License-Identifier: MIT */
#include "same.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../report.h"

#define TABLES "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"

static bool is_equal(sqlite3_stmt *a, sqlite3_stmt *b, int column)
{
    const int n = sqlite3_column_bytes(a, column);

    return sqlite3_column_type(a, column) == sqlite3_column_type(b, column) &&
           sqlite3_column_bytes(b, column) == n &&
           (n == 0 ||
            memcmp(sqlite3_column_blob(a, column), sqlite3_column_blob(b, column), (size_t)n) == 0);
}

/* Steps two statements side by side.  Returns the number of rows, or -1 where they differ. */
static int compare(sqlite3_stmt *a, sqlite3_stmt *b)
{
    const int columns = sqlite3_column_count(a);
    int rows = 0, rc;

    if (columns != sqlite3_column_count(b))
        return -1;
    while ((rc = sqlite3_step(a)) == sqlite3_step(b) && rc == SQLITE_ROW) {
        for (int i = 0; i < columns; i++)
            if (!is_equal(a, b, i))
                return -1;
        rows++;
    }
    return rc == SQLITE_DONE ? rows : -1;
}

static int compare_table(sqlite3 *a, sqlite3 *b, const char *name)
{
    sqlite3_stmt *left = NULL, *right = NULL;
    char sql[256];
    int rows = -1;

    (void)snprintf(sql, sizeof sql, "SELECT * FROM \"%s\"", name);
    if (sqlite3_prepare_v2(a, sql, -1, &left, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(b, sql, -1, &right, NULL) == SQLITE_OK)
        rows = compare(left, right);
    (void)sqlite3_finalize(left);
    (void)sqlite3_finalize(right);
    return rows < 0 ? b_complain("the bare loop has written other rows into %s", name) : rows;
}

int bq_same(sqlite3 *a, sqlite3 *b)
{
    sqlite3_stmt *tables = NULL;
    int rc = sqlite3_prepare_v2(a, TABLES, -1, &tables, NULL), rows = 0;

    while (rc == 0 && sqlite3_step(tables) == SQLITE_ROW) {
        const int n = compare_table(a, b, (const char *)sqlite3_column_text(tables, 0));

        rc = n < 0 ? -1 : 0;
        rows += n;
    }
    (void)sqlite3_finalize(tables);
    if (rc == 0 && rows == 0)
        rc = b_complain("the store has no rows");
    return rc;
}
