/* SPDX-License-Identifier: MIT */
/*
 * sched.h - the core: facts in, actions out.
 *
 * The core decides when a slot gets a keeper and a worker, and when a worker gets a task.  It
 * decides when and why a worker is killed, and the effects of its death on tasks, slot and devices.
 * It decides when a close is complete.
 *
 * The core has no clock, descriptor, thread or text, and allocates memory only in create and
 * class_add.  It knows the world only from events: an order that the caller has sent has no effect
 * until a fact reports the effect.
 *
 * A turn of the caller:
 *
 *   read    feed each fact as one gpi_sched_event; after each event, call gpi_sched_next until it
 *           returns false: perform the action, and feed its reply at once
 *   decide  gpi_sched_decide, then its actions; then gpi_sched_send until it returns 0
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

/* Why a task does not start, beside enum gpi_plan_why: it waits for its next attempt, until. */
#define GPI_REASON_RETRY (GPI_REASON_NEVER + 1u)

#define GPI_SPARE_SEATS 1u /* pooled: for the canary of a device that is out of use */

/* Durations are in ns. */

/* What holds for every class of work. */
struct gpi_pool_settings {
    uint32_t slots, devices, tasks; /* room for this many of each */
    uint32_t classes;               /* the same, at most 256 */
    uint32_t setup_concurrency;     /* workers in BOOT and SETUP at a time */
    uint32_t makes;                 /* requests to the spawner at a time */
    uint64_t canary_limit, memory_wait;
    uint64_t reply_limit;           /* for the spawner's reply to MAKE */
    /* Slots are seats: workers of any class, on the devices that the plan chooses. */
    bool pooled;
    uint64_t kill_limit;            /* pooled: of a seat without a device */
    struct gpi_plan_settings plan;  /* pooled: without tasks, shapes, classes, devices, runs */
};

/* The workers of a class, and their tasks. */
struct gpi_class_settings {
    uint32_t ahead;       /* tasks at one worker, 1 to 64; 0 = by the time that its tasks take */
    uint32_t batch;       /* tasks of one call, 1 to 64: at least as many at a worker, and usually
                           * twice as many */
    uint64_t batch_wait;  /* a worker is silent for this long while it gathers a batch */
    uint32_t max_tasks;   /* attempts in a worker's life; 0 = no limit */
    bool executed;        /* workers are programs: BOOT before SETUP */
    uint64_t boot_limit, setup_limit, grace, cleanup_limit;
    uint64_t lead;        /* the core orders a KILL_AT this long before its time */
    struct gpi_restart_policy restart;
    struct gpi_retry_policy retry;
};

/* `class` is class 0, which create adds if the core is not pooled. */
struct gpi_sched_settings {
    struct gpi_pool_settings pool;
    struct gpi_class_settings class;
};

struct gpi_sched_task {
    int32_t priority;
    uint32_t max_attempts, causes; /* causes: bits of enum gpud_retry */
    uint64_t limit;                /* ns from the task's start to its soft limit; or GPI_NEVER */
    uint64_t expires;              /* the time by which the task must have started; or GPI_NEVER */
    uint64_t keep_alive;           /* pooled: of its worker behind it; 0: that of the class */
    uint64_t order;                /* its age: a smaller one is older.  0: the youngest of all */
    uint64_t stall;                /* EXTERNAL: ns without a PROGRESS; 0: any time */
    uint32_t class;
    uint32_t n_requests;           /* pooled, of a class that is not RESIDENT: its own, or 0.  Each
                                    * task of an EXTERNAL class has some */
    const struct gpi_request *request; /* the variants, preferred first */
};

struct gpi_sched;

/* Creates a core.  Returns NULL if there is no memory. */
struct gpi_sched *gpi_sched_create(const struct gpi_sched_settings *set);
void gpi_sched_destroy(struct gpi_sched *s);

/* Adds a class.  `class` is the next number, or that of a removed class.  `plan`: of a pooled core;
 * else NULL.  Returns 0, or -1 if there is no memory. */
