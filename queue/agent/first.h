/* SPDX-License-Identifier: MIT */
/* first.h - the first waiting task of a batch. */
#ifndef GPQ_AGENT_FIRST_H
#define GPQ_AGENT_FIRST_H

#include "queue/store.h"

/* The first is a READY one, or else the one that gets the next turn, or else one that is held.  A
 * READY one may be overlooked if the tasks of the batch have many needs or priorities. */
struct gpq_waiting {
    struct gpq_task first; /* its row without texts; id 0: none waits, or it is not known */
    uint32_t turn;         /* held tasks that wait for their turn: all of them, if one does */
    uint32_t looks;        /* how many tasks were passed over */
};

int gpq_first_waiting(struct gpq_store *s, const struct gpq_batch *b, struct gpq_waiting *ret,
                      struct gpq_error *e);

#endif
