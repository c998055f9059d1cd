/* SPDX-License-Identifier: MIT */
/*
 * place.h - how many tasks a worker gets ahead, and when tasks behind a long task return.  [C5]
 *
 * Arithmetic alone: no slot, no task, no clock.
 */
#ifndef GPI_SCHED_PLACE_H
#define GPI_SCHED_PLACE_H

#include <stdbool.h>
#include <stdint.h>

/* A worker that is silent for this long runs a long task: an idle worker may get a task that waits
 * there. */
#define GPI_PLACE_QUIET_NS 1000000u

/* Returns the number of tasks to have at a worker, with the running task, if its tasks take
 * `mean_run` ns on average (0 = unknown): 2, and up to 64 below 0.5 ms.  In a pool it is 1 from
 * 0.1 s on, and as long as nothing is known: a task may have a worker of its own sooner. */
uint32_t gpi_place_depth(uint64_t mean_run, bool pooled);

/* Returns true if `depth` is gpi_place_depth(mean_run, pooled).  May return false for the right
 * depth, too.  Costs no division.  `mean_run` is not 0. */
bool gpi_place_fits(uint32_t depth, uint64_t mean_run, bool pooled);

/* Returns the time from which a worker counts as stuck in a long task.  It has ended its last task
 * at `since`, and tasks take `mean_run` ns on average.  From then on no task waits behind that one
 * while other workers work; in a pool none does at all. */
uint64_t gpi_place_stuck_at(uint64_t since, uint64_t mean_run);

#endif
