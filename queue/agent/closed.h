/* SPDX-License-Identifier: MIT */
/*
 * closed.h - prints the records of a store while no agent runs: `gpudispatch-agent --records`.
 *
 * It takes the lock of the state directory, opens the store without a change, and prints the lines
 * of records.h.  No line has the GPUs as the driver has them: rows name them.
 */
#ifndef GPQ_AGENT_CLOSED_H
#define GPQ_AGENT_CLOSED_H

#include "queue/agent/settings.h"

/* Returns the exit status.  4: there is no state directory, no store in it, or no such batch.  75:
 * the directory cannot be used, the store is of another version or damaged, or an agent runs.
 * 1: another failure. */
int gpq_closed_print(const struct gpq_settings *s);

#endif
