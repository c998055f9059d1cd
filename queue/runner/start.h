/* SPDX-License-Identifier: MIT */
/* start.h - the agent's part of the start of a run. */
#ifndef GPQ_RUNNER_START_H
#define GPQ_RUNNER_START_H

#include "queue/runner/plan.h"
#include "queue/store.h"

struct gpq_start {
    const char *runner;       /* path of gpudispatch-runner */
    char *const *environment; /* of the runner itself, which needs none; NULL: empty */
    const char *state;        /* the state directory */
    const char *boot;         /* id of the present boot */
    const struct gpq_plan *plan;
};

/*
 * Makes the record of the plan's run, locks it, writes its head and starts the runner, which has
 * the only copy of the lock when this returns.  The claim of the attempt must be committed.
 * [Q2 Q4]
 *
 * The runner is a child of the caller, which reaps it.  Signals that are sent to it from now on
 * reach it: it starts with all signals blocked.
 *
 * 0, or a GPQ_E code with *e filled.  Then nothing was started; a record without a start may be
 * there.  EBUSY: another process holds the record; EREFUSED: it has bytes already.
 */
int gpq_run_start(const struct gpq_start *s, pid_t *ret_runner, struct gpq_error *e);

#endif
