/* SPDX-License-Identifier: MIT */
/* belongs.h - whether files of the state directory belong to a task of the store. */
#ifndef GPQ_AGENT_BELONGS_H
#define GPQ_AGENT_BELONGS_H

#include "queue/files/publish.h"

/* For gpq_out_recover and gpq_results_sweep, with a struct gpq_store as `user`. */
enum gpq_out_fate gpq_fate_of(uint64_t task, uint32_t attempt, void *user);
int gpq_result_used(uint64_t task, uint32_t attempt, const char *name, void *user);

#endif
