/* SPDX-License-Identifier: MIT */
/*
 * samples.h - times in nanoseconds, without the ones in which another program had the CPU.
 *
 * If a sample is long and the kernel has taken the CPU away since the last long one, it is counted
 * and left out: a slice of another program takes milliseconds, and would be most of a mean.
 */
#ifndef BENCH_SCHED_SAMPLES_H
#define BENCH_SCHED_SAMPLES_H

#include <stddef.h>

struct b_samples {
    double *ns;
    size_t n, room;
    size_t interrupted;
    long switches; /* of this process, so far */
};

/* Returns: 0, or -1 after a complaint.  fini: in either case. */
int b_samples_init(struct b_samples *s, size_t room);
void b_samples_fini(struct b_samples *s);

/* Adds a time, less what the clock takes; none if there is no room. */
void b_samples_add(struct b_samples *s, double ns, double clock);

/* NaN for none. */
double b_samples_mean(const struct b_samples *s);

#endif
