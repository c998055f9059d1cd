/* SPDX-License-Identifier: MIT */
/*
 * sweep.h - ends the command of a runner that was killed: Q4.
 *
 * The command's processes are those of its session, and those that GPUDISPATCH_RUN in their
 * environment names.  The session is known by its leader, or after the leader's end by a member
 * with that variable: the number of a session may belong to another one by then.  A process hides
 * from the sweep if it left the session and cleared its environment, or took the rights of another
 * user.
 *
 * An agent that was itself started by a command must not inherit GPUDISPATCH_RUN: the sweep spares
 * the process that calls it, and no other.
 */
#ifndef GPQ_RUNNER_SWEEP_H
#define GPQ_RUNNER_SWEEP_H

#include "queue/runner/record.h"

struct gpq_swept {
    unsigned killed; /* processes that received SIGKILL */
    unsigned left;   /* that have not ended yet, or may not be killed */
};

/*
 * Kills the processes of a run until two searches in a row find none.  The caller is a subreaper or
 * not; it reaps those that become its children.
 *
 * 0; -ETIMEDOUT: some have not ended within `patience_ms`, as in an uninterruptible call: call it
 * again; or -errno.  The run must have no runner: it would start a race with it.
 */
int gpq_sweep(const struct gpq_run_id *id, const struct gpq_record *record, int patience_ms,
              struct gpq_swept *ret);

#endif
