/* SPDX-License-Identifier: MIT */
/*
 * hist.h - a histogram of durations, for quantiles of a running system in constant space.
 *
 * Eight steps per power of two from 0 to 2^48 ns (78 hours); longer ones share the last step.
 * An answer is never too small and at most one eighth too large.  1.5 KiB, no pointers: copy it
 * with `=`, zero it to begin.
 */
#ifndef GPI_HIST_H
#define GPI_HIST_H

#include <stdint.h>

#include "base/bits.h"

enum { GPI_HIST_BITS = 48, GPI_HIST_STEPS = (GPI_HIST_BITS - 2) * 8 };

struct gpi_hist {
    uint64_t max;
    uint32_t step[GPI_HIST_STEPS];
};

/* Below this each value has a step of its own. */
#define GPI_HIST_EXACT 16U

static inline uint32_t gpi_hist_step(uint64_t value)
{
    const uint64_t most = (1ull << GPI_HIST_BITS) - 1, v = value < most ? value : most;
    const uint32_t shift = gpi_highest_bit(v | 8) - 3; /* 0 below EXACT */

    return shift * 8 + (uint32_t)(v >> shift);
}

/* Halves every step, which keeps each quantile. */
void gpi_hist_halve(struct gpi_hist *h);

/* Counts one value.  Inline: three are counted for each task. */
static inline void gpi_hist_add(struct gpi_hist *h, uint64_t value)
{
    uint32_t *step = &h->step[gpi_hist_step(value)];

    if (*step == UINT32_MAX)
        gpi_hist_halve(h);
    *step += 1;
    if (value > h->max)
        h->max = value;
}

/*
 * Gives a value that at least the fraction q (0 to 1) of the values do not exceed.
 * Returns: 0 when there are none; exactly the largest value for q = 1.
 */
uint64_t gpi_hist_quantile(const struct gpi_hist *h, double q);

#endif
