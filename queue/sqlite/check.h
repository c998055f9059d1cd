/* SPDX-License-Identifier: MIT */
/* check.h - the parts of a check: the file, its rows, and the counts of its batches. */
#ifndef GPQ_SQLITE_CHECK_H
#define GPQ_SQLITE_CHECK_H

#include "queue/sqlite/db.h"

struct gpq_check {
    struct gpq_db *db;
    uint64_t now;
    bool repair;      /* this pass repairs, and reports its repairs alone */
    int64_t left;     /* findings that are not repaired */
    int64_t repaired; /* in this pass */
    gpq_finding_fn fn;
    void *user;
    int stopped; /* what fn has returned, other than 0 */
    struct gpq_error *e;
};

/* Reports a finding, and counts it. */
int gpq_check_report(struct gpq_check *c, const struct gpq_finding *f);

/* Begins a transaction of repairs; and commits it, unless code is negative. */
int gpq_check_begin(struct gpq_check *c);
int gpq_check_end(struct gpq_check *c, int code);

/* check_file.c: SQLite's own check, and the tables and indexes.  0, or EDAMAGED after the findings
 * that say where. */
int gpq_check_file(struct gpq_check *c);
/* check_batch.c: the counts of all batches. */
int gpq_check_batches(struct gpq_check *c);

#endif
