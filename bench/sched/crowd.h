/* SPDX-License-Identifier: MIT */
/*
 * crowd.h - many tasks that wait for devices, and a plan that decides.
 *
 * Five of eight shapes need one device, three of these a share of it; the others need 2, 4 or 8.
 * Runs take 1 to 100 s, on a logarithmic scale, and limits are 1.5 times the run.  One device in
 * four has 40 GiB, the others have 80 GiB.  Time is virtual: only what the plan does is timed.
 */
#ifndef BENCH_SCHED_CROWD_H
#define BENCH_SCHED_CROWD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "sched/plan.h"
#include "sim/random.h"

#define B_CROWD_CLASSES 64u

struct b_crowd_set {
    uint32_t devices, tasks, shapes;
    enum gpi_passing passing;
};

struct b_crowd {
    struct b_crowd_set set;
    struct gpi_plan *p;
    struct gpi_random rng;
    struct gpi_request *request; /* of each shape */
    uint64_t *run;               /* of each task */
    struct gpi_heap ends;        /* of the tasks that run */
    uint32_t *started;           /* by the last decision */
    uint32_t n_started, waiting;
    uint64_t now, order;
};

/* Returns: 0, or -1 after a complaint.  close: in either case. */
int b_crowd_open(struct b_crowd *c, const struct b_crowd_set *set);
void b_crowd_close(struct b_crowd *c);

/* Submits all tasks, of which none waits or runs.  Returns the ns that a submit took, with the
 * drawing of the task. */
double b_crowd_submit(struct b_crowd *c);

/* Decides.  Returns the ns that it took. */
uint64_t b_crowd_decide(struct b_crowd *c);

/* Ends the next run, and decides.  Returns the ns that these took. */
uint64_t b_crowd_step(struct b_crowd *c);

static inline bool b_crowd_runs(const struct b_crowd *c)
{
    return c->ends.count > 0;
}

#endif
