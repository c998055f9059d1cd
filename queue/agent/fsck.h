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

#include "queue/files/files.h"
#include "queue/store.h"

/* Takes the lock of a state directory, and opens its store without a change.  `given` NULL: that of
 * the environment.  ENOTFOUND: there is none; EBUSY: an agent runs; EVERSION: the store is of
 * another version.  The caller closes the lock and the store, also after a failure. */
int gpq_closed_open(const char *given, char state[GPQ_PATH], int *ret_lock, struct gpq_store **ret,
                    struct gpq_error *e);

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
