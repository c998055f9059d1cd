/* SPDX-License-Identifier: MIT */
/* follow.h - the output of a task as it comes, and waiting for the end of tasks. */
#ifndef GPQ_CLIENT_FOLLOW_H
#define GPQ_CLIENT_FOLLOW_H

#include "queue/client/session.h"

/*
 * Prints the output of a task, attempt after attempt, until it has ended.  *ret gets its last row.
 * 0; EXIT_TIMEOUT after the deadline of the session; -1: interrupted; or an exit status after
 * saying why.  With `for_reader` it ends with 0, too, once the reader of standard output has closed
 * it.
 */
int gpq_follow_task(struct gpq_session *s, const char *task, bool for_reader, json_t **ret);

/*
 * Waits until the tasks of all selections have ended.  On a terminal it shows how they go on.
 * Status as above.
 */
int gpq_wait_for(struct gpq_session *s, json_t *selections);

/* Prints how the tasks of selections ended, the first failures, and the command that runs them
 * again.  0, EXIT_WRONG, or another status after saying why. */
int gpq_summary(struct gpq_session *s, json_t *selections);

/* The row of one task. */
int gpq_task_row(struct gpq_session *s, const char *task, json_t **ret);
/* Its last attempt; NULL: it has none. */
json_t *gpq_last_attempt(struct gpq_session *s, const json_t *row);

#endif
