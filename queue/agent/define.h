/* SPDX-License-Identifier: MIT */
/*
 * define.h - sections of the config file as classes of the dispatcher.
 */
#ifndef GPQ_AGENT_DEFINE_H
#define GPQ_AGENT_DEFINE_H

#include "queue/agent/classes.h"

/*
 * Adds each class of the config to the dispatcher.  No worker of it starts before a task waits, but
 * for min-workers.  A class that the dispatcher refuses is logged, and the agent goes on without
 * it.  The config must outlive the classes.  ENOMEM.
 */
int gpq_classes_open(struct gpq_agent *a, const struct gpq_config *config, struct gpq_error *e);
/* The same without a dispatcher, for a closed store: names and numbers of GPUs. */
int gpq_classes_list(struct gpq_agent *a, const struct gpq_config *config, struct gpq_error *e);
/* Ends the workers, whose tasks get no outcome any more: the next agent returns them. */
void gpq_classes_close(struct gpq_agent *a);

#endif
