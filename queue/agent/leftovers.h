/* SPDX-License-Identifier: MIT */
/*
 * leftovers.h - the files of a state directory against the rows of its store, for a check.
 *
 * A killed agent may leave files that no row needs, and outputs of a SUCCESS that are not published
 * yet.  The next agent removes and publishes them when it starts, by the same functions as the
 * repairs here.  The record of a run that a RUNNING task has is no finding.
 */
#ifndef GPQ_AGENT_LEFTOVERS_H
#define GPQ_AGENT_LEFTOVERS_H

#include "queue/files/files.h"
#include "queue/store.h"

/* Checks the folders of a state directory: owner, mode and kind.  Without them, nothing else can be
 * checked.  Returns the number of findings that are left. */
int64_t gpq_folders_check(const char *state, bool repair, gpq_finding_fn fn, void *user);

/* Whether a runner lives whose attempt no RUNNING task has, with the identity of its run: 1 or 0,
 * or a GPQ_E code.  A repair of rows or files could start its command a second time, or remove the
 * outputs that it writes. */
int gpq_stray_runner(struct gpq_store *s, const char *state, struct gpq_error *e);

/* Whether any runner lives, by the locks of the records alone: 1 or 0, or a GPQ_E code. */
int gpq_any_runner(const char *state, struct gpq_error *e);

/* Checks the files.  The caller owns the directory (gpq_statedir_own).  Each repair is the change
 * of one file or directory, which is synced.  Returns the number of findings that are left, or a
 * GPQ_E code. */
int64_t gpq_leftovers_check(struct gpq_store *s, const char *state, bool repair, gpq_finding_fn fn,
                            void *user, struct gpq_error *e);

#endif
