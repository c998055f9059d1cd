/* SPDX-License-Identifier: MIT */
/*
 * history.h - the work on each device in the last ten minutes, for Pool.progress().
 *
 * It is filled from the events that are read in any case, a second of a device at a time: so its
 * memory is bounded, and nothing wakes up for it.  Bad ends are counted apart and never joined with
 * anything else.                                                                           [V1][V4]
 */
#ifndef CORE_HISTORY_H
#define CORE_HISTORY_H

#include "core.h"

struct core_history;

/* A history that begins at `now`.  NULL: no memory. */
struct core_history *core_history_new(uint64_t now);
void core_history_free(struct core_history *h);

/* Takes events that were read at `now`.  Without memory for a device or a slot, it leaves the time
 * of that one out. */
void core_history_take(struct core_history *h, const struct gpud_event *events, int n,
                       uint64_t now);

/*
 * A tuple: its begin, names of classes, lanes, the last bad ends, and how many there were.
 * A lane is a device ("" = none) with the bytes of its seconds, in no order: struct second of
 * history.c.  A bad end is a tuple of its number from 1, time, outcome, class, device, label, text.
 */
PyObject *core_history_rows(struct core_history *h);

#endif
