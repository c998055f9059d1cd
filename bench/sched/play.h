/* SPDX-License-Identifier: MIT */
/* play.h - a trace (lib/sim/trace.h) in the simulator. */
#ifndef BENCH_SCHED_PLAY_H
#define BENCH_SCHED_PLAY_H

/* What the simulator's summary has: seconds, and counts. */
struct b_played {
    double makespan, wait; /* wait: the median until the first start */
    unsigned successes, boots, evictions;
};

#define B_NO_SIMULATOR 1

/* Plays the file.  Returns 0, -1 after a complaint, or B_NO_SIMULATOR if the benchmark was built
 * without jansson. */
int b_play(const char *path, struct b_played *ret);

#endif
