/* SPDX-License-Identifier: MIT */
/* start.h - the agent's program, executed by verbs. */
#ifndef GPQ_CLIENT_START_H
#define GPQ_CLIENT_START_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "tools/cli/verb.h"

/*
 * Starts an agent for the state directory in the background, in a session of its own, and waits
 * until it is ready.  What it says goes to the file agent.log there.  0, also if another agent was
 * faster; or the exit status, after saying why.
 */
int gpq_agent_start(const struct call *call, const char *state);

/* Whether `agent start` has options.  Without one the agent has those of the last `agent start`, as
 * one that another verb starts; with one it has no others. */
bool gpq_agent_chooses(const struct call *call);

/* These options of the last one, which the caller frees, each behind a blank; NULL = none. */
char *gpq_agent_chosen(const char *state);

/* Compares the options of `agent start` with the agent that runs, by its reply to status.  0, or an
 * exit status after saying how they differ. */
int gpq_agent_compare(const struct call *call, const json_t *status);

/* Becomes the agent.  Returns only on failure. */
int gpq_agent_become(const struct call *call, const char *state);

/* Runs it for `fsck`, and returns its status. */
int gpq_agent_check(const struct call *call, const char *state);

/* Runs it with further arguments and the configuration of the last agent.  *ret_output: a
 * descriptor of its output, which the caller closes.  -1: it cannot be run, which was said. */
pid_t gpq_agent_reads(const struct call *call, const char *state, const char *const *argument,
                      size_t n, int *ret_output);

#endif
