/* SPDX-License-Identifier: MIT */
/*
 * workload.h - a mix of four classes on four devices, for the simulator, and for fake devices at
 * 1/100 of its time.
 *
 * Two classes have resident workers of one device, one those of two devices, and one is transient.
 * The devices cannot hold all of them, and more tasks arrive than they can run.  The expected times
 * of the classes are true: boot and unload exactly, a run on average.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include <stdint.h>

#include "pooled.h"

#define B_WORK_CLASSES 4u
#define B_WORK_TASKS 200u
#define B_WORK_FASTER 100u /* the live run is this many times faster */

/* Times of the workload are milliseconds. */
struct b_work_task {
    unsigned class;
    uint32_t at, run, limit;
};

struct b_work {
    struct b_work_task task[B_WORK_TASKS]; /* in order of their arrival */
};

/* Draws the tasks: the same ones for the same number. */
void b_work_draw(struct b_work *w, unsigned number);

/* Returns nanoseconds of the live run. */
uint64_t b_work_time(uint32_t ms);

/* Writes the workload as a trace (lib/sim/trace.h).  0 or -1. */
int b_work_write_trace(const struct b_work *w, const char *path);

/* Writes the script of the fake devices (docs/reference/fake-scripts.md).  0 or -1. */
int b_work_write_script(const char *path);
#define B_WORK_DEVICES "fake:4,script=" /* behind it: that path */

/* Fills in the classes of the live run. */
void b_work_classes(struct b_pooled_class class[B_WORK_CLASSES]);

#endif