int gpi_sched_class_add(struct gpi_sched *s, uint32_t class, const struct gpi_class_settings *set,
                        const struct gpi_plan_class *plan);
/* Adds a device.  `device` is the next number, or that of a device whose last slot is REMOVED: then
 * the device begins anew.  The device of a CPU slot is not `watched`: it has no readings, and it is
 * never out of use.  `has`: of a pooled core, where no number is used again; else NULL. */
void gpi_sched_device_add(struct gpi_sched *s, uint32_t device, bool watched, uint64_t kill_limit,
                          const struct gpi_plan_has *has);
/* Pooled: the device, which is not there yet, joins the set of places that needs name; `set` counts
 * from 1. */
void gpi_sched_places_add(struct gpi_sched *s, uint32_t set, uint32_t device);
/* Pooled: the set is empty again.  No task, worker or class may name it. */
void gpi_sched_places_empty(struct gpi_sched *s, uint32_t set);
/* Adds a slot of the class.  `slot` is the next number.  WANT makes the slot live.  A seat of a
 * pooled core has no device, its class does not count, and the plan makes it live. */
void gpi_sched_slot_add(struct gpi_sched *s, uint32_t slot, uint32_t class, const uint16_t *device,
                        uint32_t n);

void gpi_sched_event(struct gpi_sched *s, const struct gpi_sched_event *e);
void gpi_sched_decide(struct gpi_sched *s, uint64_t now);
bool gpi_sched_undecided(const struct gpi_sched *s);
/* Returns the time at which the caller must feed TIME; or GPI_NEVER. */
uint64_t gpi_sched_due(struct gpi_sched *s);

/* Takes the next action out of the ring.  Returns false if there is none. */
bool gpi_sched_next(struct gpi_sched *s, struct gpi_sched_action *ret);
/* Takes the next end out of the list.  From then on the caller may submit the record anew, unless
 * another attempt follows.  The caller empties the list after each event and each action, at the
 * latest before gpi_sched_decide.  Returns false if there is none. */
bool gpi_sched_ended(struct gpi_sched *s, struct gpi_sched_end *ret);

/* ---- pooled: facts for the plan.  Behind each one, gpi_sched_next as after an event ---- */

/* Readings: bytes that foreign processes have on the device, and their use of it in 1/10000; bytes
 * that the slot's worker has there. */
void gpi_sched_foreign(struct gpi_sched *s, uint64_t now, uint32_t device, uint64_t bytes,
                       uint32_t load);
void gpi_sched_observed(struct gpi_sched *s, uint64_t now, uint32_t slot, uint32_t device,
                        uint64_t bytes);
/* The same of external work that has started. */
void gpi_sched_observed_of(struct gpi_sched *s, uint64_t now, uint32_t task, uint32_t device,
                           uint64_t bytes);
/* The user's request.  LOAD and RESUME also forget the failures of the class. */
void gpi_sched_class_set(struct gpi_sched *s, uint64_t now, uint32_t class,
                         enum gpi_plan_class_what what);

/* ---- pooled: external work that runs already, as a host finds when it starts again ---- */

struct gpi_sched_adoption {
    struct gpi_request has;        /* the parts of its devices and of the machine that it has */
    const uint16_t *device;        /* as many as `has` has */
    uint32_t grant;                /* the number of its grant */
    uint32_t attempts;             /* that had ended before */
    uint64_t started_at;
    bool given_up;                 /* its outcome is out: no task has it, until ENDED */
};

bool gpi_sched_has_run(const struct gpi_sched *s); /* for one more worker, or external task */
/* Returns true if the task was submitted just now, to an EXTERNAL class. */
bool gpi_sched_can_adopt(const struct gpi_sched *s, uint32_t task);
/* The task, which was submitted just now, is not granted: it runs.  That may be too much for its
 * devices: then they get no other work until they have room.  [S1] */
void gpi_sched_adopt(struct gpi_sched *s, uint64_t now, uint32_t task,
                     const struct gpi_sched_adoption *a);

