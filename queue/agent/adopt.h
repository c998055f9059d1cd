/* SPDX-License-Identifier: MIT */
/* adopt.h - what an agent does with the runs that it finds when it starts.  [Q4] */
#ifndef GPQ_AGENT_ADOPT_H
#define GPQ_AGENT_ADOPT_H

#include "queue/agent/agent.h"

/*
 * Judges every running attempt of the store, and books what is known of it in one transaction.
 * Commands that go on are handed to the dispatcher.  Then finishes what a crash has interrupted in
 * the folders of outputs, results and records.  Nothing was claimed before.
 */
int gpq_adopt(struct gpq_agent *a, struct gpq_error *e);

#endif
