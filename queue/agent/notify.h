/* SPDX-License-Identifier: MIT */
/*
 * notify.h - runs a command of the user when a batch has ended.
 *
 * The commit that ends a batch sets the mark "notify" of it (store.h).  Then the agent starts the
 * command, and takes the mark away in a commit after the command has ended.  So the command of a
 * batch whose end was committed runs at least once; and exactly once, unless the agent is killed
 * or the machine stops between its start and that commit.
 *
 * The command is a shell line: that of the batch, or else the agent's own.  It runs in a session of
 * its own, in the state directory, with the agent's environment and the variables of the batch, up
 * to 60 s.  Its output goes to logs/notify-BATCH.  Its exit status only shows in the agent's log.
 * A few run at a time; the others wait.
 */
#ifndef GPQ_AGENT_NOTIFY_H
#define GPQ_AGENT_NOTIFY_H

#include <sys/types.h>

#include "queue/agent/agent.h"

/* After a commit, and before the first turn: starts the commands of batches that have a mark, also
 * those that an agent before this one has left. */
void gpq_notify_look(struct gpq_agent *a);
/* A child has ended; any. */
void gpq_notify_reaped(struct gpq_agent *a, pid_t pid, int status);

/* Whether marks are to be taken away; inside the transaction: takes them away.  After its commit:
 * forgets their commands. */
bool gpq_notify_waits(const struct gpq_agent *a);
int gpq_notify_store(struct gpq_agent *a, struct gpq_error *e);
void gpq_notify_stored(struct gpq_agent *a);

/* When the next command exceeds its time, or is tried again, as wall time; 0 = never.  Then, and
 * after a jump of the clock, the agent calls gpq_notify_time. */
uint64_t gpq_notify_next(const struct gpq_agent *a);
void gpq_notify_time(struct gpq_agent *a);

/* Commands that run go on, and count as ended, unless the storage has failed. */
void gpq_notify_close(struct gpq_agent *a);

#endif
