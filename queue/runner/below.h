/* SPDX-License-Identifier: MIT */
/* below.h - the processes below the runner: reaped while the command works, and ended with it. */
#ifndef GPQ_RUNNER_BELOW_H
#define GPQ_RUNNER_BELOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Reaps children that have ended, which are orphans of the command.  Returns true when it meets
 * `command` itself, which stays a zombie: so the number of its group and session stays its own.
 * `command` 0: reaps all.  Adds those that SIGKILL has ended to *killed.
 */
bool gpq_below_reap(pid_t command, uint64_t *killed);

/* Whether the runner has no child, not even a zombie. */
bool gpq_below_none(void);

struct gpq_below_killed {
    unsigned found, denied; /* children */
};

/* Sends SIGKILL to each child.  Their own children become the runner's when they end.  0 or -errno:
 * /proc does not list them. */
int gpq_below_kill(struct gpq_below_killed *ret);

/* Sends SIGKILL to each process below the runner.  This also ends a process that traces its parent
 * and so holds it; it takes a look at every process of the machine. */
void gpq_below_kill_all(void);

#endif
