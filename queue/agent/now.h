/* SPDX-License-Identifier: MIT */
/*
 * now.h - the present moment of an agent, for clients that watch.
 *
 *     turn.c, runs.c, states.c --- attempts, changes, slots --> now.c, ---> use of GPUs (live.h)
 *     spans.c ------------------- rows begin and end --------->  ended.c   \--> counters, time left
 *     the store, at the start --- rows of 24 h ----> refill.c --------^          |
 *                                                                                v
 *     watch.c <--- struct gpv_snapshot --- show.c, wrong.c (findings) <----------'
 *
 * Everything is arithmetic at events.  There is no timer, and nothing is written but the rows of
 * time left.  Memory is bounded: 16 KiB for each GPU and 2 KiB for each task that runs on it, 4 KiB
 * for each batch that goes on, and for findings 4,096 rows of the last 24 h.               [V1]
 */
#ifndef GPQ_AGENT_NOW_H
#define GPQ_AGENT_NOW_H

#include "queue/agent/work.h"
#include "view/now/snapshot.h"

struct gpq_now; /* keep.h */

/* After gpq_spans_open: reads the batches.  GPQ_ENOMEM. */
int gpq_now_open(struct gpq_agent *a, struct gpq_error *e);
void gpq_now_close(struct gpq_agent *a);

/* ---- Events.  Each costs little, and does nothing before gpq_now_open ---- */

/* The command of a unit runs. */
void gpq_now_runs(struct gpq_agent *a, const struct gpq_unit *u);
/* A commit has succeeded; its units are still there. */
void gpq_now_turned(struct gpq_agent *a);
/* A batch was made, sealed, or has further tasks: a commit that may have changed no task. */
void gpq_now_batch_changed(struct gpq_agent *a, uint32_t batch);
/* A row of spans.c begins, or has ended. */
void gpq_now_span(struct gpq_agent *a, const struct gpq_span *span);
/* The text of a row is another one now. */
void gpq_now_reworded(struct gpq_agent *a);
/* Goes through all slots: NULL begins. */
void gpq_now_slot(struct gpq_agent *a, const struct gpud_slot_stats *slot);

/* Of up to `most` batches with at_once: the task that gets the next turn, if one waits for it. */
typedef void (*gpq_turn_fn)(struct gpq_agent *a, const struct gpq_task *t, uint32_t at_once,
                            void *user);
void gpq_now_turns(struct gpq_agent *a, uint32_t most, gpq_turn_fn fn, void *user);

/* ---- After a start: the agent reads rows of the store in pieces, and requests between ---- */

bool gpq_now_goes_on(const struct gpq_agent *a);
void gpq_now_some(struct gpq_agent *a);

/* ---- Snapshots ---- */

/* Another number after each change that a snapshot shows; 0: the store is not read yet. */
uint64_t gpq_now_version(struct gpq_agent *a);
/* Fills *ret, which gpv_snapshot_free frees.  -1: no memory. */
int gpq_now_show(struct gpq_agent *a, bool history, struct gpv_snapshot *ret);
/* CLOCK_MONOTONIC: when findings may be made that the last snapshot lacks; 0 = it has all. */
uint64_t gpq_now_owes(const struct gpq_agent *a);
/* The first batch behind this one that has joined tasks of others; 0: there is none. */
uint32_t gpq_now_joined(const struct gpq_agent *a, uint32_t behind);
/* Whether tasks run on GPUs that have readings, which change all the time. */
bool gpq_now_has_readings(const struct gpq_agent *a);

#endif
