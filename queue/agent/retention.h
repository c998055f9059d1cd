/* SPDX-License-Identifier: MIT */
/*
 * retention.h - forgets tasks that ended long ago, by the store's purge.
 *
 * A round forgets the tasks that ended more than `keep_age` ago, and then, if more than
 * `keep_tasks` that have ended are left, those with the lowest ids; but none that ended within a
 * day, which somebody may not have seen.  Never a task that waits or runs, nor one of a batch that
 * goes on (store.h).  0 switches a rule off.
 *
 * A round begins with the agent, and a day after the last one: an idle agent wakes up once a day.
 * It looks at some thousand tasks in a turn, and forgets up to 256 in one.
 *
 * The mark "retention" has the time of the last round.  After a longer time than a week and a
 * quarter of `keep_age` the round only notes its own time, and the one a day later forgets: a
 * machine whose clock was years ahead for a while loses nothing.
 */
#ifndef GPQ_AGENT_RETENTION_H
#define GPQ_AGENT_RETENTION_H

#include "queue/agent/agent.h"

int gpq_retention_open(struct gpq_agent *a, struct gpq_error *e);
void gpq_retention_close(struct gpq_agent *a);

/* A round goes on: the agent takes another turn without waiting. */
bool gpq_retention_goes_on(const struct gpq_agent *a);
/* Inside the transaction: a part of the round; and after its commit. */
int gpq_retention_store(struct gpq_agent *a, uint64_t now, struct gpq_error *e);
void gpq_retention_stored(struct gpq_agent *a);

/* When the next round begins, as wall time; 0 = never.  The agent's timer calls
 * gpq_retention_time. */
uint64_t gpq_retention_next(const struct gpq_agent *a);
void gpq_retention_time(struct gpq_agent *a);

#endif
