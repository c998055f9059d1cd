/* SPDX-License-Identifier: MIT */
/* adopt.h - judges and adopts the runs that an agent finds when it starts.  [Q4] */
#ifndef GPQ_AGENT_ADOPT_H
#define GPQ_AGENT_ADOPT_H

#include "queue/agent/agent.h"

/*
 * Judges every running attempt of the store, and books the verdicts in one transaction.  Commands
 * that go on are handed to the dispatcher.  Then finishes the renames and removals that a crash has
 * interrupted in the folders of outputs, results and records.  Nothing was claimed before.
 */
int gpq_adopt(struct gpq_agent *a, struct gpq_error *e);

#endif
