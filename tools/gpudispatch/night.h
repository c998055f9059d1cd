/* SPDX-License-Identifier: MIT */
/*
 * night.h - the records of a night, for the verbs that show it.
 */
#ifndef NIGHT_H
#define NIGHT_H

#include "tools/cli/verb.h"
#include "view/records.h"

/*
 * Reads the records that the operands BATCH and the options --since, --from and --state-dir name,
 * from the agent, the store of an agent that has ended, or a recording.  A batch names a time:
 * records of other batches are there, too, and its own row is marked (records.h, `asked`).
 *
 * `names`: of so many attempts the tasks have names, and of later ones those that ended badly.
 * 0 with *ret, which the caller frees; or the exit status, after saying why.
 */
int night_read(const struct call *call, size_t names, struct gpv_night **ret);

/* "out of memory", on standard error.  Returns EXIT_FAILED. */
int night_no_memory(const struct call *call);

#endif
