/* SPDX-License-Identifier: MIT */
/*
 * place.h - which worker gets how many tasks next, how far ahead tasks are sent, and who must
 * give one back.  Arithmetic over an array of loads; knows no slot, task or clock.
 */
#ifndef GPI_SCHED_PLACE_H
#define GPI_SCHED_PLACE_H

#include <stdint.h>

/* One worker that takes tasks. */
struct gpi_load {
    uint32_t slot;
    uint32_t sent; /* tasks there now */
    uint32_t room; /* how many more it may have */
};

/* Deals tasks out level by level, so that every worker has n before any has n + 1.   [C5] */
struct gpi_placer {
    struct gpi_load *load;
    uint32_t n;      /* those that still have room */
    uint32_t cursor;
    uint32_t level;
};

/* Begins with n loads, each with room; the array is used up. */
void gpi_placer_begin(struct gpi_placer *p, struct gpi_load *load, uint32_t n);

/* The slot that gets the next task, or GPI_PLACER_FULL when none has room. */
#define GPI_PLACER_FULL UINT32_MAX
uint32_t gpi_placer_next(struct gpi_placer *p);

/* Tasks to have at a worker, the running one included, when runs take `mean_run` ns on average
 * (0 = unknown): 2, and up to 64 below 0.5 ms. */
uint32_t gpi_place_depth(uint64_t mean_run);

/* Whether a task sent to a worker that holds `sent` and was last heard of `quiet` ns ago should
 * be taken back for an idle worker. */
int gpi_place_recall(uint32_t sent, uint64_t quiet);

/* When a worker that was last heard of then counts as stuck in a long task, given how long tasks
 * take on average: from then on nothing waits behind it while others work. */
uint64_t gpi_place_stuck_at(uint64_t last_heard, uint64_t mean_run);

#endif
