/* SPDX-License-Identifier: MIT */
/*
 * plan.h - which class gets which device, and when.
 *
 * Classes share the devices of a dispatcher.  The plan knows the devices with their memory, the
 * waiting tasks as shapes, and the runs.  The caller reports each change, lets the plan decide, and
 * performs the actions:
 *
 *     gpi_plan_submit, _end, _device ...    facts, each with the time
 *     gpi_plan_decide                       a task that fits starts; another one waits, as a head
 *                                           or behind one
 *     gpi_plan_next                         the actions, first in, first out
 *
 * Tasks may be too short to be decided one by one.  Then the caller keeps the tasks of a class in a
 * queue of its own, and submits one stream task at a time, which stands for the first of them.  If
 * its run is granted, the caller starts the next ones of the queue in the same worker, until the
 * plan revokes the grant, or the queue is empty.
 *
 * The caller takes all actions after each call that feeds a fact: some facts have actions, too.
 *
 * It has no clock, descriptor, thread or text, and only integers.  Create takes all memory.  One
 * thread at a time per object. docs/explain/scheduling.md has the rules R1 to R9 and the
 * guarantees S1 to S9 that the comments name.
 */
#ifndef GPI_SCHED_PLAN_H
#define GPI_SCHED_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/event.h"

struct gpi_plan_stats {
    uint64_t decisions;            /* calls of decide that had something to examine */
    uint64_t examined;             /* shapes */
    uint64_t starts, passed;
    uint64_t boots, unloads;
    uint64_t promises_dropped;     /* actions: there were too many between two facts */
};

/* How long the last ones of a kind took, 32 at most, in ns; 0: there was none. */
struct gpi_plan_spell {
    uint64_t p10, p50, p90;
};

/* A task of an EXTERNAL class that runs already. */
struct gpi_plan_adoption {
    uint32_t class;
    struct gpi_request has;        /* its parts of the devices and of the machine */
    const uint16_t *device;        /* as many as `has` has */
    uint64_t limit;                /* ns that it may run; GPI_NEVER */
    uint64_t ends_by;
};

struct gpi_plan_times {
    struct gpi_plan_spell boot, unload, run;
};

/* The medians of these times, or the seeds before the first ones. */
struct gpi_plan_usual {
    uint64_t boot, unload, run;
};

struct gpi_plan;

/* Returns: the object, or NULL if there is no memory. */
struct gpi_plan *gpi_plan_create(const struct gpi_plan_settings *set);
void gpi_plan_destroy(struct gpi_plan *p);

void gpi_plan_class_add(struct gpi_plan *p, uint32_t class, const struct gpi_plan_class *set);
void gpi_plan_device_add(struct gpi_plan *p, uint32_t device, const struct gpi_plan_has *has);
/* The devices that a request may name; `set` counts from 1.  Without devices the set is empty
 * again, which no request may name now. */
void gpi_plan_places_add(struct gpi_plan *p, uint32_t set, const uint16_t *device, uint32_t n);

/* Marks the sets that waiting tasks and runs name; `used` has one for each, and for 0. */
void gpi_plan_mark_places(const struct gpi_plan *p, bool *used);
/* Returns the bytes that the run may have of each device; GPI_MEMORY_ALL: all of them. */
uint64_t gpi_plan_memory(const struct gpi_plan *p, uint32_t run);
bool gpi_plan_is_place(const struct gpi_plan *p, uint32_t set, uint32_t device);

/* Adds a worker of a resident class that was up before the plan began.  Returns its number. */
uint32_t gpi_plan_warm(struct gpi_plan *p, uint32_t class, const uint16_t *device, uint32_t n);

/* Returns true if devices that are present could ever hold the request.            [R9] */
bool gpi_plan_could(const struct gpi_plan *p, const struct gpi_request *request);

/* Returns how many workers with this need the devices that are present hold, at most: 2^32 - 1. */
uint32_t gpi_plan_holds(const struct gpi_plan *p, const struct gpi_request *request);

/* `now` of each call is not smaller than before.  Returns false if there are too many shapes. */
bool gpi_plan_submit(struct gpi_plan *p, uint64_t now, uint32_t task,
                     const struct gpi_plan_task *what);
void gpi_plan_withdraw(struct gpi_plan *p, uint64_t now, uint32_t task); /* it waits no more */
/* A run has ended.  `good`: its task succeeded, and took `run` ns; of a granted run with several
 * tasks the mean (0: the time since its RUN).  The worker stays for `keep_alive` from now without
 * another task (0: as its class has it).                                                  [R6] */
void gpi_plan_end(struct gpi_plan *p, uint64_t now, uint32_t task, bool good, uint64_t run,
                  uint64_t keep_alive);
