/* SPDX-License-Identifier: MIT */
/*
 * sched.h - the core: facts in, actions out.
 *
 * It decides when a slot gets a keeper and a worker, when a worker gets a task, when one is killed
 * and why, what its death means for its tasks, its slot and its devices, and when a close is
 * complete.  It has no clock, descriptor, thread or text, and takes no memory after create.  It
 * knows the world only as told: an order that was sent has no effect until a fact says so.
 *
 * A turn of the caller:
 *
 *   hear    each fact is one gpi_sched_event; after each, gpi_sched_next until it returns false:
 *           perform the action, and feed its answer at once
 *   decide  gpi_sched_decide, then its actions; then gpi_sched_send until it returns false
 *   again   while gpi_sched_undecided; then sleep until gpi_sched_due, and feed TIME
 *
 * Nothing begins outside decide: no MAKE, no START, no send.  So no start can be performed on a
 * device that the answer before it has put out of use.
 *
 * Thread: one at a time per object; the caller's lock.
 */
#ifndef GPI_SCHED_SCHED_H
#define GPI_SCHED_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/event.h"
#include "sched/restart.h"
#include "sched/retry.h"

struct gpi_sched_settings {
    uint32_t slots, devices, tasks; /* room for so many of each */
    uint32_t max_sent;              /* tasks at one worker, 1 to 64 */
    uint32_t setup_concurrency;     /* workers in BOOT and SETUP at a time */
    uint32_t makes;                 /* requests to the spawner at a time */
    uint32_t max_tasks;             /* attempts in a worker's life; 0 = no limit */
    bool executed;                  /* workers are programs: BOOT before SETUP */
    uint64_t boot_limit, setup_limit, canary_limit, grace, cleanup_limit, memory_wait;
    uint64_t reply_limit;           /* of the spawner */
    uint64_t lead;                  /* a KILL_AT is ordered so long before its time */
    struct gpi_restart_policy restart;
    struct gpi_retry_policy retry;
};

struct gpi_sched_task {
    int32_t priority;
    uint32_t max_attempts, causes; /* bits of enum gpud_retry */
    uint64_t limit;                /* ns from its start to its soft limit; GPI_NEVER */
    uint64_t expires;              /* a time by which it must have started; GPI_NEVER */
};

struct gpi_sched;

/* Returns NULL when there is no memory. */
struct gpi_sched *gpi_sched_create(const struct gpi_sched_settings *set);
void gpi_sched_destroy(struct gpi_sched *s);

/* `device` is the next number, or one whose last slot is REMOVED: then it begins anew.  CPU slots
 * are not watched: nothing can be read of them, and they are never out of use. */
void gpi_sched_device_add(struct gpi_sched *s, uint32_t device, bool watched, uint64_t kill_limit);
/* `slot` is the next number.  WANT makes it live. */
void gpi_sched_slot_add(struct gpi_sched *s, uint32_t slot, const uint16_t *device, uint32_t n);

void gpi_sched_event(struct gpi_sched *s, const struct gpi_sched_event *e);
void gpi_sched_decide(struct gpi_sched *s, uint64_t now);
bool gpi_sched_undecided(const struct gpi_sched *s);
uint64_t gpi_sched_due(const struct gpi_sched *s);

/* The next action, taken out.  False when there is none. */
bool gpi_sched_next(struct gpi_sched *s, struct gpi_sched_action *ret);
/* The same for tasks that have ended; the record may be submitted anew from then on. */
bool gpi_sched_ended(struct gpi_sched *s, struct gpi_sched_end *ret);

/* ---- the hot path: direct, no ring, no table ---- */

/* Accepts a task.  A closed dispatcher takes what a source brings, too: it ends as cancelled. */
void gpi_sched_submit(struct gpi_sched *s, uint64_t now, uint32_t task,
                      const struct gpi_sched_task *what);
/* The next task and its worker: fill the cell, and ring the worker once per turn. */
bool gpi_sched_send(struct gpi_sched *s, uint64_t now, uint32_t *ret_slot, uint32_t *ret_task,
                    uint32_t *ret_cell);
/* An attempt has ended by itself, as its end record says: outcome SUCCESS, ERROR, TIMEOUT or
 * CANCELLED.  The task ends, or is tried again. */
void gpi_sched_end(struct gpi_sched *s, uint64_t now, uint32_t task, uint32_t outcome,
                   uint32_t phase);

/* ---- what it knows ---- */

enum gpi_life gpi_sched_life(const struct gpi_sched *s, uint32_t slot);
uint32_t gpi_sched_incarnation(const struct gpi_sched *s, uint32_t slot);
uint32_t gpi_sched_sent(const struct gpi_sched *s, uint32_t slot);
/* The state of the slot for the user: enum gpud_slot_state. */
uint32_t gpi_sched_shown(const struct gpi_sched *s, uint32_t slot);
uint32_t gpi_sched_unended(const struct gpi_sched *s);
/* Words of workers that came too late, and, without assertions, events that could not be: each
 * changed nothing. */
uint64_t gpi_sched_dropped(const struct gpi_sched *s);
/* A close is complete: every task has ended, no slot has or wants a worker. */
bool gpi_sched_finished(const struct gpi_sched *s);

#endif
