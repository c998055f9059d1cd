/* SPDX-License-Identifier: MIT */
/*
 * core.h - the records of the core, for its own files.
 *
 * The list has the files bottom-up: each file calls only files above it in the list.
 *
 *   ring.c      the ring of actions, the heap of times, the list of touched slots
 *   queue.c restart.c retry.c   order of tasks, backoff of slots, backoff of tasks
 *   place.c     how many tasks a worker gets ahead, and when it is stuck in a long task
 *   device.c    whether a device may be used; drain, return, remove, canaries
 *   seat.c      keepers and the spawner
 *   own.c       tasks with a request of their own, which the plan starts one by one
 *   spread.c    which worker gets the next task, and how many tasks a worker may have
 *   class.c     classes: their settings, queues and shelves
 *   record.c    a task leaves its cell, or ends
 *   tasks.c     submit, send, end, retry, expiry, cancel
 *   behind.c    tasks that wait behind a long task
 *   limits.c    tasks that run too long
 *   external.c  work that the caller runs itself: grants, their limits, and their ends
 *   close.c     the end of intake, and of everything
 *   life.c      a slot enters a state; orders to its worker
 *   slot_end.c  a worker is gone: the outcomes of its tasks, and the next state of the slot
 *   slot.c      the table of a slot's life, and its rules
 *   gates.c     the slots that get the next keeper, start, or new worker
 *   pool.c      seats that the plan fills with workers of several classes
 *   sched.c     entries: an event becomes an input of the table; its consequences; decide
 *   stream.c    submit, send, end: the path of every task
 *   query.c     the state of the core, for its caller
 *   reason.c    why a task does not start
 *
 * The comment above a field names the one file that writes it.  If another file writes it, too,
 * the comment of the field states that.  stream.c and record.h write fields of tasks.c, spread.c
 * and behind.c: they are the part of them that every task takes.
 */
#ifndef GPI_SCHED_CORE_H
#define GPI_SCHED_CORE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/heap.h"
#include "gpudispatch/types.h"
#include "sched/event.h"
#include "sched/queue.h"
#include "sched/sched.h"

#define GPI_SLOT_CELLS 64u
#define GPI_SLOT_DEVICES 16u
#define GPI_SLOTS_MOST 4096u
#define GPI_CLASSES_MOST 256u
#define GPI_SHELF_NONE UINT16_MAX
#define GPI_OWN_SHAPES 1024u /* different requests of tasks at a time: a power of 2 */

/* After the host was stopped, waits have expired in which no process could reply.  The core extends
 * such a wait once. */
#define GPI_LATE_NS (100 * GPI_MS)
#define GPI_LATE_EXTRA_NS GPI_S

/* The inputs of the table: the kinds of events, then these conclusions of the core. */
#define GPI_INPUT_MAP(X)                                                                       \
    X(GATE)      /* decide: the slot waits, and may go on */                                   \
    X(RENEW)     /* decide: the worker is idle, and has ended max_tasks attempts */            \
    X(EMPTY)     /* the last task of the slot is gone */                                       \
    X(LATE)      /* a task has exceeded its limit and the grace */                             \
    X(KILL)      /* a device of the slot has failed */                                         \
    X(LEAVE)     /* a device of the slot is to have no more tasks */                           \
    X(CHANGED)   /* the permitted use of a device of the slot has changed */                   \
    X(TRY)       /* the devices of the slot are to have a canary */                            \
    X(TIMER)     /* the wait of the slot's state has expired */                                \
    X(UNPROVED)  /* the wait for the proof that the lost keeper left no process has expired */ \
    X(WIND_DOWN) /* the dispatcher is closed, and no task is left */                           \
    X(KILL_ALL)  /* the close limit has expired */                                             \
    X(EVICT)     /* the plan wants the worker to go */
#define GPI_X_INPUT(name) GPI_IN_##name,
enum gpi_input { GPI_BEFORE_INPUTS = GPI_EVENTS - 1, GPI_INPUT_MAP(GPI_X_INPUT) GPI_INPUTS };
#undef GPI_X_INPUT

enum gpi_keeper {
    GPI_KEEPER_NONE,
    GPI_KEEPER_ASKED,
    GPI_KEEPER_UP,
    GPI_KEEPER_LOST,     /* the core awaits KEEPER_GONE */
    GPI_KEEPER_DISMISSED /* the same, at the core's request */
};

enum gpi_known { GPI_KNOWN_NOTHING, GPI_KNOWN_BOOTS, GPI_KNOWN_UP, GPI_KNOWN_LEAVES };

/* How many tasks a worker of a pooled core may start.  OVER: none any more. */
enum gpi_granted { GPI_GRANTED_NO, GPI_GRANTED_ONE, GPI_GRANTED_MANY, GPI_GRANTED_OVER };

enum gpi_part { GPI_PART_SETUP, GPI_PART_RUN, GPI_PART_CLEANUP };

/* A slot's place for a worker: seat.c. */
struct gpi_seat {
    uint8_t keeper;   /* enum gpi_keeper */
    bool used;        /* this keeper has got a START */
    bool extended;    /* the core saw the end of `by` too late, and extended it */
    uint32_t in_vain; /* keepers in a row that died before they started a worker */
    uint64_t by;      /* due: reply to MAKE, or proof of the keeper's end; GPI_NEVER */
};

