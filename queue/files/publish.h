/* SPDX-License-Identifier: MIT */
/*
 * publish.h - renames an attempt's outputs to out/ID, where readers find them.  [Q5]
 *
 * A newer round's outputs take the place of an older one's by two renames: out/ID to work/ID.old,
 * then work/ID.ATTEMPT to out/ID.  Between them a reader finds nothing.  RENAME_EXCHANGE would
 * close this gap of some microseconds, but not every file system has it.  After a crash the
 * agent could not know whether work/ID.ATTEMPT held the new outputs or the old ones, since the
 * directory of the user has no mark, and a repeated exchange would bring the old ones back.  Two
 * renames leave a state that names itself.  The old outputs are removed afterwards: a reader that
 * is inside them at that time loses the files that it has not opened.
 *
 * Renames must be atomic, also over a power cut, as on ext4, XFS and Btrfs.
 *
 * `state` is the state directory.  Each function returns 0, or a GPQ_E code with *e filled.
 */
#ifndef GPQ_FILES_PUBLISH_H
#define GPQ_FILES_PUBLISH_H

#include "queue/files/files.h"
#include "queue/store.h"

/* Renames work/ID.ATTEMPT to out/ID.  If it is not there, and out/ID is, this has happened before:
 * 0.  If it is no directory, it is removed, and out/ID stays as it is: 0.  ENOTFOUND: neither is
 * there. */
int gpq_out_publish(const struct gpq_files *f, const char *state, uint64_t task, uint32_t attempt,
                    struct gpq_error *e);

/* Removes out/ID, when the store forgets the task.  A reader finds it whole or not at all. */
int gpq_out_forget(const struct gpq_files *f, const char *state, uint64_t task,
                   struct gpq_error *e);

enum gpq_out_fate {
    GPQ_OUT_KEEP,    /* the attempt runs, or its end is not known yet */
    GPQ_OUT_PUBLISH, /* its SUCCESS is committed, and that of no later attempt */
    GPQ_OUT_DROP,
};
typedef enum gpq_out_fate (*gpq_out_fn)(uint64_t task, uint32_t attempt, void *user);

/* Finishes the renames that a crash has interrupted, when the store is opened.  It calls fn for
 * each attempt's directory.  After a failure it goes on, and it returns the first one, or a later
 * one of the disk or the memory (fault.h): EIO if a sync of work/ or out/ has failed.  A directory
 * that cannot be removed or renamed fails with another code. */
int gpq_out_recover(const struct gpq_files *f, const char *state, gpq_out_fn fn, void *user,
                    struct gpq_error *e);

#endif
