/* SPDX-License-Identifier: MIT */
/*
 * workers.h - tasks of classes of workers, from their claim to their end.
 *
 * A worker runs one task after the other, and no grant stands between.  So a task is claimed, and
 * the claim is committed, before the dispatcher gets the task and may start it.             [Q2]
 * Some tasks are claimed while others run: enough for the workers to be busy during a commit, and
 * for the dispatcher to see when a further worker pays (gpq_workers_ahead).  Until such a task
 * starts, it returns uncharged, at its place, if the class is paused or the agent drains.
 *
 * Workers die with the agent.  The tasks that it had claimed return uncharged when the next one
 * opens; with at_most_once they end LOST, since they may have run.  Of these tasks no more are
 * claimed than there may be workers.
 *
 *     GRANTED    noted for the next transaction, which claims it
 *     STARTING   claimed, and committed
 *     RUNS       the dispatcher has it
 *     ENDED      the dispatcher has given its outcome
 */
#ifndef GPQ_AGENT_WORKERS_H
#define GPQ_AGENT_WORKERS_H

#include "queue/agent/classes.h"
#include "queue/agent/work.h"
#include "queue/files/results.h"

/* What the store keeps as the run of such an attempt. */
#define GPQ_WORKER_RUN "worker"

/* How many tasks of a class may be claimed now. */
int64_t gpq_workers_ahead(struct gpq_agent *a, const struct gpq_class *class, bool at_most_once);

/* Notes a READY task for its claim.  limit: GPUD_NEVER = that of the class.  GPQ_ENOMEM. */
int gpq_workers_want(struct gpq_agent *a, struct gpq_class *class, const struct gpq_task *t,
                     uint64_t limit, struct gpq_error *e);
/* After the commit of its claim: gives the task to the dispatcher, or returns it. */
void gpq_workers_start(struct gpq_agent *a, struct gpq_unit *u);
/* The dispatcher's outcome. */
void gpq_workers_ended(struct gpq_agent *a, struct gpq_unit *u, const struct gpud_event *event);
/* Inside the transaction: fills the result of *end, of which the bytes live as the unit does.  A
 * large one becomes a file.  [Q2] */
int gpq_workers_result(struct gpq_agent *a, struct gpq_unit *u, struct gpq_end *end,
                       char name[GPQ_RESULT_NAME], struct gpq_error *e);

/* Whether a worker runs the task of this unit. */
bool gpq_workers_run(struct gpq_agent *a, const struct gpq_unit *u);
/* Pauses a class or lets it go on; the tasks that have not started return to their places. */
void gpq_workers_pause(struct gpq_agent *a, struct gpq_class *class, bool paused);
/* Returns the tasks that have not started: the agent drains. */
void gpq_workers_drain(struct gpq_agent *a);
/* A device is drained at once: the tasks that workers run there return to their places. */
void gpq_workers_evict(struct gpq_agent *a, const char *device);
/* Whether a class has failed, or works again: an event of the dispatcher. */
void gpq_workers_changed(struct gpq_agent *a, const struct gpud_event *event);
/* No task of the class waits any more.  A class that has failed tries again with the next one. */
void gpq_workers_idle(struct gpq_agent *a, struct gpq_class *class);

/* Appends why a task of a class that is not claimed does not start; nothing for a command. */
int gpq_workers_explain(struct gpq_agent *a, uint64_t task, json_t *array);

#endif
