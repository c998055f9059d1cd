/* SPDX-License-Identifier: MIT */
/*
 * sched.h - the core: facts in, actions out.
 *
 * The core decides when a slot gets a keeper and a worker, and when a worker gets a task.  It
 * decides when and why a worker is killed, and the effects of its death on tasks, slot and devices.
 * It decides when a close is complete.
 *
 * The core has no clock, descriptor, thread or text, and allocates no memory after create.  It
 * knows the world only from events: an order that the caller has sent has no effect until a fact
 * reports the effect.
 *
 * A turn of the caller:
 *
 *   read    feed each fact as one gpi_sched_event; after each event, call gpi_sched_next until it
 *           returns false: perform the action, and feed its reply at once
 *   decide  gpi_sched_decide, then its actions; then gpi_sched_send until it returns false
 *   again   while gpi_sched_undecided; then sleep until gpi_sched_due, and feed TIME
 *
 * Outside decide the core orders no MAKE and no START, and the caller sends no task.  So the caller
 * can perform no START on a device that the reply before it has put out of use.
 *
 * Threads: one thread at a time may use an object.  The caller holds its lock.
 */
#ifndef GPI_SCHED_SCHED_H
#define GPI_SCHED_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/event.h"
#include "sched/restart.h"
#include "sched/retry.h"

/* Durations are in ns. */
struct gpi_sched_settings {
    uint32_t slots, devices, tasks; /* room for this many of each */
    uint32_t max_sent;              /* tasks at one worker, 1 to 64 */
    uint32_t setup_concurrency;     /* workers in BOOT and SETUP at a time */
    uint32_t makes;                 /* requests to the spawner at a time */
    uint32_t max_tasks;             /* attempts in a worker's life; 0 = no limit */
    bool executed;                  /* workers are programs: BOOT before SETUP */
    uint64_t boot_limit, setup_limit, canary_limit, grace, cleanup_limit, memory_wait;
    uint64_t reply_limit;           /* for the spawner's reply to MAKE */
    uint64_t lead;                  /* the core orders a KILL_AT this long before its time */
    struct gpi_restart_policy restart;
    struct gpi_retry_policy retry;
};

struct gpi_sched_task {
    int32_t priority;
    uint32_t max_attempts, causes; /* causes: bits of enum gpud_retry */
    uint64_t limit;                /* ns from the task's start to its soft limit; or GPI_NEVER */
    uint64_t expires;              /* the time by which the task must have started; or GPI_NEVER */
};

struct gpi_sched;

/* Creates a core.  Returns NULL if there is no memory. */
struct gpi_sched *gpi_sched_create(const struct gpi_sched_settings *set);
void gpi_sched_destroy(struct gpi_sched *s);

/* Adds a device.  `device` is the next number, or that of a device whose last slot is REMOVED: then
 * the device begins anew.  The device of a CPU slot is not `watched`: it has no readings, and it is
 * never out of use. */
void gpi_sched_device_add(struct gpi_sched *s, uint32_t device, bool watched, uint64_t kill_limit);
/* Adds a slot.  `slot` is the next number.  WANT makes the slot live. */
void gpi_sched_slot_add(struct gpi_sched *s, uint32_t slot, const uint16_t *device, uint32_t n);

void gpi_sched_event(struct gpi_sched *s, const struct gpi_sched_event *e);
void gpi_sched_decide(struct gpi_sched *s, uint64_t now);
bool gpi_sched_undecided(const struct gpi_sched *s);
uint64_t gpi_sched_due(const struct gpi_sched *s);

/* Takes the next action out of the ring.  Returns false if there is none. */
bool gpi_sched_next(struct gpi_sched *s, struct gpi_sched_action *ret);
/* Takes the next ended task out of its list.  From then on the caller may submit the record anew.
 * Returns false if there is none. */
bool gpi_sched_ended(struct gpi_sched *s, struct gpi_sched_end *ret);

/* ---- the hot path: direct, no ring, no table ---- */

/* Accepts a task.  A closed dispatcher accepts tasks of a source, too: each ends as cancelled. */
void gpi_sched_submit(struct gpi_sched *s, uint64_t now, uint32_t task,
                      const struct gpi_sched_task *what);
/* Returns the next task and its worker: fill the cell, and ring the worker's doorbell once per
 * turn.  Returns false if no task can be sent. */
bool gpi_sched_send(struct gpi_sched *s, uint64_t now, uint32_t *ret_slot, uint32_t *ret_task,
                    uint32_t *ret_cell);
/* An attempt has ended on its own.  Its end record has the outcome: SUCCESS, ERROR, TIMEOUT or
 * CANCELLED.  The task ends, or the core retries it. */
void gpi_sched_end(struct gpi_sched *s, uint64_t now, uint32_t task, uint32_t outcome,
                   uint32_t phase);

/* ---- queries ---- */

enum gpi_life gpi_sched_life(const struct gpi_sched *s, uint32_t slot);
uint32_t gpi_sched_incarnation(const struct gpi_sched *s, uint32_t slot);
uint32_t gpi_sched_unended(const struct gpi_sched *s);
/* Returns the number of events that changed nothing: late messages of workers, and, without
 * assertions, impossible events. */
uint64_t gpi_sched_dropped(const struct gpi_sched *s);
/* Returns true if a close is complete: every task has ended, and no slot has or wants a worker. */
bool gpi_sched_finished(const struct gpi_sched *s);

#endif
