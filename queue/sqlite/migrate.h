/* SPDX-License-Identifier: MIT */
/*
 * migrate.h - makes the file of an older version one of this version.
 *
 * The file is copied to queue.db.vN first, N being its version, by SQLite's backup.  The copy is
 * whole and durable before anything changes.  Then all steps and the new version are one
 * transaction: after a crash or a power cut the file has the old version or the new one.  The copy
 * stays.  An agent of the old version uses it under the name queue.db.
 */
#ifndef GPQ_SQLITE_MIGRATE_H
#define GPQ_SQLITE_MIGRATE_H

#include "queue/sqlite/db.h"

/* step[i] is the SQL that makes version i + 2 of version i + 1; there are version - 1 of them. */
struct gpq_migration {
    int version;
    const char *const *step;
};

/* That of the program, to GPQ_SCHEMA_VERSION. */
extern const struct gpq_migration gpq_migration;

/* Migrates from version `from` to m->version.  EFULL: there is no space for the copy; EDAMAGED,
 * EIO: a step has failed.  Then the file has the version that it had. */
int gpq_migrate(struct gpq_db *db, const char *directory, const struct gpq_migration *m, int from,
                struct gpq_error *e);

#endif
