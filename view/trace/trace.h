/* SPDX-License-Identifier: MIT */
/*
 * trace.h - a night as a trace: JSON of the Chrome trace event format, for Perfetto.
 *
 * Each GPU is a process whose pid is its place in the list plus 1.  Its tracks are tasks (tid 1),
 * worker (2) and device (3).  Slices of a track never overlap: the second task of a shared GPU is
 * on track "tasks 2" (11), and so on.  Process 0 is the queue: tasks without a GPU, and a counter of
 * waiting tasks for each batch.  Each bad end is an instant on the track of its attempt.   [V4]
 *
 * Times are us since 1970.  Memory does not grow with the number of events.
 */
#ifndef GPV_TRACE_H
#define GPV_TRACE_H

#include <stdio.h>

#include "view/records.h"

/* Writes to a stream, whose error flag the caller checks.  0, or -1 without memory. */
int gpv_trace_write(const struct gpv_night *n, FILE *f);

#endif
