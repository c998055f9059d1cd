/* SPDX-License-Identifier: MIT */
/*
 * stream.h - tasks of 64 B that do nothing, as many as go through a dispatcher in a round.
 * A handler is called for each event, and a stats snapshot is taken every 100 ms.
 */
#ifndef BENCH_STREAM_H
#define BENCH_STREAM_H

#include <stdint.h>

#include "ours.h"
#include "pairs.h"

#define B_AT_ONCE 64 /* tasks of one call of submit_many */

/* How tasks are given in. */
enum b_way { B_BY_SUBMIT, B_BY_MANY, B_BY_RUN };

struct b_stream {
    struct b_ours *ours;
    enum b_way way;
    struct b_order order;
    struct gpud_task_desc tasks[B_AT_ONCE]; /* alike, but for their classes by turns */
    uint64_t start, pulled, next_stats;
    int over;
};

/* Borrows the dispatcher.  B_BY_RUN needs one that is not pooled.  The stream stays where it is:
 * its tasks point into it. */
void b_stream_init(struct b_stream *s, struct b_ours *ours, enum b_way way);

/* Lets tasks flow for a round, then waits for the last.  Gives tasks a second.  A b_round_fn; user
 * is the stream. */
int b_stream_round(void *stream, struct b_round *ret);

#endif