struct gpi_sched_slot {
    /* tasks.c */
    uint32_t sent;       /* bits in `cells` */
    uint32_t served;     /* attempts that the worker has ended */
    uint64_t cells;
    uint64_t claimed;    /* the worker is known to have claimed the task: limits.c writes it, too */
    uint64_t told;       /* the task runs, and is cancelled */
    uint64_t cancelled;  /* of these, the tasks for which the core kills the worker if they go on */
    uint64_t number;     /* of the last send */
    uint32_t recalls;    /* RECALLs for an idle worker that have no reply */
    /* spread.c */
    bool takes;          /* the worker takes tasks: it is UP, and not stopped */
    bool stuck;          /* its first task runs much longer than tasks usually do */
    uint8_t ahead;       /* depth by the time that its tasks take */
    uint8_t room;        /* tasks that may be there for the room in the result arena */
    uint8_t depth;       /* tasks that may be there */
    uint16_t shelf;      /* GPI_SHELF_NONE: the worker gets no task */
    uint64_t oldest;     /* no task in the cells has a smaller number: tasks.c writes it, too */
    uint64_t heard;      /* when it last ended a task, or got its first */
    uint64_t mean_run;   /* ns of a task; 0 = unknown */
    uint32_t next_moved; /* 1 + the next slot, 1 + itself if it is the last; 0 = not moved */
    /* life.c */
    uint8_t life;      /* enum gpi_life */
    uint8_t part;      /* enum gpi_part: the part that ran when the worker's end began */
    uint8_t why;       /* enum gpi_why, while the worker is being killed */
    uint8_t canary;    /* enum gpi_start_kind, until the canary is judged */
    bool only;         /* the next worker, or this one, runs a canary alone */
    bool leaving;      /* the worker gets no new task: kept while DOOMED */
    bool still;        /* the worker is stopped, or has ended */
    bool owed;         /* the memory of the slot's devices is not free again */
    bool extended;     /* the core saw the end of this state's wait too late, and extended it */
    uint32_t incarnation;
    uint64_t since;    /* when the slot entered its state */
    uint64_t up_at;    /* when the worker passed setup; 0 = it has not */
    uint64_t began;    /* when START was sent */
    uint64_t start_limit; /* from then on: how long the worker's setup may take */
    uint64_t deadline; /* of the slot's state; or GPI_NEVER */
    uint64_t memory_by;
    struct gpi_seat seat;
    /* restart.c: failures and deaths in a row, of the slot, or of its class on its first device */
    struct gpi_restart *restart, own_restart;
    uint64_t again;      /* slot_end.c: before it the class boots no other worker; pooled */
    /* pool.c */
    uint8_t known;       /* enum gpi_known: what the plan knows of the worker */
    uint8_t granted;     /* enum gpi_granted */
    bool cut_short;      /* it was for many, and is for one: the plan does not know its end */
    bool counts;         /* its class counts the grant as unused: spread.c, and stream.c */
    bool evicted;        /* the plan has ordered the worker to go */
    bool to_evict;       /* the same, and the worker does not know yet */
    uint64_t evicted_at; /* when the plan ordered that */
    uint32_t run;        /* the worker's number in the plan */
    uint32_t stream;     /* its grant's number there */
    bool fresh;          /* the grant has had no task yet: stream.c and own.c write it, too */
    bool chosen;         /* own.c: the grant is for one task, which the plan has chosen */
    uint64_t last_run;   /* ns of the last success in the grant: stream.c writes it, too */
    uint64_t keep;       /* stream.c: the keep_alive of the last task that has ended */
    /* limits.c */
    uint64_t check_at;   /* when the next LOOK is due, if the worker has a task; GPI_NEVER.  tasks.c
                          * writes it, too */
    uint64_t running;    /* bit per cell, from the last reply */
    uint64_t held_for;   /* the tasks that ran when the core ordered HOLD for a late task; or 0 */
    uint64_t doomed;     /* the tasks that were late when the core ordered the kill */
    uint64_t soft[GPI_SLOT_CELLS]; /* when the soft limit of a running task expires */
    /* tasks.c */
    uint8_t order[GPI_SLOT_CELLS]; /* cell of a send, by its number modulo 64 */
    uint64_t cell_number[GPI_SLOT_CELLS];
    uint64_t cancel_at[GPI_SLOT_CELLS];
    uint32_t task[GPI_SLOT_CELLS];
    /* ring.c */
    uint64_t armed;        /* the slot's time in `times`: not later than the times above */
    uint32_t next_touched; /* 1 + the next slot, 1 + itself if it is the last; 0 = not touched */
    /* sched.c */
    bool hopeless; /* counted as a slot that cannot have a worker */
    struct gpi_sched_class *class;
    uint32_t n_devices;
    uint16_t device[GPI_SLOT_DEVICES];
};

