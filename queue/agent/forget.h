/* SPDX-License-Identifier: MIT */
/*
 * forget.h - removes the files of tasks that the store has forgotten, a few in each turn.
 *
 * A purge commits first, and its replies do not wait for the removal of outputs and logs.  The
 * mark "forget" is set in that commit, and is taken away in a later one after the last removal: an
 * agent that finds it looks through the folders for files of tasks that the store does not have.
 */
#ifndef GPQ_AGENT_FORGET_H
#define GPQ_AGENT_FORGET_H

#include "queue/agent/agent.h"

/* At the start: finds what an agent before this one has left. */
int gpq_forget_open(struct gpq_agent *a, struct gpq_error *e);
/* Inside the transaction, behind its changes: sets the mark, or takes it away. */
int gpq_forget_store(struct gpq_agent *a, uint64_t now, struct gpq_error *e);
/* After the commit: keeps the change of a forgotten task.  Without memory its files go at once. */
void gpq_forget_task(struct gpq_agent *a, const struct gpq_change *c);
/* Removes some; gpq_forget_waits: more are left. */
void gpq_forget_some(struct gpq_agent *a);
bool gpq_forget_waits(const struct gpq_agent *a);
/* Removes more before the agent ends, for up to a second: SIGTERM does not wait for the rest. */
void gpq_forget_last(struct gpq_agent *a);
void gpq_forget_close(struct gpq_agent *a);

#endif
