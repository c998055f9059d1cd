/* SPDX-License-Identifier: MIT */
/*
 * out.h - the directory of an attempt's outputs, work/ID.ATTEMPT: fresh, then whole and durable.
 *
 * Q5  $GPUDISPATCH_OUT is a fresh directory of the attempt, work/ID.ATTEMPT.  After the commit of
 *     SUCCESS it is renamed to out/ID, and if a crash comes between, when the store is opened.  A
 *     reader of out/ID finds exactly one attempt's files, whole, or nothing.
 *
 * The order: gpq_out_make, the command runs, gpq_out_sync, the commit of SUCCESS, gpq_out_publish
 * (publish.h).  `state` is the state directory.  Each function with an error returns 0, or a GPQ_E
 * code with *e filled (fault.h).
 */
#ifndef GPQ_FILES_OUT_H
#define GPQ_FILES_OUT_H

#include "queue/files/files.h"
#include "queue/store.h"

/* Write the path of an attempt's directory, or of the published outputs; 0 or -ENAMETOOLONG. */
int gpq_out_work_path(char path[GPQ_PATH], const char *state, uint64_t task, uint32_t attempt);
int gpq_out_path(char path[GPQ_PATH], const char *state, uint64_t task);

/* Makes the directory of an attempt, with mode 0700.  One of the same name that is there is
 * removed first. */
int gpq_out_make(const struct gpq_files *f, const char *state, uint64_t task, uint32_t attempt,
                 struct gpq_error *e);

/* Makes all of it durable, before the commit that makes it the result.  EREFUSED: the command has
 * put a file or a symbolic link in its place. */
int gpq_out_sync(const struct gpq_files *f, const char *state, uint64_t task, uint32_t attempt,
                 struct gpq_error *e);

/* Removes the directory of an attempt, or the file that its command has put there. */
int gpq_out_drop(const struct gpq_files *f, const char *state, uint64_t task, uint32_t attempt,
                 struct gpq_error *e);

/* Removes work/ID with a suffix, such as ".old". */
int gpq_out_remove(const struct gpq_files *f, const char *state, uint64_t task, const char *suffix,
                   struct gpq_error *e);

#endif
