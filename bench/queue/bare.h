/* SPDX-License-Identifier: MIT */
/* bare.h - the bare loop: writes the rows of a record into a file with the same tables and indexes
 * as the engine's, by prepared statements, without lookups and checks. */
#ifndef BENCH_QUEUE_BARE_H
#define BENCH_QUEUE_BARE_H

#include "record.h"

struct bq_bare {
    const struct bq_record *record;
    sqlite3 *db;
    sqlite3_stmt **statements, *begin, *commit;
    size_t next; /* transaction */
};

/* Opens a file of an engine, with the settings of a connection.  Returns: 0, or -1 after a
 * complaint. */
int bq_bare_open(struct bq_bare *b, const struct bq_record *record, const char *file,
                 sqlite3 *settings);
void bq_bare_close(struct bq_bare *b);

/* Does the next transaction of the record.  Returns: 0, or -1 after a complaint. */
int bq_bare_commit(struct bq_bare *b);

#endif
