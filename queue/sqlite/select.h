/* SPDX-License-Identifier: MIT */
/* select.h - the tasks that a selection names. */
#ifndef GPQ_SQLITE_SELECT_H
#define GPQ_SQLITE_SELECT_H

#include "queue/sqlite/row.h"

/* Whether a task has the states, outcomes and spec. */
bool gpq_select_fits(const struct gpq_select *which, const struct gpq_row *r);
/* The tasks of a batch with those that it has joined. */
bool gpq_select_joined(const struct gpq_select *which);
/* A whole batch, with nothing that leaves tasks out. */
bool gpq_select_is_batch(const struct gpq_select *which);
/* The rowids between which the selection of a batch, or of everything, lies. */
void gpq_select_range(const struct gpq_select *which, uint64_t *ret_first, uint64_t *ret_last);

/* Returns 1 if the task counts, 0 if it does not, or a GPQ_E code. */
typedef int gpq_row_fn(struct gpq_db *db, struct gpq_row *r, void *user, struct gpq_error *e);
/* Calls fn for each selected task, by id, with its row; a list in its own order.  Returns the count
 * of the tasks that count. */
int64_t gpq_select_each(struct gpq_db *db, const struct gpq_select *which, gpq_row_fn *fn,
                        void *user, struct gpq_error *e);

#endif
