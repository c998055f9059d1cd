/* SPDX-License-Identifier: MIT */
/* day.h - a workload in virtual time, decided by the plan, and what came of it. */
#ifndef BENCH_SCHED_DAY_H
#define BENCH_SCHED_DAY_H

#include <stddef.h>

#include "jobs.h"

/* Seconds that jobs waited, sorted. */
struct b_waits {
    double *s;
    size_t n;
};

/* Of all jobs until the last one has ended.  Device-seconds count until the last arrival. */
struct b_day {
    double seconds;            /* until the last arrival */
    double busy, held, missed; /* device-seconds: see ledger.h */
    struct b_waits narrow, wide;
    struct b_waits delay; /* of heads, against the start without those that passed    [S2] */
    uint64_t passed, promises, renewed, late;
    uint64_t boots, unloads;
};

struct b_way {
    const char *name;
    enum gpi_mode mode;
    enum gpi_passing passing;
};

/* Returns: 0, or -1 after a complaint.  free: in either case. */
int b_day_run(struct b_day *ret, const struct b_workload *w, const struct b_job *job, uint32_t n,
              const struct b_way *way);
void b_day_free(struct b_day *day);

/* Returns the wait that a share p of them does not exceed; NaN for none. */
double b_waits_percentile(const struct b_waits *waits, double p);

#endif