/* The task runs already, although the plan has not started it.  Returns the number of its run; one
 * is free.  It may have more of its devices, or of the machine, than they had free: then nothing
 * starts there until they have room.                                                       [S1] */
uint32_t gpi_plan_adopt(struct gpi_plan *p, uint64_t now, uint32_t task,
                        const struct gpi_plan_adoption *a);
bool gpi_plan_has_run(const struct gpi_plan *p); /* a run is free */
/* The granted run of the task, which is revoked, ends by `at`, kills included.  A later time than
 * that of a call before changes nothing.  The caller has taken back the tasks that had not begun,
 * and has submitted the stream task.  A run of an EXTERNAL class, which has no worker, may also end
 * later than the plan knew: that is as if its devices were lost.                     [R3] [R6] */
void gpi_plan_ends_by(struct gpi_plan *p, uint64_t now, uint32_t task, uint64_t at);
/* The worker has booted. */
void gpi_plan_up(struct gpi_plan *p, uint64_t now, uint32_t worker);
/* The worker takes nothing new and is about to go, without an order of the plan: the host kills it,
 * it has died and its memory is not back, or its device has failed.  No DRAIN or UNLOAD follows.
 * Its task ends, and it is gone, as of any other worker.  A granted run is revoked by it.  [S4] */
void gpi_plan_leaves(struct gpi_plan *p, uint64_t now, uint32_t worker);
/* The worker is gone, with its memory.  A task in it has been ended before.  Another worker of its
 * class boots at `again` at the earliest. */
void gpi_plan_gone(struct gpi_plan *p, uint64_t now, uint32_t worker, uint64_t again);
void gpi_plan_device(struct gpi_plan *p, uint64_t now, uint32_t device, enum gpi_plan_may may);
/* A reading: bytes that foreign processes have on the device, and their use of it in 1/10000. */
void gpi_plan_foreign(struct gpi_plan *p, uint64_t now, uint32_t device, uint64_t bytes,
                      uint32_t load);
/* A reading: bytes that the worker, or the run without one, has on the device.  It holds at least
 * its need.                                                                                [S1] */
void gpi_plan_observed(struct gpi_plan *p, uint64_t now, uint32_t worker, uint32_t device,
                       uint64_t bytes);
/* LOAD and RESUME also end the wait of gpi_plan_gone. */
void gpi_plan_class_set(struct gpi_plan *p, uint64_t now, uint32_t class,
                        enum gpi_plan_class_what what);

/* The caller has `n` tasks of the class in its queue, behind the stream task; at most 2^31.  They
 * count as waiting tasks of it.  `run`: the mean time that such a task takes, as the caller has
 * measured it; 0: unknown.                                                           [R5] [R6] */
void gpi_plan_queue(struct gpi_plan *p, uint64_t now, uint32_t class, uint32_t n, uint64_t run);
/* Until a run of the class is known, one takes `run` ns. */
void gpi_plan_run_seed(struct gpi_plan *p, uint64_t now, uint32_t class, uint64_t run);
/* Returns the smallest `n` of gpi_plan_queue with which the class wants a further worker now;
 * UINT32_MAX: with none.  Each fact and decision may change it.                           [R5] */
uint32_t gpi_plan_wants_from(const struct gpi_plan *p, uint32_t class);

void gpi_plan_decide(struct gpi_plan *p, uint64_t now);
/* Returns when the plan is to decide again, if nothing happens before. */
uint64_t gpi_plan_due(const struct gpi_plan *p);
/* Takes the next action; returns false if there is none. */
bool gpi_plan_next(struct gpi_plan *p, struct gpi_plan_action *ret_action);

/* Writes at most `n` reasons why the task does not start, the first one first; explain_rows.c has
 * their order.  A decision has run since the last fact.  `what`: a task that is not submitted; or
 * NULL, then `task` is one that waits.  `now`: the time; not before the last fact, 0: that time.
 * Returns the number of reasons that there are; 0: the task would start now, or does not wait.
 * Changes nothing but caches.  [S9] */
uint32_t gpi_plan_explain(struct gpi_plan *p, uint64_t now, uint32_t task,
                          const struct gpi_plan_task *what, struct gpi_plan_reason *ret,
                          uint32_t n);

/* Returns true if a head could start now: a decision has missed it.  Changes nothing but caches.
 *                                                                                        [S7] */
bool gpi_plan_idles(struct gpi_plan *p);
const struct gpi_plan_stats *gpi_plan_stats(const struct gpi_plan *p);
void gpi_plan_times(const struct gpi_plan *p, uint32_t class, struct gpi_plan_times *ret);
void gpi_plan_usual(const struct gpi_plan *p, uint32_t class, struct gpi_plan_usual *ret);

#endif
