/* SPDX-License-Identifier: MIT */
/* raw_pipe.h - the bare loops over pipes that ours is measured against: no tasks, no queue, no checks. */
#ifndef BENCH_RAW_PIPE_H
#define BENCH_RAW_PIPE_H

#include <stdint.h>
#include <sys/types.h>

#define B_WORKERS 8
#define B_MOST_WORKERS 64
#define B_FRAME 64

struct b_raw_pool {
    unsigned n;
    int epoll;
    struct {
        pid_t pid;
        int task, event; /* our ends of its two pipes */
    } workers[B_MOST_WORKERS];
};

/* How the parent learns which event pipes have something. */
enum b_raw_look { B_LOOK_POLL = 0, B_LOOK_EPOLL = 1 };

/* Forks n workers on one CPU; each reads up to 4 KiB of frames and answers them in one write.  0 or -1. */
int b_raw_pool_open(struct b_raw_pool *pool, unsigned n, int cpu);
void b_raw_pool_close(struct b_raw_pool *pool);

/* One frame to worker 0 and back: write, poll, read.  A b_trip_fn; user is the pool. */
int b_raw_trip(void *pool);

/*
 * Keeps `window` frames at each worker for `duration`, then waits for the last.
 * All free places of a worker are filled with one write.
 * Gives frames a second and the parent's CPU time per frame in nanoseconds.  0 or -1.
 */
int b_raw_stream(struct b_raw_pool *pool, unsigned window, enum b_raw_look look, uint64_t duration, double *ret_rate,
                 double *ret_cpu);

#endif
