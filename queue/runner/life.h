/* SPDX-License-Identifier: MIT */
/* life.h - the life of the runner, of which run.h has the picture. */
#ifndef GPQ_RUNNER_LIFE_H
#define GPQ_RUNNER_LIFE_H

#include "queue/runner/plan.h"

/* Runs the command of a plan.  The record has `size` bytes, its head; all signals are blocked.
 * Returns the exit status of the runner. */
int gpq_life(const struct gpq_plan *plan, size_t size);

#endif
