/* SPDX-License-Identifier: MIT */
/*
 * spans.h - writes down where the time of devices and tasks goes: the table `span` of the store.
 *
 *   kind      subject          reason
 *   life      ""               "opened": an agent runs; without length: "adopted": it took over
 *                              commands of an agent before; "clock": its clock was set
 *   device    UUID, or name    why the device is out of use: "drained", "quarantined", "failed",
 *                              "backoff"
 *   tenancy   UUID, or name    a worker of a class starts ("boot") or leaves ("unload")
 *   reason    the shape's id   why the first waiting task of the shape does not start: "paused",
 *                              "starts wait", or a name of enum gpud_reason_kind
 *
 * The state of a subject is one open row, and another row begins when its reason changes.  The
 * agent examines the states after its turns, at most once a second, and at most 64 shapes.  What
 * has changed is written with the next commit that changes a task, and has the time of the
 * examination: no sync is made for it, but at the agent's start and end.
 *
 * A row has its times on the wall clock and on CLOCK_BOOTTIME.  None ends before it begins: where
 * the wall clock was set back meanwhile, the row has no length there.
 *
 * The mark "alive" has a time at which an agent ran, up to a minute before its last commit.  Rows
 * that a killed agent has left open end there.
 */
#ifndef GPQ_AGENT_SPANS_H
#define GPQ_AGENT_SPANS_H

#include "queue/agent/agent.h"

/* At the start, before the first turn: a commit of its own. */
int gpq_spans_open(struct gpq_agent *a, struct gpq_error *e);
/* Ends all rows in a commit, unless the storage has failed. */
void gpq_spans_close(struct gpq_agent *a);

/* The agent has turned, and is about to sleep: looks at the states. */
void gpq_spans_look(struct gpq_agent *a);
/* Wall time of the next look that was put off; 0 = none. */
uint64_t gpq_spans_next(const struct gpq_agent *a);

/* Inside the transaction: writes what has changed; and after its commit. */
int gpq_spans_store(struct gpq_agent *a, uint64_t now, struct gpq_error *e);
void gpq_spans_stored(struct gpq_agent *a);

#endif
