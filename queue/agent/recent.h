/* SPDX-License-Identifier: MIT */
/*
 * recent.h - the tasks that changed lately, for readers of records.
 *
 * A reader gets the rows of the store in pages, and work goes on between two of them.  Each page
 * begins with the rows that have changed since the one before, so that all that it has got fits
 * together when it gets the last one.  The list begins with the first page that a reader gets from
 * the agent: an agent without readers has none.  A reader that pauses for more than GPQ_RECENT
 * changes, or goes on with another agent, misses the changes before its next page.  Rows that a
 * purge forgets between two pages stay with the reader.
 */
#ifndef GPQ_AGENT_RECENT_H
#define GPQ_AGENT_RECENT_H

#include "queue/agent/agent.h"

enum { GPQ_RECENT = 16384 }; /* tasks, 8 bytes each */

struct gpq_recent;

/* The number of the next change; from now on changes are kept. */
uint32_t gpq_recent_next(struct gpq_agent *a);
/* A commit has succeeded. */
void gpq_recent_turned(struct gpq_agent *a);
/* A batch is sealed, which changes it without a task: fn gets the task of number 0. */
void gpq_recent_sealed(struct gpq_agent *a, uint32_t batch);
/* Calls fn for the task of each change from *number on, which moves behind it, until fn returns
 * another value than 0, which it then returns. */
int gpq_recent_each(const struct gpq_agent *a, uint32_t *number,
                    int (*fn)(uint64_t task, void *user), void *user);
void gpq_recent_close(struct gpq_agent *a);

#endif
