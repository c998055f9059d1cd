/* SPDX-License-Identifier: MIT */
/* records.h - the records of the queue: from its agent, or from the closed store. */
#ifndef GPQ_CLIENT_RECORDS_H
#define GPQ_CLIENT_RECORDS_H

#include "tools/cli/verb.h"

/* Whole lines of view/line.h.  Another value than 0 ends the reading, and is returned. */
typedef int (*gpq_records_fn)(const char *lines, size_t size, void *user);

/*
 * Calls fn with all lines of rows that had not ended before `since` (ns since 1970; 0: all).  The
 * operands of the call are ids or names of batches; without one the rows of all are read.  names:
 * tasks have their names, or commands.
 *
 * The agent prepares the next lines while fn has these.  If no agent runs, none is started: the
 * agent's program prints those of the store.  Returns 0, or the exit status after saying why:
 * EXIT_NONE where there is no queue, or no such batch.
 */
int gpq_records_read(const struct call *call, uint64_t since, bool names, gpq_records_fn fn,
                     void *user);

#endif
