/* SPDX-License-Identifier: MIT */
/* dispatch.h - the agent's dispatcher: the tasks that it takes, and the events that it returns. */
#ifndef GPQ_AGENT_DISPATCH_H
#define GPQ_AGENT_DISPATCH_H

#include <jansson.h>

#include "queue/agent/work.h"

/* All GPUs of the machine; where it has none, tasks without GPUs run. */
#define GPQ_ALL_DEVICES "all"

/* Makes the dispatcher with its class of commands.  cpus: 0 = those of the machine. */
int gpq_dispatch_open(struct gpq_agent *a, const char *devices, uint32_t cpus,
                      struct gpq_error *e);
void gpq_dispatch_close(struct gpq_agent *a);

/* What the dispatcher gets of a task of commands; a caller may change it. */
void gpq_dispatch_describe(struct gpud_task_desc *d, const struct gpq_task *t, uint64_t limit,
                           char label[64]);
/* Submits a READY task.  EFULL: the dispatcher has no room now. */
int gpq_dispatch_submit(struct gpq_agent *a, const struct gpq_task *t,
                        const struct gpud_request *needs, uint64_t limit, struct gpq_error *e);
/* Hands over a task that runs: before everything else. */
int gpq_dispatch_adopt(struct gpq_agent *a, const struct gpq_task *t,
                       uint64_t limit, const char *devices, const struct gpud_proc *proc,
                       struct gpq_unit **ret, struct gpq_error *e);
/* A unit that the dispatcher does not have: of a task that runs and that it has refused, which ends
 * without it, or of one that waits for its claim. */
struct gpq_unit *gpq_dispatch_alone(struct gpq_agent *a, const struct gpq_task *t);
/* The one way in which a unit leaves: it is no more inside, and gets no devices.  If the dispatcher
 * knows it no more, it is freed, else after the dispatcher's outcome. */
void gpq_dispatch_leave(struct gpq_agent *a, struct gpq_unit *u);
/* All units of commands that have not started leave, and if the agent stops those of classes, too:
 * nothing starts. */
void gpq_dispatch_hold(struct gpq_agent *a);
/* Returns a grant; the task gets no other one for a second.  A task of a class leaves. */
void gpq_dispatch_decline(struct gpq_agent *a, struct gpq_unit *u);

/* Reads all events: notes grants, requests of the dispatcher to runs, and outcomes (turn.h). */
void gpq_dispatch_hear(struct gpq_agent *a);

#endif
