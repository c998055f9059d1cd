/* SPDX-License-Identifier: MIT */
/*
 * recount.h - the counters of a store against a count of its tasks.
 *
 * Batches: total, joined, states, outcomes.  A purge forgets tasks that ended, and leaves the
 * counts: after one, a batch may count more of them than there are.  Shapes: the number of READY
 * tasks, the priority and the order of the first one.  Each spec that a task names is there.
 * The store's own check finds nothing.
 */
#ifndef T_RECOUNT_H
#define T_RECOUNT_H

#include "queue/store.h"

/* Returns 0; 1 if a count differs, and prints it; or the code with which a reader has failed. */
int recount(struct gpq_store *s, bool purged, struct gpq_error *e);

#endif
