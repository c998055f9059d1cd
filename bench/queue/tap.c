/* SPDX-License-Identifier: MIT */
#include "tap.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../report.h"

/* In the order in which they take effect. */
static const char *const settings[] = {
    "page_size",       "auto_vacuum", "locking_mode",       "journal_mode", "synchronous",
    "cache_size",      "mmap_size",   "wal_autocheckpoint", "temp_store",   "journal_size_limit",
    "cell_size_check", "cache_spill", "secure_delete",      "foreign_keys",
};
#define SETTINGS (sizeof settings / sizeof *settings)

static bool armed;
static sqlite3 *first;

static int note(sqlite3 *db, const char **error, const struct sqlite3_api_routines *api)
{
    const char *file = sqlite3_db_filename(db, "main");

    (void)error, (void)api;
    if (armed && !first && file && *file)
        first = db;
    return SQLITE_OK;
}

void bq_tap_arm(void)
{
    armed = true;
    first = NULL;
    (void)sqlite3_auto_extension((void (*)(void))note);
}

sqlite3 *bq_tap_take(void)
{
    armed = false;
    (void)sqlite3_cancel_auto_extension((void (*)(void))note);
    return first;
}

static int read_setting(sqlite3 *db, const char *name, char value[32])
{
    sqlite3_stmt *s = NULL;
    char sql[64];
    int rc;

    (void)snprintf(sql, sizeof sql, "PRAGMA %s", name);
    rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        (void)snprintf(value, 32, "%s", (const char *)sqlite3_column_text(s, 0));
    else
        rc = b_complain("%s: %s", sql, sqlite3_errmsg(db));
    (void)sqlite3_finalize(s);
    return rc ? -1 : 0;
}

int bq_tap_run(sqlite3 *db, const char *sql)
{
    char *error = NULL;
    const int rc = sqlite3_exec(db, sql, NULL, NULL, &error);

    if (rc)
        (void)b_complain("%s: %s", sql, error ? error : sqlite3_errstr(rc));
    sqlite3_free(error);
    return rc ? -1 : 0;
}

int bq_tap_settings(sqlite3 *from, sqlite3 *to)
{
    char value[32], sql[96];

    for (unsigned i = 0; i < SETTINGS; i++) {
        if (read_setting(from, settings[i], value))
            return -1;
        (void)snprintf(sql, sizeof sql, "PRAGMA %s = %s", settings[i], value);
        if (bq_tap_run(to, sql))
            return -1;
    }
    return 0;
}

void bq_tap_print(sqlite3 *db, char *text, int size)
{
    char value[32];
    int n = 0;

    for (unsigned i = 0; i < SETTINGS; i++) {
        if (read_setting(db, settings[i], value) == 0 && n < size)
            n += snprintf(text + n, (size_t)(size - n), "%s\"%s\": \"%s\"", i ? ", " : "",
                          settings[i], value);
    }
}
