/* SPDX-License-Identifier: MIT */
/* lookup.h - one row of the store: a task, a batch, a mark. */
#ifndef GPQ_AGENT_LOOKUP_H
#define GPQ_AGENT_LOOKUP_H

#include "queue/store.h"

/* 1: there is such a task, and *ret has its row without texts; 0: no; or a GPQ_E code. */
int gpq_task_look(struct gpq_store *s, uint64_t task, struct gpq_task *ret, struct gpq_error *e);
/* The same of the task of a batch that gets the next turn, if one waits for it. */
int gpq_task_turn(struct gpq_store *s, uint32_t batch, struct gpq_task *ret, struct gpq_error *e);
/* Calls fn with the whole row of a task, and returns as the reader of tasks does (store.h). */
int gpq_task_read(struct gpq_store *s, uint64_t task, gpq_task_fn fn, void *user,
                  struct gpq_error *e);
/* Calls fn, unless it is NULL, with the row of a batch.  0; ENOTFOUND. */
int gpq_batch_read(struct gpq_store *s, uint32_t batch, gpq_batch_fn fn, void *user,
                   struct gpq_error *e);
/* 1: there is such a mark, and *ret_since is its time; 0: no; or a GPQ_E code. */
int gpq_mark_look(struct gpq_store *s, const char *kind, const char *subject, uint64_t *ret_since,
                  struct gpq_error *e);

#endif
