/* SPDX-License-Identifier: MIT */
/*
 * left.h - how long a batch still needs, as a range.                                      [V8]
 *
 * The owner reports each start and end of a task.  Asked, the estimator plays the rest of the batch
 * 32 times and leaves out the extreme plays.  In a play, the tasks run as long as some of those
 * that ended lately, and as many at once as now, or as on average since an earlier time.
 * The draws have a fixed seed: the same reports yield the same range.
 *
 * Unknown is an answer: before GPV_LEFT_ENDS tasks have ended; and while tasks wait but none has run for as
 * long as a task usually takes, since the batch itself does not show when it may go on.
 * No range covers batches of a higher priority that are still to come.
 *
 * A struct of zeros is a batch of which nothing is known.  It needs no further memory: 2.6 KiB.
 * Times are ns on one clock.  A clock that was set back counts as one that stood still.
 */
#ifndef GPV_LEFT_H
#define GPV_LEFT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    GPV_LEFT_RUNS = 256,
    GPV_LEFT_PLACES = 64,
    GPV_LEFT_MARKS = 64,
    GPV_LEFT_ENDS = 4 /* with fewer, nothing is known */
};

struct gpv_left {
    uint64_t ends;                    /* of which a ring has the newest */
    float run[GPV_LEFT_RUNS];         /* s */
    int64_t started[GPV_LEFT_PLACES]; /* of tasks that run: of more than these, the number only */
    uint32_t n_started, running;
    int64_t changed; /* the last report */
    double area;     /* running tasks times seconds, until `changed` */
    uint32_t n_marks;
    uint64_t every; /* ns between marks, which reach back to the first start */
    struct gpv_left_mark {
        int64_t time;
        double area;
    } mark[GPV_LEFT_MARKS];
};

/* A task starts. */
void gpv_left_start(struct gpv_left *l, int64_t now);
/* An attempt ends: for good, or its task waits again.  `started` is as its start was reported. */
void gpv_left_end(struct gpv_left *l, int64_t started, int64_t now);

/* Returns in *least and *most the time, in ns, until the running tasks and `waiting` ones have
 * ended; -1: unknown.  `more`: tasks are held, not only for their turn, or will be added, and
 * so *most is unknown. */
void gpv_left(const struct gpv_left *l, int64_t now, uint32_t waiting, bool more, int64_t *least,
              int64_t *most);

/* Adds a batch to the time left of several: the last of them to end.  Begin with 0 and 0. */
void gpv_left_join(int64_t *least, int64_t *most, int64_t batch_least, int64_t batch_most);

#endif
