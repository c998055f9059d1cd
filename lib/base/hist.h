/* SPDX-License-Identifier: MIT */
/*
 * hist.h - a histogram of durations, for quantiles of a running system in constant space.
 *
 * Eight steps per power of two.  A quantile is never too small and at most one eighth too large.
 * 2 KiB, no pointers: copy it with `=`, zero it to begin.
 */
#ifndef GPI_HIST_H
#define GPI_HIST_H

#include <stdint.h>

#include "base/bits.h"

enum { GPI_HIST_STEPS = (64 - 2) * 8 };

struct gpi_hist {
    uint64_t max;
    uint32_t step[GPI_HIST_STEPS];
};

/* Below this each value has a step of its own. */
#define GPI_HIST_EXACT 16U

static inline uint32_t gpi_hist_step(uint64_t value)
{
    const uint32_t shift = gpi_highest_bit(value | 8) - 3; /* 0 below EXACT */

    return shift * 8 + (uint32_t)(value >> shift);
}

/* Halves every step, which keeps each quantile. */
void gpi_hist_halve(struct gpi_hist *h);

/* Counts a value n times. */
static inline void gpi_hist_add_many(struct gpi_hist *h, uint64_t value, uint32_t n)
{
    uint32_t *step = &h->step[gpi_hist_step(value)];

    if (*step > UINT32_MAX - n)
        gpi_hist_halve(h);
    *step += n;
    if (value > h->max)
        h->max = value;
}

static inline void gpi_hist_add(struct gpi_hist *h, uint64_t value)
{
    gpi_hist_add_many(h, value, 1);
}

/*
 * Returns a value that at least the fraction q (0 to 1) of the values do not exceed: 0 if there are
 * none, and exactly the largest value for q = 1.
 */
uint64_t gpi_hist_quantile(const struct gpi_hist *h, double q);

#endif
