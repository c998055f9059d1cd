/* SPDX-License-Identifier: MIT */
/* first.h - the first waiting task of a batch. */
#ifndef GPQ_AGENT_FIRST_H
#define GPQ_AGENT_FIRST_H

#include "queue/store.h"

/* *ret: its row without texts; id 0: none waits, or it is not known.  *ret_looks: how many tasks
 * were passed over. */
int gpq_first_waiting(struct gpq_store *s, const struct gpq_batch *b, struct gpq_task *ret,
                      uint32_t *ret_looks, struct gpq_error *e);

#endif
