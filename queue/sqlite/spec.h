/* SPDX-License-Identifier: MIT */
/* spec.h - specs, shapes and environments: rows that many tasks name. */
#ifndef GPQ_SQLITE_SPEC_H
#define GPQ_SQLITE_SPEC_H

#include "queue/sqlite/row.h"

/* EINVAL: a number of the spec is out of its range. */
int gpq_spec_check(const struct gpq_spec *spec, uint32_t index, struct gpq_error *e);
/* Adds a row with one use, the caller's.  The caller ends it when its tasks have theirs. */
int gpq_spec_add(struct gpq_db *db, const struct gpq_spec *spec, struct gpq_policy *ret,
                 struct gpq_error *e);
/* n more tasks name the spec, or fewer with n below 0.  A row that no task names any more goes. */
int gpq_spec_use(struct gpq_db *db, uint32_t spec, int64_t n, struct gpq_error *e);
/* n more tasks have the shape; the same. */
int gpq_shape_use(struct gpq_db *db, uint32_t shape, int64_t n, struct gpq_error *e);
/* The id of a shape, which is made if there is none. */
int gpq_shape_of(struct gpq_db *db, struct gpq_bytes request, uint32_t *ret, struct gpq_error *e);
/* Gives a task another shape, or another spec and its shape, with the counts of both. */
int gpq_reshape(struct gpq_db *db, struct gpq_row *r, uint32_t shape, struct gpq_error *e);
int gpq_spec_change(struct gpq_db *db, struct gpq_row *r, const struct gpq_policy *plan,
                    struct gpq_error *e);

#endif
