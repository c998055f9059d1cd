/* SPDX-License-Identifier: MIT */
/* raw_pipe.h - the bare loops over pipes that ours is measured against: no tasks, no queue, no
 * checks. */
#ifndef BENCH_RAW_PIPE_H
#define BENCH_RAW_PIPE_H

#include <sys/types.h>

#include "pairs.h"

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

/* Forks n workers on one CPU; each reads up to 4 KiB of frames and answers them in one write. 0 or
 * -1. */
int b_raw_pool_open(struct b_raw_pool *pool, unsigned n, int cpu);
void b_raw_pool_close(struct b_raw_pool *pool);

/* One frame to worker 0 and back: write, poll, read.  A b_trip_fn; user is the pool. */
int b_raw_trip(void *pool);

/* Frames that flow through a pool. */
struct b_raw_stream {
    struct b_raw_pool *pool;
    unsigned window; /* frames kept at each worker */
    enum b_raw_look look;
};

/* Takes the one of poll and epoll that is faster here. */
void b_raw_stream_init(struct b_raw_stream *stream, struct b_raw_pool *pool, unsigned window);

/*
 * Lets frames flow for a round, then waits for the last.  All free places of a worker are filled
 * with one write.  Gives frames a second.  A b_round_fn; user is the stream.
 */
int b_raw_round(void *stream, struct b_round *ret);

#endif