struct gpi_sched_device { /* device.c */
    uint8_t may; /* enum gpi_may */
    bool watched;
    bool paused;   /* no task and no worker starts there */
    bool draining; /* it is to have no worker */
    bool removing; /* for good */
    bool noted;   /* the core has noted that the device is drained, or removed */
    bool try_due; /* a canary is due */
    bool trying;  /* a slot has, or is to have, a worker for the canary alone */
    uint8_t planned; /* enum gpi_plan_may, as the plan knows it: pool.c */
    uint64_t kill_limit;
};

/* OWN: it has a request of its own, and waits for the plan, or for its worker.  GRANTED: it is
 * external, and `slot` has the number of its lease.  HELD: the same, and its outcome is out. */
enum gpi_record_state {
    GPI_RECORD_FREE,
    GPI_RECORD_QUEUED,
    GPI_RECORD_SENT,
    GPI_RECORD_LATER,
    GPI_RECORD_OWN,
    GPI_RECORD_GRANTED,
    GPI_RECORD_HELD
};
enum gpi_wish {
    GPI_WISH_NO,
    GPI_WISH_RETURN, /* for an idle worker */
    GPI_WISH_EXPIRE,
    GPI_WISH_SOFT,
    GPI_WISH_HARD
};

struct gpi_sched_record { /* tasks.c */
    uint64_t number; /* of the submission: the order within a priority */
    uint64_t limit;
    int32_t priority;
    uint16_t slot;
    uint8_t cell, state, wish, attempts, max_attempts, causes;
    unsigned outcome : 4, phase : 4, why : 4; /* of the end that the list has */
    unsigned then : 4;    /* the outcome that followed while the list had the end of an attempt */
    unsigned again : 1;   /* the list has the end of an attempt */
    unsigned spoilt : 1;  /* charged with a worker that broke the protocol: a second time ends it */
    unsigned wary : 1;    /* `wary` counts the task */
    unsigned alone : 1;   /* it was charged in a batch: its later attempts share none */
    unsigned class : 8;
    unsigned expires : 1;
    unsigned lapsed : 1;  /* it had expired when the worker had claimed it */
    unsigned keeps : 1;   /* it has a keep_alive of its own */
    unsigned own : 1;     /* it has a request of its own: own.c */
};

/* Tasks with requests of their own: own.c. */
struct gpi_own_shape {
    uint32_t class;
    int32_t priority;
    uint32_t n_requests, tasks;
    uint32_t head, next; /* of its chain; the next free one */
    struct gpi_request request[GPI_VARIANTS];
};

enum gpi_own_known { GPI_OWN_NOTHING, GPI_OWN_WAITS, GPI_OWN_RUNS };

/* The number of the record in the plan.  The record may have another task by now. */
struct gpi_own_task {
    uint32_t next, shape;
    uint8_t known; /* enum gpi_own_known: what the plan knows of it */
    uint8_t class; /* in the plan */
    bool is_listed, is_bound, is_gone, is_hopeless;
};

struct gpi_own {
    struct gpi_own_shape *shape;
    uint32_t *chain, free_shape;
    struct gpi_own_task *task;
    uint32_t first, last; /* tasks of which the plan is to learn something */
    uint64_t bound[GPI_SLOTS_MOST / 64]; /* bit per slot: it is to have its task */
    uint32_t n_bound;
};

/* GRANTED: it has not started.  HELD: its outcome is out, and its devices are not free.  LEFT: the
 * same without an outcome. */
enum gpi_lease_state {
    GPI_LEASE_NONE,
    GPI_LEASE_GRANTED,
    GPI_LEASE_STARTED,
    GPI_LEASE_HELD,
    GPI_LEASE_LEFT
};

/* The devices of an external task, from its grant to its end.  It has the number of its run in the
 * plan. */
struct gpi_lease {
    uint8_t state;      /* enum gpi_lease_state */
    uint8_t why;        /* enum gpi_revoke_why: of the kill that is due or was ordered */
    bool is_killed;     /* the kill was ordered */
    bool is_late;       /* it has exceeded its limit, and the caller knows */
    bool is_stalled;    /* the same, of its stall limit */
    uint32_t task, n_devices;
    uint64_t since;     /* when it was granted, or has started */
    uint64_t start_by;  /* by then it must have started */
    uint64_t expires;   /* of its task; GPI_NEVER */
    uint64_t limit_at, stall_at;
    uint64_t asked_at;  /* when it was cancelled first, softly or hard; GPI_NEVER */
    uint64_t cancel_at; /* when it was cancelled hard; GPI_NEVER */
    uint64_t killed_at; /* when the kill was ordered; GPI_NEVER */
    uint64_t kill_at;   /* when the kill is due; once ordered, when it is given up */
    uint16_t device[GPI_SLOT_DEVICES];
};

/* The part of an external task that stays over several grants. */
struct gpi_outside {
    uint64_t stall;    /* ns; 0: none */
    uint32_t grants;
    uint32_t in_vain;  /* grants in a row that were not started in time */
};

/* External work: external.c. */
struct gpi_external {
    struct gpi_lease *lease;
    struct gpi_outside *task; /* NULL: no class is external.  stream.c writes it, too */
    struct gpi_heap times;    /* of leases */
    uint32_t n_leases;
};

