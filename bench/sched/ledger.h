/* SPDX-License-Identifier: MIT */
/*
 * ledger.h - the benchmark's own books of a workload: what each device has in use, which jobs
 * wait, and how long devices were busy, idle, or held.
 *
 * It knows only the actions of the plan.  A device with an idle part is *held* while a job waits
 * that may use the device: the first such job is its head, and the plan keeps the idle part for
 * it, or the part is too small for it.  So this counts all that heads cost, and what they lose
 * because memory does not fit, too.  It is *missed* if a waiting job for one device would fit
 * there at once.
 */
#ifndef BENCH_SCHED_LEDGER_H
#define BENCH_SCHED_LEDGER_H

#include "jobs.h"

#define B_RUNS_OF_DEVICE 16u

struct b_place {
    uint64_t memory; /* in use */
    uint32_t share, n_runs;
    uint32_t run[B_RUNS_OF_DEVICE]; /* jobs */
    uint32_t warm[B_MODELS];        /* workers that are up, of each model */
    uint32_t idle[B_MODELS];        /* of these, those without a task */
};

struct b_ledger {
    const struct b_workload *w;
    const struct b_job *job;
    struct b_place place[B_DEVICES];
    uint32_t *queue[B_TYPES];               /* jobs of the type, in order */
    uint32_t first[B_TYPES], last[B_TYPES]; /* of the queue: from the first one that waits */
    double busy, held, missed;              /* device-seconds */
};

/* Returns: 0, or -1 if there is no memory.  fini: in either case. */
int b_ledger_init(struct b_ledger *l, const struct b_workload *w, const struct b_job *job,
                  uint32_t n);
void b_ledger_fini(struct b_ledger *l);

void b_ledger_wait(struct b_ledger *l, uint32_t job);
/* The job begins on the devices.  It is the first of its type that waits: returns true if so. */
bool b_ledger_begin(struct b_ledger *l, uint32_t job, const uint16_t *device, uint32_t n);
void b_ledger_end(struct b_ledger *l, uint32_t job, const uint16_t *device, uint32_t n);
/* A worker of the model takes its memory, or returns it. */
void b_ledger_worker(struct b_ledger *l, uint32_t model, uint16_t device, bool has);
/* It is up, or leaves. */
void b_ledger_warm(struct b_ledger *l, uint32_t model, uint16_t device, bool warm);
/* It is up and has no task, or not any more. */
void b_ledger_idle(struct b_ledger *l, uint32_t model, uint16_t device, bool idle);

/* Nothing changes for so many seconds. */
void b_ledger_pass(struct b_ledger *l, double seconds);

/*
 * Returns when the job, which is the head of devices since now, would begin if no other job began
 * on these: enough runs have ended on as many devices as it needs.  `ends` has the end of each
 * job that runs.  GPI_NEVER: it is unknown.                                                 [S2]
 */
uint64_t b_ledger_apart(const struct b_ledger *l, uint32_t job, const uint64_t *ends, uint64_t now);

#endif