/* ---- the hot path: direct, no ring, no table ---- */

/* Returns false if tasks have the most different requests that there may be: submit it later.
 * NULL: a task with another request. */
bool gpi_sched_has_room(const struct gpi_sched *s, const struct gpi_sched_task *what);
/* Accepts a task.  A closed dispatcher accepts tasks of a source, too: each ends as cancelled.
 * Returns false if the task has ended at once: it is in the list of ends. */
bool gpi_sched_submit(struct gpi_sched *s, uint32_t task, const struct gpi_sched_task *what);
/* Writes the next tasks and their workers to ret, `most` of them at most: fill the cells, and ring
 * each worker's doorbell once per turn.  Returns their number; 0 = no task can be sent. */
uint32_t gpi_sched_send(struct gpi_sched *s, uint64_t now, struct gpi_sched_order *ret,
                        uint32_t most);
/* An attempt has ended.  Returns true if another attempt follows.  Else the task has ended so, and
 * is not in the list of ends.  Then call gpi_sched_next as after an event. */
bool gpi_sched_end(struct gpi_sched *s, uint64_t now, const struct gpi_sched_attempt *a);
/* The same for an attempt that ended with SUCCESS, and was in no batch. */
void gpi_sched_success(struct gpi_sched *s, uint64_t now, uint32_t task, uint64_t run);

/* ---- queries ---- */

bool gpi_sched_is_accepted(const struct gpi_sched *s, uint32_t task); /* its record is in use */

/* Returns the number of the grant that the external task has, or 0: it has none, or it is held. */
uint32_t gpi_sched_grant(const struct gpi_sched *s, uint32_t task);
/* The granted task has started.  The work of a held one has been given up, and has not ended. */
bool gpi_sched_is_started(const struct gpi_sched *s, uint32_t task);
bool gpi_sched_is_held(const struct gpi_sched *s, uint32_t task);
/* Returns the bytes that held work, or the worker of a slot, has of each device in the plan;
 * GPI_MEMORY_ALL: all of them; 0: it is not in the plan. */
uint64_t gpi_sched_memory(const struct gpi_sched *s, uint32_t task);
uint64_t gpi_sched_slot_memory(const struct gpi_sched *s, uint32_t slot);
/* Returns variant number `i` of the task's request. */
struct gpi_request gpi_sched_request(const struct gpi_sched *s, uint32_t task, uint32_t i);

enum gpi_life gpi_sched_life(const struct gpi_sched *s, uint32_t slot);
uint32_t gpi_sched_incarnation(const struct gpi_sched *s, uint32_t slot);
uint64_t gpi_sched_deadline(const struct gpi_sched *s, uint32_t slot); /* of its state */
/* Returns how long the setup of its last worker may take, or the time up to gpud_init. */
uint64_t gpi_sched_start_limit(const struct gpi_sched *s, uint32_t slot);
bool gpi_sched_has_keeper(const struct gpi_sched *s, uint32_t slot);   /* one that takes orders */
/* Returns since when the worker is to go once it has ended its tasks, or 0. */
uint64_t gpi_sched_leaves_since(const struct gpi_sched *s, uint32_t slot);
bool gpi_sched_owes(const struct gpi_sched *s, uint32_t slot);         /* it awaits MEMORY */
/* Returns the number of failures, or of deaths with tasks, that the slot has had in a row.  Pooled:
 * the failures of its class; those of workers that began together are one. */
uint32_t gpi_sched_failures(const struct gpi_sched *s, uint32_t slot);
uint32_t gpi_sched_task_deaths(const struct gpi_sched *s, uint32_t slot);
uint32_t gpi_sched_served(const struct gpi_sched *s, uint32_t slot); /* attempts of its worker */
uint32_t gpi_sched_hopeless(const struct gpi_sched *s); /* slots that cannot have a worker */
/* Pooled: the class has failed too often, and boots no worker until RESUME or LOAD. */
bool gpi_sched_has_failed(const struct gpi_sched *s, uint32_t class);
bool gpi_sched_is_paused(const struct gpi_sched *s, uint32_t class);
/* Pooled: the device is in the set of places. */
bool gpi_sched_is_place(const struct gpi_sched *s, uint32_t set, uint32_t device);
/* Pooled: marks the sets of places that a class, a task or a worker names; `used` has one for each,
 * and for the set of all, 0. */