/* A class of work: its queue, and the masks of its workers. */
struct gpi_sched_class {
    struct gpi_class_settings set; /* class.c */
    struct gpi_queue queue; /* tasks.c */
    /* spread.c */
    uint64_t *shelf;       /* bit per slot: for each 64 slots a word per shelf */
    uint64_t in_use[4];    /* for each rank, bit per shelf that is not empty */
    uint32_t words;        /* that a shelf has: for all slots */
    uint32_t moved;        /* 1 + the first slot that may be on a wrong shelf; 0 = none */
    uint32_t n_takes, n_stuck; /* slots that take tasks, and of these the stuck ones */
    uint64_t mean_run;     /* ns of a call, over all slots; 0 = unknown */
    /* behind.c */
    uint64_t patience;     /* ns in silence after which a worker is stuck, at the last check */
    uint64_t stuck_at;     /* before it no further worker is stuck: tasks.c writes it, too */
    uint64_t recall_at;    /* before it there is nothing to recall: tasks.c writes it, too */
    bool unfreed;          /* a stuck worker may have unclaimed tasks: tasks.c writes it, too */
    uint64_t successes;    /* tasks.c */
    uint32_t deferred;     /* tasks.c: tasks that wait for their next attempt */
    uint32_t n_own, n_planned; /* own.c: tasks of their own that wait; those that the plan knows */
    uint32_t n_slots, n_hopeless; /* sched.c: its slots; of these, those that can have no worker.
                                   * pool.c: 1, and 1 if it has failed */
    /* slot_end.c, pooled */
    struct gpi_restart *place; /* for each device, and for workers without a device */
    uint32_t failures;         /* since `failed_at`, each with all workers that began before it */
    uint64_t failed_at;        /* `successes` at the last failure */
    uint64_t last_failure;     /* when the last of these was */
    /* pool.c */
    struct gpi_plan_class plan;
    uint32_t waiting;          /* the stream in the plan that waits; GPI_NOWHERE */
    uint64_t waits_for;        /* number of the task that it stands for */
    uint32_t behind;           /* tasks in the queue, as the plan knows it */
    uint32_t wants_from;       /* with more of them it wants a further worker */
    uint64_t told_run;         /* `mean_run`, as the plan knows it */
    int32_t waits_with;        /* its priority */
    uint32_t n_fresh;          /* grants that have had no task yet: stream.c writes it, too */
    uint32_t unused;           /* of these, those of workers that may take one: spread.c, too */
    uint64_t again;            /* before it, it boots no worker */
    bool paused;               /* no task of it starts */
    bool ending, removed;      /* END, REMOVE: its tasks that have not begun end; nothing is left */
    uint32_t renewing;     /* life.c: 1 + the slot whose worker the core replaces for max_tasks */
};

struct gpi_sched {
    struct gpi_pool_settings set;
    struct gpi_sched_class *class; /* class.c */
    uint32_t n_classes;
    /* pool.c */
    struct gpi_plan *plan; /* NULL: the core is not pooled */
    uint32_t *seat_of;     /* of each worker of the plan */
    struct gpi_stream {
        uint32_t next;     /* free one */
        uint32_t class;
    } *stream;
    uint32_t n_streams, free_stream;
    uint64_t outlasts_at;  /* when a task runs for longer than the plan expects of a class */
    bool unplanned;        /* the plan has got facts, and has not decided */
    struct gpi_own own;
    struct gpi_external external;
    /* sched.c */
    uint64_t now;
    const struct gpi_sched_event *heard; /* the event, for the rules */
    struct gpi_sched_slot *slot;
    struct gpi_sched_device *device;
    uint32_t n_slots, n_devices;
    bool undecided;        /* a gate may have opened: each file that opens a gate writes it */
    uint64_t late;         /* messages of, and replies about, workers that are gone */
    uint64_t impossible;   /* inputs that the slot's state excludes: slot.c writes it */
    /* ring.c */
    struct gpi_sched_action *ring;
    uint32_t ring_size, head, count;
    uint32_t n_promises;       /* of these actions */
    uint64_t promises_dropped;
    struct gpi_heap times; /* slots, then seats, then the close */
    uint32_t touched, last_touched; /* 1 + the first slot, the last slot; touched 0 = none */
    /* life.c */
    uint32_t waiting;      /* slots in WAIT */
    /* seat.c */
    uint32_t makes;        /* requests to the spawner without a reply */
    bool spawner_gone, spawner_dropped;
    /* tasks.c */
    struct gpi_sched_record *task;
    uint64_t *keep_alive; /* pooled: of each task */
    uint32_t *ended_next;
    uint32_t ended_head, ended_tail; /* 1 + the record; 0 = none */
    struct gpi_heap retries, expiries;
    uint64_t submitted;
    uint32_t unended;
    /* record.c */
    uint32_t wary;         /* tasks, one of which may make workers overwrite their pages */
    /* close.c */
    bool closing, feeding, winding;
    uint8_t how; /* enum gpi_close */
    uint64_t close_at;
#ifdef GPI_SCHED_PROBE
    uint64_t reached[GPI_LIVES][GPI_INPUTS];
    bool mute[GPI_LIVES][GPI_INPUTS];
#endif
};

static inline void gpi_set_time(struct gpi_sched *c, uint64_t now)
{
    assert(now >= c->now);
    if (now > c->now)
        c->now = now;
}

