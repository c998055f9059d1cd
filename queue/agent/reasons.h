/* SPDX-License-Identifier: MIT */
/* reasons.h - why a task does not start, as the dispatcher sees it, in rows of the protocol. */
#ifndef GPQ_AGENT_REASONS_H
#define GPQ_AGENT_REASONS_H

#include <jansson.h>

#include <gpudispatch/gpudispatch.h>

#include "queue/agent/agent.h"

/* The reason as a line for people, with the public id of the task in the way, and without the time
 * that is left, which the next moment changes. */
void gpq_reason_text_of(struct gpq_agent *a, const struct gpud_reason *r, char *text, size_t size);

/* Each appends rows, and returns 0 or GPQ_ENOMEM. */

/* Of a task of the dispatcher, or of one that is not submitted: then id is 0. */
int gpq_dispatch_explain(struct gpq_agent *a, uint64_t id, const struct gpud_task_desc *task,
                         json_t *array);
/* A row of the agent's own. */
int gpq_reason_add(json_t *array, const char *reason, const char *text);

#endif