void gpi_sched_mark_places(const struct gpi_sched *s, bool *used);
/* Pooled: the class has no task, and no seat has a worker of it, or one that is stuck. */
bool gpi_sched_is_unused(const struct gpi_sched *s, uint32_t class);
/* Pooled: returns how many workers with one of these needs the devices that are present could hold.
 *                                                                                        [R9] */
uint32_t gpi_sched_holds(const struct gpi_sched *s, const struct gpi_request *request, uint32_t n);
/* Pooled: what the plan has learned of the class. */
struct gpi_plan_times;
void gpi_sched_times(const struct gpi_sched *s, uint32_t class, struct gpi_plan_times *ret);
struct gpi_plan_usual;
void gpi_sched_usual(const struct gpi_sched *s, uint32_t class, struct gpi_plan_usual *ret);
/* Pooled: writes at most `n` reasons why the task does not start, the first one first, and returns
 * how many there are.  0: the task would start now, or is the first one at its worker.  `other` is
 * a task of the core.  From settings.tasks on it is no task: class `other` - tasks loads a worker.
 * Beside those of the plan there is the kind GPI_REASON_RETRY.  A task behind another one of its
 * class has PASSED_OVER_BY, and then the reasons of the first one of the class.
 *
 * `what`: a task that is not submitted; or NULL, then `task` is one that has not ended.  The caller
 * has decided since the last event, and nothing is due at `now`.  Changes no decision.  [S9] */
uint32_t gpi_sched_explain(const struct gpi_sched *s, uint64_t now, uint32_t task,
                           const struct gpi_sched_task *what, struct gpi_plan_reason *ret,
                           uint32_t n);
/* Returns true if `other` of such a reason is a task, not a class or a lack. */
bool gpi_sched_names_task(uint32_t kind);
/* Returns true if a worker is idle, or devices are free, and a task that waits could start there.
 * The caller has decided since the last event, and has sent all tasks.  [S7] */
bool gpi_sched_idles(struct gpi_sched *s);
/* Returns the oldest task of the class that waits for a worker, or GPI_NOWHERE. */
uint32_t gpi_sched_oldest(const struct gpi_sched *s, uint32_t class);
/* Returns the number of tasks of the class that wait, those for their next attempt included. */
uint32_t gpi_sched_queued_of(const struct gpi_sched *s, uint32_t class);
bool gpi_sched_drains(const struct gpi_sched *s, uint32_t device); /* it is to have no worker */
bool gpi_sched_pauses(const struct gpi_sched *s, uint32_t device); /* it starts nothing new */
bool gpi_sched_is_removed(const struct gpi_sched *s, uint32_t device); /* REMOVE was fed */
uint32_t gpi_sched_queued(const struct gpi_sched *s);   /* tasks that wait for a worker */
uint32_t gpi_sched_deferred(const struct gpi_sched *s); /* tasks that wait for their next attempt */
bool gpi_sched_is_deferred(const struct gpi_sched *s, uint32_t task); /* it is one of these */
uint32_t gpi_sched_unended(const struct gpi_sched *s);
/* Returns the time from which the worker counts as stuck in a long task, unless it ends a task. */
uint64_t gpi_sched_stuck_at(const struct gpi_sched *s, uint32_t slot);
/* Returns the number of attempts of the task that have ended. */
uint32_t gpi_sched_attempts(const struct gpi_sched *s, uint32_t task);
/* Returns the number of events that changed nothing: late messages of workers, and, without
 * assertions, impossible events. */
uint64_t gpi_sched_dropped(const struct gpi_sched *s);
/* Returns true if a close is complete: every task has ended, and no slot has or wants a worker. */
bool gpi_sched_finished(const struct gpi_sched *s);

#endif