static inline uint32_t gpi_slot_number(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    return (uint32_t)(s - c->slot);
}

static inline bool gpi_is_among(const uint16_t *list, uint32_t n, uint32_t device)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == device)
            return true;
    return false;
}

static inline bool gpi_device_has(const struct gpi_sched_slot *s, uint32_t device)
{
    return gpi_is_among(s->device, s->n_devices, device);
}

static inline bool gpi_lease_has(const struct gpi_lease *l, uint32_t device)
{
    return gpi_is_among(l->device, l->n_devices, device);
}

/* Returns true if no slot of the class can have a worker. */
static inline bool gpi_none_can_run(const struct gpi_sched_class *k)
{
    return k->n_hopeless == k->n_slots;
}

/* Returns true if tasks that have not started end as cancelled. */
static inline bool gpi_close_cancels(const struct gpi_sched *c)
{
    return c->closing && c->how >= GPI_CLOSE_RUNNING;
}

/* The same, of tasks of the class. */
static inline bool gpi_class_cancels(const struct gpi_sched *c, const struct gpi_sched_class *k)
{
    return gpi_close_cancels(c) || k->ending;
}

/* Returns true if the slot has a worker, or may have one. */
static inline bool gpi_slot_has_worker(const struct gpi_sched_slot *s)
{
    return s->life >= GPI_LIFE_BOOT && s->life <= GPI_LIFE_LOST;
}

static inline bool gpi_slot_is_dying(const struct gpi_sched_slot *s)
{
    return s->life >= GPI_LIFE_DOOMED && s->life <= GPI_LIFE_LOST;
}

/* ---- ring.c ---- */

int gpi_ring_make(struct gpi_sched *c);
void gpi_ring_free(struct gpi_sched *c);
void gpi_ring_add(struct gpi_sched *c, struct gpi_sched_action a);
/* The same for a slot, which need not be in `a`. */
void gpi_ring_add_for(struct gpi_sched *c, const struct gpi_sched_slot *s,
                      struct gpi_sched_action a);
