/* SPDX-License-Identifier: MIT */
/*
 * results.h - results that are too large for the store, as files results/BATCH/NUMBER.ATTEMPT.
 *
 * A file is whole and durable before the commit that names it.  A crash between leaves a file that
 * no commit names, which the sweep removes when the store is opened.
 *
 * `state` is the state directory.  A name stands below results/: "12/44.2".  Each function with an
 * error returns 0, or a GPQ_E code with *e filled (fault.h).
 */
#ifndef GPQ_FILES_RESULTS_H
#define GPQ_FILES_RESULTS_H

#include "queue/files/files.h"
#include "queue/store.h"

enum { GPQ_RESULT_NAME = 36 }; /* bytes of a name, with its NUL byte */

/* Writes the name of an attempt's result. */
void gpq_result_name(char ret[GPQ_RESULT_NAME], uint64_t task, uint32_t attempt);

/* Writes the result of an attempt and its name. */
int gpq_result_save(const struct gpq_files *f, const char *state, uint64_t task, uint32_t attempt,
                    struct gpq_bytes data, char ret_name[GPQ_RESULT_NAME], struct gpq_error *e);

/* Reads a result into memory that the caller frees. */
int gpq_result_read(const struct gpq_files *f, const char *state, const char *name,
                    struct gpq_bytes *ret, struct gpq_error *e);

/* Removes a result, after the commit that forgets it; one that is not there, too. */
int gpq_result_drop(const struct gpq_files *f, const char *state, const char *name,
                    struct gpq_error *e);

/* Whether the store names this result: 1 or 0, or a GPQ_E code. */
typedef int (*gpq_result_used_fn)(uint64_t task, uint32_t attempt, const char *name, void *user);

/* Removes the results that the store does not name, unfinished files and empty directories.  Other
 * names stay.  After a failure it goes on, and returns the first one, or a later one of the disk,
 * the store or the memory (fault.h).  A save may rely on directories that are there only after a
 * sweep, which makes them durable. */
int gpq_results_sweep(const struct gpq_files *f, const char *state, gpq_result_used_fn used,
                      void *user, struct gpq_error *e);

#endif
