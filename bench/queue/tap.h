/* SPDX-License-Identifier: MIT */
/* tap.h - the connections of SQLite that an engine opens, to watch its statements.
 *
 * The engine needs no help for it: SQLite itself reports each connection of this process. */
#ifndef BENCH_QUEUE_TAP_H
#define BENCH_QUEUE_TAP_H

#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include <sqlite3.h>

/* Begins to watch. */
void bq_tap_arm(void);

/* Ends it.  Returns the first connection that was opened to a file since; NULL if there is none. */
sqlite3 *bq_tap_take(void);

/* Gives a connection the settings of another one.  Returns: 0, or -1 after a complaint. */
int bq_tap_settings(sqlite3 *from, sqlite3 *to);

/* Runs a statement.  Returns: 0, or -1 after a complaint. */
int bq_tap_run(sqlite3 *db, const char *sql);

/* Writes the settings as `"name": "value"` pairs with commas between them. */
void bq_tap_print(sqlite3 *db, char *text, int size);

#endif
