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

enum { GPI_HIST_BITS = 48, GPI_HIST_STEPS = (GPI_HIST_BITS - 2) * 8 };

struct gpi_hist {
    uint64_t count;
    uint64_t max;
    uint32_t step[GPI_HIST_STEPS];
};

/* Counts one value. */
void gpi_hist_add(struct gpi_hist *h, uint64_t value);

/*
 * Gives a value that at least the fraction q (0 to 1) of the values do not exceed.
 * Returns: 0 when there are none; exactly the largest value for q = 1.
 */
uint64_t gpi_hist_quantile(const struct gpi_hist *h, double q);

/* How many values were added. */
uint64_t gpi_hist_count(const struct gpi_hist *h);

#endif
