/* SPDX-License-Identifier: MIT */
/* dispatch.h - the agent's dispatcher: what it gives it, and what it learns from it. */
#ifndef GPQ_AGENT_DISPATCH_H
#define GPQ_AGENT_DISPATCH_H

#include "queue/agent/work.h"

/* Makes the dispatcher with its class of commands.  cpus: 0 = those of the machine. */
int gpq_dispatch_open(struct gpq_agent *a, const char *devices, uint32_t cpus,
                      struct gpq_error *e);
void gpq_dispatch_close(struct gpq_agent *a);

/* Submits a READY task.  EFULL: the dispatcher has no room now. */
int gpq_dispatch_submit(struct gpq_agent *a, const struct gpq_task *t,
                        const struct gpud_request *needs, uint64_t limit, struct gpq_error *e);
/* Hands over a task that runs: before everything else. */
int gpq_dispatch_adopt(struct gpq_agent *a, const struct gpq_task *t,
                       const struct gpud_request *needs, uint64_t limit, const char *devices,
                       const struct gpud_proc *proc, struct gpq_unit **ret, struct gpq_error *e);
/* The task is no more the dispatcher's: it gets no devices. */
void gpq_dispatch_withdraw(struct gpq_agent *a, struct gpq_unit *u);

/* Reads all events: notes grants, requests of the dispatcher to runs, and outcomes (turn.h). */
void gpq_dispatch_hear(struct gpq_agent *a);

#endif
