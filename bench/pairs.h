/* SPDX-License-Identifier: MIT */
/*
 * pairs.h - rounds of raw and of ours, next to each other. A figure is the median of the pairs'
 * ratios.  The machine changes its state several times a second, so a median of raw rounds over a
 * median of ours may divide rounds of two different states.
 */
#ifndef BENCH_PAIRS_H
#define BENCH_PAIRS_H

#include <stddef.h>

#include "machine.h"
#include "measure.h"

#define B_MOST_PAIRS 64

/* How long a round takes: shorter than most states of a machine, longer than what a start and an
 * end cost. */
#define B_ROUND (25 * B_MS)

/* What one round of one side has measured. */
struct b_round {
    double value; /* tasks a second, or the time of one */
    double cpu;   /* CPU time of the host per task in nanoseconds; 0 where it is not measured */
};

/* Measures one round.  0, or -1 after a complaint. */
typedef int b_round_fn(void *user, struct b_round *ret);

struct b_side {
    b_round_fn *measure;
    void *user;
};

struct b_pairs {
    size_t n;
    struct b_round raw[B_MOST_PAIRS], ours[B_MOST_PAIRS];
    struct b_states states; /* of the machine, seen before each pair */
};

/* What the pairs have measured. */
enum b_what { B_VALUE, B_CPU };

/* Looks at the machine and measures one more pair; every other one begins with ours.  0 or -1. */
int b_pairs_take(struct b_pairs *p, const struct b_side *raw, const struct b_side *ours);

/* Gives median and quartiles of the ratios ours / raw, and the medians of both sides. */
struct b_spread b_pairs_ratio(const struct b_pairs *p, enum b_what what);
double b_pairs_raw(const struct b_pairs *p, enum b_what what);
double b_pairs_ours(const struct b_pairs *p, enum b_what what);

#endif
