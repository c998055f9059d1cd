/* SPDX-License-Identifier: MIT */
/*
 * raw_ring.h - the bare loop over shared memory: a ring of cells per worker, with the two lines
 * that a task of ours has there (claim word and what the task is; end word and times), claimed by
 * compare-and-swap, one clock a task.  No queue, no records, no events, no limits, and nobody
 * sleeps while tasks flow: what ours costs beyond this are its books and its wake-ups.
 */
#ifndef BENCH_RAW_RING_H
#define BENCH_RAW_RING_H

#include <sys/types.h>

#include "pairs.h"
#include "raw_pipe.h"

#define B_RING_CELLS 64 /* the window */

struct b_ring;

struct b_ring_pool {
    unsigned n;
    struct b_ring *rings; /* shared with the workers */
    struct {
        pid_t pid;
        int gate; /* a byte wakes the worker for a round */
    } workers[B_WORKERS];
};

/* Forks n workers on one CPU.  0 or -1. */
int b_ring_pool_open(struct b_ring_pool *pool, unsigned n, int cpu);
void b_ring_pool_close(struct b_ring_pool *pool);

/* Keeps all cells full for a round, then waits for the last.  Gives tasks a second.  A b_round_fn;
 * user is the pool. */
int b_ring_round(void *pool, struct b_round *ret);

#endif
