/* SPDX-License-Identifier: MIT */
/* join.h - finds the task that an item of a submit stands for. [Q6] */
#ifndef GPQ_SQLITE_JOIN_H
#define GPQ_SQLITE_JOIN_H

#include "queue/sqlite/counts.h"
#include "queue/sqlite/row.h"

/* The hash by which candidates are found; 0: nothing joins a batch without a name. */
uint64_t gpq_join_hash(const char *name, const struct gpq_spec *spec, const struct gpq_item *item);

/* Returns enum gpq_how.  For JOINED and AGAIN *r is the task, which is now a member of the batch.
 * Errors: EKEY, EREFUSED. */
int gpq_join(struct gpq_db *db, struct gpq_tally *batch, const char *name, uint64_t hash,
             const struct gpq_spec *spec, const struct gpq_item *item, bool anyway,
             struct gpq_row *r, struct gpq_error *e);

/* gpq_fail with a text that begins with the item's line, if it has one. */
int gpq_join_fail(struct gpq_error *e, int code, const struct gpq_item *item, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));

#endif
