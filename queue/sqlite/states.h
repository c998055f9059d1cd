/* SPDX-License-Identifier: MIT */
/*
 * states.h - how a task changes its state: the one place that knows which changes there are.
 *
 *     new      -> HELD READY
 *     HELD     -> READY: its last hold goes
 *              -> DONE: cancelled, expired, skipped
 *     READY    -> RUNNING: claim
 *              -> HELD: hold
 *              -> DONE: cancelled, expired
 *     RUNNING  -> READY: retry, give_back
 *              -> HELD: retry with a backoff
 *              -> DONE: complete, lost
 *     DONE     -> HELD: a new round, which then goes on as a new task does
 */
#ifndef GPQ_SQLITE_STATES_H
#define GPQ_SQLITE_STATES_H

#include "queue/sqlite/row.h"

/*
 * Gives the task another state, and notes since when it is READY: in its row, in the counts of its
 * batches and its shape, in the list of changes.  Notes consequences for settle.h.  The caller
 * writes the row.  For DONE the outcome and `ended` are set before.
 */
int gpq_move(struct gpq_db *db, struct gpq_row *r, uint32_t to, uint64_t now,
             struct gpq_error *e);

/* After a hold was taken from a HELD task, or for a new one: READY if nothing holds it.  In a batch
 * with at_once it waits for its turn, which settle.h gives. */
int gpq_release(struct gpq_db *db, struct gpq_row *r, uint64_t now, struct gpq_error *e);

/* Ends a task.  cause: 0, or the task or batch that is the reason. */
int gpq_finish(struct gpq_db *db, struct gpq_row *r, uint32_t outcome, uint64_t now,
               uint64_t cause, struct gpq_error *e);

/* Outcomes that count for the limits of a batch. */
static inline bool gpq_is_failure(uint32_t outcome)
{
    return outcome == GPQ_OUTCOME_ERROR || outcome == GPQ_OUTCOME_TIMEOUT ||
           outcome == GPQ_OUTCOME_CRASHED || outcome == GPQ_OUTCOME_NO_WORKER ||
           outcome == GPQ_OUTCOME_LOST;
}

static inline bool gpq_waits(const struct gpq_row *r)
{
    return r->state == GPQ_HELD || r->state == GPQ_READY;
}

#endif
