/* SPDX-License-Identifier: MIT */
/* start.h - the agent's program, executed by verbs. */
#ifndef GPQ_CLIENT_START_H
#define GPQ_CLIENT_START_H

#include "tools/cli/verb.h"

/*
 * Starts an agent for the state directory in the background, in a session of its own, and waits
 * until it is ready.  What it says goes to the file agent.log there.  0, also if another agent was
 * faster; or the exit status, after saying why.
 */
int gpq_agent_start(const struct call *call, const char *state);

/* Becomes the agent.  Returns only on failure. */
int gpq_agent_become(const struct call *call, const char *state);

/* Runs it for `fsck`, and returns its status. */
int gpq_agent_check(const struct call *call, const char *state);

#endif
