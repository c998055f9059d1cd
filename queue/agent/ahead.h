/* SPDX-License-Identifier: MIT */
/*
 * ahead.h - which READY tasks the dispatcher has: of each shape the first ones.
 *
 * A store may have 10^6 waiting tasks; the dispatcher needs only those that may start soon.  Of
 * each shape it has the first `ahead` ones: twice as many as fit on all devices, at least 64.  When
 * half of them have started, or a task that may come before them is READY, the next ones follow.
 *
 * At most GPQ_SHAPES shapes of commands are inside at a time: those whose first tasks come first by
 * priority and order.  When the first task of another shape comes before that of the last shape
 * inside, all tasks of the last one leave for it.  Each task has the store's order, so that both
 * hold over all of this, with one exception: a device that none of these shapes can use stays free,
 * even if a task of a shape that is not inside could use it.                                [Q7]
 *
 * Each change of a task costs one read of the store and a step in a heap; each call of
 * gpq_ahead_fill, a look at the open windows.                                              [Q11]
 *
 * Tasks of a class of workers are inside from the note for their claim to their end (workers.h).
 */
#ifndef GPQ_AGENT_AHEAD_H
#define GPQ_AGENT_AHEAD_H

#include "queue/agent/work.h"

struct gpq_class;

enum { GPQ_AHEAD = 64, GPQ_SHAPES = 1000 };

/* Reads the shapes of the store. */
int gpq_ahead_open(struct gpq_agent *a, struct gpq_error *e);
void gpq_ahead_close(struct gpq_agent *a);
/* Follows one committed change: a task that is READY no more is withdrawn. */
void gpq_ahead_change(struct gpq_agent *a, const struct gpq_change *c);
/* A unit of this shape has left the dispatcher's queue, by a grant or otherwise. */
void gpq_ahead_left(struct gpq_agent *a, uint32_t shape);
/* The dispatcher may have room again, or another device: all windows are looked at. */
void gpq_ahead_again(struct gpq_agent *a);
/* Whether it has room.  If not, nothing is submitted until a task has left. */
void gpq_ahead_room(struct gpq_agent *a, bool room);
/* Submits tasks to the dispatcher.  Reads the store outside of a transaction. */
void gpq_ahead_fill(struct gpq_agent *a);

/* Calls fn for each shape that has READY tasks. */
void gpq_ahead_each(struct gpq_agent *a,
                    void (*fn)(struct gpq_agent *a, uint32_t shape, void *user), void *user);

/* The limit of a task by its spec, GPUD_NEVER for none. */
uint64_t gpq_limit_of(struct gpq_agent *a, uint32_t spec);
/* Whether its tasks are lines that a shell runs, by the member of its submit. */
bool gpq_shell_of(struct gpq_agent *a, uint32_t spec);

#endif
