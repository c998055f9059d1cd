/* SPDX-License-Identifier: MIT */
/* belongs.c - whether files of the state directory belong to a task of the store. */
#include "queue/agent/belongs.h"

#include "queue/agent/lookup.h"

enum gpq_out_fate gpq_fate_of(uint64_t task, uint32_t attempt, void *user)
{
    struct gpq_task t;
    struct gpq_error e;
    int found = gpq_task_look(user, task, &t, &e);
    if (found < 0)
        return GPQ_OUT_KEEP;
    if (found == 0 || t.attempt != attempt)
        return GPQ_OUT_DROP;
    if (t.state == GPQ_RUNNING)
        return GPQ_OUT_KEEP;
    return t.state == GPQ_DONE && t.outcome == GPQ_OUTCOME_SUCCESS ? GPQ_OUT_PUBLISH : GPQ_OUT_DROP;
}

int gpq_result_used(uint64_t task, uint32_t attempt, const char *name, void *user)
{
    struct gpq_store *s = user;
    struct gpq_error e;
    (void)name;
    return s->engine->names_file(s, task, attempt, &e);
}