void gpi_ring_order(struct gpi_sched *c, const struct gpi_sched_slot *s, uint32_t kind);
void gpi_ring_note(struct gpi_sched *c, const struct gpi_sched_slot *s, enum gpi_sched_note how);
void gpi_ring_promise(struct gpi_sched *c, uint32_t task, enum gpi_promise how, uint64_t at);
/* Marks the slot: after the event, sched.c draws the consequences of its state. */
void gpi_ring_touch(struct gpi_sched *c, struct gpi_sched_slot *s);
struct gpi_sched_slot *gpi_ring_touched(struct gpi_sched *c); /* takes the first out; or NULL */
void gpi_ring_arm(struct gpi_sched *c, struct gpi_sched_slot *s); /* after its times changed */
void gpi_ring_arm_seat(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_ring_arm_close(struct gpi_sched *c);

/* ---- device.c ---- */

void gpi_device_set(struct gpi_sched *c, uint32_t device, enum gpi_may may);
void gpi_device_wish(struct gpi_sched *c, uint32_t device, uint32_t event);
void gpi_device_due(struct gpi_sched *c, uint32_t device);
bool gpi_device_wants_try(const struct gpi_sched *c, uint32_t device); /* a canary is due */
void gpi_device_note_end(struct gpi_sched *c, uint32_t device); /* it is drained, or removed */
void gpi_device_touch(struct gpi_sched *c, uint32_t device); /* every slot with the device */
/* These functions apply to all devices of the slot together. */
bool gpi_devices_watched(const struct gpi_sched *c, const struct gpi_sched_slot *s);
bool gpi_devices_bar(const struct gpi_sched *c, const struct gpi_sched_slot *s);
bool gpi_devices_are(const struct gpi_sched *c, const struct gpi_sched_slot *s, enum gpi_may may);
bool gpi_devices_well(const struct gpi_sched *c, const struct gpi_sched_slot *s); /* no doubt */
bool gpi_devices_drain(const struct gpi_sched *c, const struct gpi_sched_slot *s);
bool gpi_devices_pause(const struct gpi_sched *c, const struct gpi_sched_slot *s);
bool gpi_devices_removed(const struct gpi_sched *c, const struct gpi_sched_slot *s);
bool gpi_devices_try(const struct gpi_sched *c, const struct gpi_sched_slot *s);
void gpi_devices_set_trying(struct gpi_sched *c, const struct gpi_sched_slot *s, bool trying);
/* Returns the time from a kill to the end: of these devices, or the longest one of all. */
uint64_t gpi_devices_kill_limit(const struct gpi_sched *c, const uint16_t *device, uint32_t n);
uint64_t gpi_devices_longest_kill(const struct gpi_sched *c);
/* The slot is REMOVED: removes its devices that have no other slot. */
void gpi_devices_left(struct gpi_sched *c, const struct gpi_sched_slot *s);
/* Notes each device of the slot that is removed, or drained and without a worker. */
void gpi_devices_note(struct gpi_sched *c, const struct gpi_sched_slot *s);

/* ---- seat.c ---- */

void gpi_seat_ask(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_seat_dismiss(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_seat_replied(struct gpi_sched *c, struct gpi_sched_slot *s, bool up);
void gpi_seat_lost(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_seat_gone(struct gpi_sched *c, struct gpi_sched_slot *s);
/* The keeper is gone, and has started no worker.  Returns true if that happened too often. */
bool gpi_seat_wasted(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_seat_used(struct gpi_sched_slot *s);
void gpi_seat_begun(struct gpi_sched *c, struct gpi_sched_slot *s);
/* Returns true if the end of the keeper is late. */
bool gpi_seat_timer(struct gpi_sched *c, struct gpi_sched_slot *s);
/* The slot may have a worker again: from now on the end of its last keeper has a limit. */
void gpi_seat_wanted(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_seat_orphaned(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_spawner_gone(struct gpi_sched *c);

/* ---- spread.c, and spread.h for the hot path ---- */

int gpi_spread_make(const struct gpi_sched *c, struct gpi_sched_class *k);
void gpi_spread_free(struct gpi_sched_class *k);
void gpi_spread_add(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_spread_seat(struct gpi_sched *c, struct gpi_sched_slot *s, struct gpi_sched_class *k);
/* Records whether the slot takes tasks, after its state has changed. */
void gpi_spread_refresh(struct gpi_sched *c, struct gpi_sched_slot *s);
/* After a condition has changed for all slots, or for those of a class. */
void gpi_spread_refresh_all(struct gpi_sched *c);
void gpi_spread_refresh_class(struct gpi_sched *c, const struct gpi_sched_class *k);
void gpi_spread_put(struct gpi_sched *c, struct gpi_sched_slot *s); /* on the shelf for it */
/* The same for each moved slot of the class. */
void gpi_spread_move(struct gpi_sched *c, struct gpi_sched_class *k);
/* Returns the number of idle workers of the class. */
uint32_t gpi_spread_idle(struct gpi_sched *c, struct gpi_sched_class *k);
void gpi_spread_stuck(struct gpi_sched *c, struct gpi_sched_slot *s, bool stuck);
void gpi_spread_room(struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t room);
/* Returns true if the worker takes the task that the plan has chosen for it. */
bool gpi_spread_takes_chosen(const struct gpi_sched *c, const struct gpi_sched_slot *s);

/* ---- own.c ---- */

int gpi_own_make(struct gpi_sched *c);
void gpi_own_free(struct gpi_sched *c);
/* Returns true if the task has, or may have, a shape. */
bool gpi_own_has_room(const struct gpi_sched *c, const struct gpi_sched_task *what);
/* The task is accepted; it ends. */
void gpi_own_begin(struct gpi_sched *c, uint32_t task, const struct gpi_sched_task *what);
void gpi_own_end(struct gpi_sched *c, uint32_t task);
/* It waits; it waits no more. */
void gpi_own_wait(struct gpi_sched *c, uint32_t task);
void gpi_own_leave(struct gpi_sched *c, uint32_t task);
/* The grant of the slot is for the task of its stream.  Unbind: the task is gone.  Sent: the slot
 * gets it now.  Ended: the grant is over. */
void gpi_own_bind(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_own_unbind(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_own_sent(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_own_ended(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_own_hopeless(struct gpi_sched *c, uint32_t task); /* as the plan finds */
bool gpi_own_waits(const struct gpi_sched *c, uint32_t task); /* in the plan */
bool gpi_own_is_hopeless(const struct gpi_sched *c, uint32_t task);
uint32_t gpi_own_unlist(struct gpi_sched *c); /* takes a listed task out, or returns NOWHERE */
void gpi_own_mark_places(const struct gpi_sched *c, bool *used); /* of their requests */
/* The task runs without a worker: it is external.  Over: its devices are free. */
void gpi_own_run(struct gpi_sched *c, uint32_t task);
void gpi_own_over(struct gpi_sched *c, uint32_t task);
/* Feed the plan, and return true, if it is to know that the task waits, or waits no more. */
bool gpi_own_withdraw(struct gpi_sched *c, uint32_t task);
bool gpi_own_submit(struct gpi_sched *c, uint32_t task);

/* Returns the number of the task in the plan. */
static inline uint32_t gpi_own_number(const struct gpi_sched *c, uint32_t task)
{
    return c->n_streams + task;
}

/* Returns true if the cell of send number `n` still has its task. */
static inline bool gpi_slot_has_number(const struct gpi_sched_slot *s, uint64_t n)
{
    const uint32_t cell = s->order[n % GPI_SLOT_CELLS];

    return s->cells >> cell & 1 && s->cell_number[cell] == n;
}

/* ---- class.c ---- */

int gpi_classes_make(struct gpi_sched *c);
int gpi_classes_add(struct gpi_sched *c, uint32_t class, const struct gpi_class_settings *set);
void gpi_classes_free(struct gpi_sched *c);
bool gpi_classes_wait(const struct gpi_sched *c); /* a task of a class waits for a worker */

/* ---- tasks.c ---- */

int gpi_tasks_make(struct gpi_sched *c);
void gpi_tasks_free(struct gpi_sched *c);
void gpi_tasks_enter(struct gpi_sched *c, uint32_t task); /* it is accepted, and waits */
void gpi_tasks_requeue(struct gpi_sched *c, uint32_t task); /* at its old place; or it ends */
/* The task waits until `at`, and then at its old place. */
void gpi_tasks_defer(struct gpi_sched *c, uint32_t task, uint64_t at);
/* Ends a task that is in no queue. */
void gpi_tasks_finish(struct gpi_sched *c, uint32_t task, uint32_t outcome, uint32_t phase,
                      enum gpi_why why);
/* An attempt has ended so, at no worker.  `again`: another one may follow. */
void gpi_tasks_attempt(struct gpi_sched *c, uint32_t task, uint32_t outcome, uint32_t phase,
                       enum gpi_why why, bool again);
/* A task that will never start: it ends, and is in no queue. */
void gpi_tasks_refuse(struct gpi_sched *c, uint32_t task);
/* Returns true if another attempt follows an attempt that ended so. */
bool gpi_tasks_retry(struct gpi_sched *c, uint32_t task, uint32_t outcome);
void gpi_tasks_came_back(struct gpi_sched *c, uint32_t task, bool spoilt);
void gpi_tasks_claimed(struct gpi_sched *c, uint32_t task);
void gpi_tasks_held(struct gpi_sched_slot *s); /* HOLD has left claimed tasks only */
void gpi_tasks_recall(struct gpi_sched *c, uint32_t task, enum gpi_wish wish);
void gpi_tasks_cancel(struct gpi_sched *c, uint32_t task, uint32_t how);
/* Cancels every task that the worker has not ended.  None of them is unclaimed. */
void gpi_tasks_cancel_at(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_tasks_time(struct gpi_sched *c);
uint64_t gpi_tasks_due(const struct gpi_sched *c);
/* The slot's worker is gone: charges each task left in its cells.  Returns their number. */
uint32_t gpi_tasks_charge(struct gpi_sched *c, struct gpi_sched_slot *s, bool survived);
/* Ends every task of the class that is queued or waits for its next attempt. */
void gpi_tasks_end_waiting(struct gpi_sched *c, struct gpi_sched_class *k, uint32_t outcome);
/* The same of those in its queue alone. */
void gpi_tasks_end_queued(struct gpi_sched *c, struct gpi_sched_class *k, uint32_t outcome);
void gpi_tasks_end_one(struct gpi_sched *c, uint32_t task, uint32_t outcome); /* that waits */
void gpi_tasks_new_worker(struct gpi_sched_slot *s);

/* ---- behind.c ---- */

/* Takes tasks back that wait behind a long task. */
void gpi_behind_decide(struct gpi_sched *c);

/* ---- limits.c ---- */

void gpi_limits_expect(struct gpi_sched *c, struct gpi_sched_slot *s, uint64_t at);
void gpi_limits_clear(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_limits_forget(struct gpi_sched_slot *s); /* the worker is gone */
void gpi_limits_drop(struct gpi_sched *c); /* the times of checks that are not due any more */
void gpi_limits_look(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_limits_running(struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t task, uint64_t at);
void gpi_limits_looked(struct gpi_sched *c, struct gpi_sched_slot *s, uint64_t again);
bool gpi_limits_held(struct gpi_sched *c, struct gpi_sched_slot *s); /* a task is late: kill */
/* Marks the late tasks.  Returns the cell for KILL_AT, the time of the kill, and its reason. */
uint32_t gpi_limits_doom(struct gpi_sched *c, struct gpi_sched_slot *s, uint64_t *ret_at,
                         enum gpi_why *ret_why);
void gpi_limits_stopped(struct gpi_sched_slot *s); /* at stop_limit: all running tasks are late */
void gpi_limits_spared(struct gpi_sched *c, struct gpi_sched_slot *s);
/* Returns when the tasks that the worker has begun end at the latest, by their limits. */
uint64_t gpi_limits_end(const struct gpi_sched *c, const struct gpi_sched_slot *s);

/* ---- external.c ---- */

int gpi_external_make(struct gpi_sched *c); /* for the first class that is external */
void gpi_external_free(struct gpi_sched *c);
struct gpi_plan_action;
void gpi_external_grant(struct gpi_sched *c, const struct gpi_plan_action *a);
bool gpi_external_has(const struct gpi_sched *c, uint32_t task); /* it is granted, or held */
void gpi_external_event(struct gpi_sched *c, const struct gpi_sched_event *e);
void gpi_external_cancel(struct gpi_sched *c, uint32_t task, uint32_t how);
/* The use of the device has changed: grants that have not started come back, and `kills`: started
 * ones are to be killed. */
void gpi_external_device(struct gpi_sched *c, uint32_t device, bool kills);
void gpi_external_pause(struct gpi_sched *c, const struct gpi_sched_class *k);
/* RUNNING: grants that have not started come back.  NOW: started ones are cancelled.  LEAVE: they
 * are no tasks any more. */
void gpi_external_close(struct gpi_sched *c, enum gpi_close how);
void gpi_external_kill_all(struct gpi_sched *c);
void gpi_external_adopt(struct gpi_sched *c, uint32_t task, const struct gpi_sched_adoption *a);
void gpi_external_observed(struct gpi_sched *c, uint32_t task, uint32_t device, uint64_t bytes);
void gpi_external_time(struct gpi_sched *c);
uint64_t gpi_external_due(const struct gpi_sched *c);

/* ---- close.c ---- */

void gpi_close_asked(struct gpi_sched *c, uint32_t how, uint64_t at);
void gpi_close_source(struct gpi_sched *c, bool feeding);
void gpi_close_passed(struct gpi_sched *c); /* the limit: all workers are being killed */
bool gpi_close_starts_nothing(const struct gpi_sched *c);
bool gpi_close_winds(struct gpi_sched *c); /* true once: from now on */

/* ---- life.c ---- */

void gpi_life_enter(struct gpi_sched *c, struct gpi_sched_slot *s, enum gpi_life life);
void gpi_life_wait_until(struct gpi_sched *c, struct gpi_sched_slot *s, uint64_t at);
void gpi_life_start(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_life_unstart(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_life_begun(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_life_answered(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_life_up(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_life_setup_over(struct gpi_sched *c, struct gpi_sched_slot *s); /* of a dying worker */
void gpi_life_judge(struct gpi_sched *c, struct gpi_sched_slot *s, enum gpi_judge how);
void gpi_life_leave(struct gpi_sched *c, struct gpi_sched_slot *s, bool leaving);
void gpi_life_end(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_life_renew(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_life_kill(struct gpi_sched *c, struct gpi_sched_slot *s, enum gpi_why why);
void gpi_life_kill_at(struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t cell, uint64_t at);
void gpi_life_overdue(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_life_spared(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_life_dying(struct gpi_sched *c, struct gpi_sched_slot *s, enum gpi_life life);
void gpi_life_gone(struct gpi_sched *c, struct gpi_sched_slot *s); /* after the worker's end */
void gpi_life_fence(struct gpi_sched *c, struct gpi_sched_slot *s); /* STUCK */
void gpi_life_verdict(struct gpi_sched_slot *s, enum gpi_why why); /* of a death */
void gpi_life_only(struct gpi_sched *c, struct gpi_sched_slot *s, bool only);
void gpi_life_owe(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_life_pay(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_life_still(struct gpi_sched *c, struct gpi_sched_slot *s, bool still);
void gpi_life_pause(struct gpi_sched *c, struct gpi_sched_slot *s, bool paused);
bool gpi_life_late(struct gpi_sched *c, struct gpi_sched_slot *s); /* true: extended, not expired */
/* Returns true if the worker has not ended setup.  It may be dying. */
bool gpi_life_is_in_setup(const struct gpi_sched_slot *s);
bool gpi_life_is_hopeless(const struct gpi_sched *c, const struct gpi_sched_slot *s);
bool gpi_life_is_settled(const struct gpi_sched *c, const struct gpi_sched_slot *s);

/* ---- slot_end.c ---- */

void gpi_end_again(struct gpi_sched *c, struct gpi_sched_slot *s, uint64_t wait);
void gpi_end_died(struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t exited);
void gpi_end_unmade(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_end_stuck(struct gpi_sched *c, struct gpi_sched_slot *s);

/* ---- slot.c ---- */

void gpi_slot_input(struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t in);

/* ---- gates.c ---- */

void gpi_gates_open(struct gpi_sched *c);
void gpi_gates_renew(struct gpi_sched *c);

/* ---- pool.c ---- */

int gpi_pool_make(struct gpi_sched *c);
void gpi_pool_free(struct gpi_sched *c);
void gpi_pool_add_class(struct gpi_sched *c, struct gpi_sched_class *k,
                        const struct gpi_plan_class *set);
void gpi_pool_add_device(struct gpi_sched *c, uint32_t device, const struct gpi_plan_has *has);
void gpi_pool_follow(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_pool_looked(struct gpi_sched *c, struct gpi_sched_slot *s);
void gpi_pool_device(struct gpi_sched *c, uint32_t device);
void gpi_pool_try(struct gpi_sched *c, uint32_t device);
void gpi_pool_foreign(struct gpi_sched *c, uint32_t device, uint64_t bytes, uint32_t load);
void gpi_pool_observed(struct gpi_sched *c, const struct gpi_sched_slot *s, uint32_t device,
                       uint64_t bytes);
void gpi_pool_add_place(struct gpi_sched *c, uint32_t set, uint32_t device);
void gpi_pool_empty_places(struct gpi_sched *c, uint32_t set);
/* Returns the first task of the queue that no unused grant is about to take, or GPI_NOWHERE. */
uint32_t gpi_pool_first(const struct gpi_sched_class *k);
bool gpi_pool_is_unused(const struct gpi_sched *c, const struct gpi_sched_class *k);
void gpi_pool_class_set(struct gpi_sched *c, struct gpi_sched_class *k,
                        enum gpi_plan_class_what what);
void gpi_pool_end_idle(struct gpi_sched *c);
void gpi_pool_decide(struct gpi_sched *c);
uint64_t gpi_pool_due(const struct gpi_sched *c);
bool gpi_pool_idles(const struct gpi_sched *c); /* [S7] */

/* ---- sched.c ---- */

/* Draws consequences until none is left. */
void gpi_sched_follow(struct gpi_sched *c);

#endif
