/* SPDX-License-Identifier: MIT */
/*
 * turn.h - one turn of the agent: what has happened, one transaction, and what follows from it.
 */
#ifndef GPQ_AGENT_TURN_H
#define GPQ_AGENT_TURN_H

#include "queue/agent/work.h"

/* Notes for the transaction of this turn. */
void gpq_turn_granted(struct gpq_agent *a, struct gpq_unit *u);
/* The dispatcher's outcome of a task that ran, or that can never run. */
void gpq_turn_outcome(struct gpq_agent *a, struct gpq_unit *u, uint32_t outcome,
                      const char *text);
/* The claimed task was not started. */
void gpq_turn_unstarted(struct gpq_agent *a, struct gpq_unit *u, const char *text);

/* Commits what was noted, and acts.  Returns whether there was anything. */
bool gpq_turn(struct gpq_agent *a);
void gpq_turn_free(struct gpq_agent *a);

#endif
