/* SPDX-License-Identifier: MIT */
/*
 * hist.c - owns the mapping from a duration to a step and back.
 *
 * A step is the top bit of the value and the three bits below it, so adding is a shift and an
 * increment.  Steps are 32 bits wide to keep a snapshot small; when one is full all are halved,
 * which keeps every quantile and lets new values weigh more than those of hours ago.
 */
#include "base/hist.h"

#include <assert.h>

/* The largest value that belongs to a step. */
static uint64_t upper_edge(uint32_t step)
{
    if (step < GPI_HIST_EXACT)
        return step;
    uint32_t shift = step / 8 - 1;
    uint64_t lead = 8 + step % 8;
    return ((lead + 1) << shift) - 1;
}

void gpi_hist_halve(struct gpi_hist *h)
{
    for (uint32_t i = 0; i < GPI_HIST_STEPS; i++)
        h->step[i] -= h->step[i] / 2; /* a step in use stays in use */
}

static uint64_t sum_of_steps(const struct gpi_hist *h)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < GPI_HIST_STEPS; i++)
        sum += h->step[i];
    return sum;
}

/* How many of n values lie at or below the quantile: rounded up, at least 1. */
static uint64_t rank_of(double q, uint64_t n)
{
    double exact = q * (double)n;
    uint64_t rank = (uint64_t)exact;
    if ((double)rank < exact)
        rank++;
    if (rank < 1)
        rank = 1;
    return rank < n ? rank : n;
}

uint64_t gpi_hist_quantile(const struct gpi_hist *h, double q)
{
    assert(q >= 0.0 && q <= 1.0);
    uint64_t sum = sum_of_steps(h);
    if (sum == 0)
        return 0;
    uint64_t left = rank_of(q, sum);
    if (left == sum)
        return h->max;
    uint32_t i = 0;
    while (left > h->step[i])
        left -= h->step[i++];
    /* Only the last step has no upper edge of its own. */
    if (i == GPI_HIST_STEPS - 1 || upper_edge(i) > h->max)
        return h->max;
    return upper_edge(i);
}
