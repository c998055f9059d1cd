/* SPDX-License-Identifier: MIT */
/*
 * fsck.h - checks a state directory while no agent runs: `gpudispatch-agent --fsck`.
 *
 * It takes the lock of the directory, checks the store and then the files against it, and prints a
 * line for each finding (docs/reference/fsck.md).  Runners and their commands go on meanwhile.
 */
#ifndef GPQ_AGENT_FSCK_H
#define GPQ_AGENT_FSCK_H

#include <stdbool.h>

struct gpq_fsck {
    const char *state_dir; /* NULL: that of the environment */
    bool repair;
    bool json; /* a JSON object per line */
};

/* Returns the exit status.  0: no finding is left.  3: findings are left.  4: there is no state
 * directory, or no store in it.  75: it cannot be used, is damaged, or an agent runs.  1: another
 * failure. */
int gpq_fsck(const struct gpq_fsck *how);

#endif
