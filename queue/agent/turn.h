/* SPDX-License-Identifier: MIT */
/*
 * turn.h - one turn of the agent: its events, one transaction, and the acts that follow from it.
 */
#ifndef GPQ_AGENT_TURN_H
#define GPQ_AGENT_TURN_H

#include "queue/agent/work.h"

/* Notes for the transaction of this turn.  Without memory for one the agent ends: the records of
 * the runs stay, and the next agent books them. */
void gpq_turn_granted(struct gpq_agent *a, struct gpq_unit *u);
/* The attempt of a unit has ended; or, before it was claimed, the task can never run. */
void gpq_turn_ended(struct gpq_agent *a, struct gpq_unit *u, uint32_t outcome, const char *text);
/* The attempt of a unit returns uncharged.  why: enum gpq_return. */
void gpq_turn_returned(struct gpq_agent *a, struct gpq_unit *u, uint32_t why, const char *text);

/* Commits the notes, and acts.  Returns whether there was anything. */
bool gpq_turn(struct gpq_agent *a);
void gpq_turn_free(struct gpq_agent *a);

#endif
