/* SPDX-License-Identifier: MIT */
/*
 * oracle.h - three oracles that watch a random world and the core in it.
 *
 *   safety   the core does nothing forbidden: a second outcome, a start on a device that is out of
 *            use, an order to a missing worker
 *   limits   nothing lasts too long: a setup, a task, a kill, a slot that waits without a reason
 *   after    an event has its consequence at once, before any other event
 *
 * The caller reports each input and each effect of the core.  The oracles keep books of their own.
 * struct gpi_truth has the facts that only the world knows, such as the task a worker has begun.
 * The oracles do not read the core, so that errors of the core cannot hide themselves.
 *
 *   oracle.c         the entries, and orders       oracle_safety.c
 *   oracle_fed.c     inputs of the core            oracle_limits.c   the rules
 *   oracle_tasks.c   tasks                         oracle_after.c
 *   oracle_books.c   questions to the books
 *   oracle_external.c   external work: its books, its verdicts
 *   oracle_lease.c      its grants                 oracle_room.c   its room
 */
#ifndef GPI_SIM_ORACLE_H
#define GPI_SIM_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/event.h"

#define GPI_TRUTH_SLOTS 6u
#define GPI_TRUTH_DEVICES 4u
#define GPI_TRUTH_TASKS 64u
#define GPI_TRUTH_CLASSES 3u
#define GPI_TRUTH_STOPS 16u

enum gpi_oracle_kind { GPI_ORACLE_SAFETY = 1, GPI_ORACLE_LIMITS = 2, GPI_ORACLE_AFTER = 4 };

/* ---- facts of the world ---- */

struct gpi_truth_task {
    uint32_t class;
    int32_t priority;
    uint32_t max_attempts, causes; /* bits of enum gpud_retry */
    uint64_t limit, expires;
    uint64_t order; /* as the user has given it; 0: the youngest of all */
    uint64_t stall; /* EXTERNAL: ns without progress; 0: any time */
    uint32_t n_requests; /* of its own; 0: it is in the queue of its class */
    struct gpi_request request[GPI_VARIANTS];
    uint32_t starts;  /* attempts that a worker has begun; EXTERNAL: that the host has */
    bool unclaimed;   /* a worker has the task and has not begun it */
    bool running;     /* begun and not ended; its worker may be dead */
    uint64_t soft_at; /* when its soft limit expires, unless its worker is stopped */
};

/* Work of a task that runs already. */
struct gpi_truth_adoption {
    struct gpi_request has;
    uint16_t device[GPI_TRUTH_DEVICES];
    uint32_t grant, attempts;
    uint64_t started_at;
    bool given_up;
};

struct gpi_truth_slot {
    uint32_t class;
    uint32_t n_devices;
    uint16_t device[GPI_TRUTH_DEVICES];
    bool watched, stopped; /* its worker is stopped */
    uint64_t kill_limit;
};

struct gpi_truth {
    uint32_t slots, devices, tasks, classes;
    bool pooled;
    uint64_t usable[GPI_TRUTH_DEVICES]; /* bytes of memory that workers may have; pooled */
    uint64_t foreign[GPI_TRUTH_DEVICES]; /* of these, bytes of foreign processes */
    uint32_t cpus; /* of the machine, which tasks may have; pooled */
    uint64_t host_memory, foreign_memory; /* the same; R4 */
    bool all_external; /* each class is */
    struct gpi_plan_class class[GPI_TRUTH_CLASSES]; /* pooled; the only variant is the first */
    bool own[GPI_TRUTH_CLASSES]; /* its tasks may have requests of their own */
    uint32_t ahead, batch, setup_concurrency, makes, max_tasks;
    uint64_t batch_wait;
    bool executed;
    uint64_t boot_limit, setup_limit, canary_limit, grace, cleanup_limit, memory_wait;
    uint64_t reply_limit, backoff, backoff_cap, retry_backoff, retry_cap;
    uint32_t failures_in_a_row;
    struct gpi_truth_slot slot[GPI_TRUTH_SLOTS];
    struct gpi_truth_task task[GPI_TRUTH_TASKS];
    uint64_t now;
    /* the times in which the host was stopped */
    uint32_t n_stops;
    struct {
        uint64_t from, to;
    } stop[GPI_TRUTH_STOPS];
};

/* ---- the books of the oracles ---- */

enum gpi_book_keeper { GPI_BOOK_NONE, GPI_BOOK_ASKED, GPI_BOOK_UP, GPI_BOOK_LOST };
enum gpi_book_kill { GPI_BOOK_SPARE, GPI_BOOK_KILL_AT, GPI_BOOK_KILL };
enum gpi_book_state {
    GPI_BOOK_FREE, GPI_BOOK_QUEUED, GPI_BOOK_SENT, GPI_BOOK_LATER,
    GPI_BOOK_JUDGED, /* an attempt has ended: an outcome or another attempt follows at once */
    GPI_BOOK_GRANTED, /* external: it has a lease */
    GPI_BOOK_HELD /* external: its outcome is out, and its devices are not free */
};

struct gpi_book_slot {
    uint32_t life;    /* enum gpi_life, of its last LIFE order */
    bool wanted;
    uint32_t keeper;  /* enum gpi_book_keeper */
    uint64_t keeper_since, life_since;
    /* its worker, from START to the report of its end */
    bool worker;
    uint32_t incarnation, begun; /* of START; of the last begun worker */
    uint32_t pending; /* enum gpi_sched_action_kind of an order without a reply */
    uint32_t start;   /* enum gpi_start_kind */
    bool answered, ready, ending, sweeping, lost, still;
    uint32_t kill, why; /* enum gpi_book_kill, enum gpi_why */
    uint64_t since; /* start of the part of its life that has a limit */
    uint64_t began, ready_at;
    uint64_t kill_at;
    uint32_t sent, served;
    uint32_t room;    /* for the results of this many tasks */
    uint64_t heard;   /* when it last ended a task, or got its first */
    uint64_t number;  /* of the last send */
    bool unread;      /* its keeper was lost before it read the order to kill it */
    bool leave;       /* the worker is to have no more tasks */
    bool canary;      /* the core has not judged its canary */
    bool only;        /* it waits for a worker that only runs the canary of its device */
    bool just_lost;   /* this event lost its keeper: older orders may still be in the ring */
    bool just_over;   /* this event ended its worker: the same */
    bool just_parked;
    /* memory of its devices, after a worker's end */
    bool owed;
    uint64_t owed_since;
    /* debts of the core for the last event */
    uint32_t owes_kill;  /* enum gpi_why */
    uint32_t owes_judge; /* bits, 1 << enum gpi_judge */
    uint32_t judged;     /* the same bits, of the JUDGE orders so far */
    uint32_t owes_note, noted; /* bits, 1 << enum gpi_sched_note; noted: in this event */
    uint32_t failures;         /* since the last success */
    bool owes_read, owes_stay, owes_life, owes_pardon, owes_reason;
};

struct gpi_book_device {
    uint32_t may; /* enum gpi_may */
    bool draining, removing, noted, paused;
    bool due;     /* a canary is due, and no slot has begun one since */
    bool was_due; /* before this event */
    bool changed; /* in this event: the core decided its current orders before */
};

struct gpi_book_task {
    uint32_t state, slot;
    uint64_t number; /* of the send */
    uint64_t order, ended;     /* of submission; when the last attempt ended */
    uint64_t age;
    uint64_t until;            /* LATER: the time of its next attempt */
    uint64_t queued;
    bool cancel, hard, alarmed;
    bool was_alarmed; /* `alarmed` when its worker ended */
    bool killed;               /* its worker ended while the task ran */
    bool device, overdue, broke, survived, unread; /* the way its worker ended */
    bool wary;                 /* it may make workers overwrite their pages */
    bool alone;                /* it was charged together with another */
    bool again;                /* the core has reported the end of its attempt, and goes on */
    bool final;                /* no other attempt may follow */
    uint32_t breaks;           /* workers that had the task and broke the protocol */
    uint32_t told, told_phase; /* the outcome from its worker, until the core has dealt with it */
    uint64_t alarm;
};

/* HELD: its task has its outcome.  LEFT: it is no task any more. */
enum gpi_book_lease_state {
    GPI_BOOK_UNUSED, GPI_BOOK_UNSTARTED, GPI_BOOK_STARTED, GPI_BOOK_UNFREED, GPI_BOOK_LEFT
};

/* The devices of external work, from its grant to its end. */
struct gpi_book_lease {
    uint32_t state; /* enum gpi_book_lease_state */
    uint32_t task, grant;
    struct gpi_request has;
    bool adopted;
    uint32_t n_devices;
    uint16_t device[GPI_TRUTH_DEVICES];
    uint64_t observed[GPI_TRUTH_DEVICES]; /* bytes on each of them */
    uint64_t start_by;
    uint64_t limit_at, stall_at;
    uint64_t asked_at, cancel_at; /* when it was cancelled; when it was cancelled hard */
    bool told;                    /* its limit has expired, and the host knows */
    uint64_t kill_at;             /* when the hard REVOKE is due */
    uint32_t kill_why;            /* enum gpi_revoke_why: of that REVOKE */
    bool killed;
    uint64_t killed_at, give_up_at;
    /* debts of the core for the last event */
    bool owes_back, owes_soft, owes_hard;
    uint32_t soft_why, hard_why;
};

/* The state of an external task over several grants. */
struct gpi_book_outside {
    uint32_t grants, in_vain, attempts;
    uint64_t promise; /* the time by which it starts; GPI_NEVER: it has none */
    bool owes_end;    /* the core has to report this end at once */
    struct gpi_sched_end end;
};

#define GPI_ORACLE_RULE_SIZE 64u

struct gpi_oracle {
    const struct gpi_truth *truth;
    struct gpi_book_slot slot[GPI_TRUTH_SLOTS];
    struct gpi_book_device device[GPI_TRUTH_DEVICES];
    struct gpi_book_task task[GPI_TRUTH_TASKS];
    struct gpi_book_lease lease[GPI_TRUTH_SLOTS];
    struct gpi_book_outside outside[GPI_TRUTH_TASKS];
    uint64_t submitted, youngest;
    uint32_t unended;
    bool spawner_gone, source, closed, close_passed, close_passes; /* by the last TIME */
    uint32_t close; /* enum gpi_close */
    uint64_t close_at;
    uint64_t moved_at; /* when a slot entered a state last, or a task came, was sent or ended */
    bool deciding;  /* during gpi_sched_decide: only then may the core begin things */
    uint64_t decided_at; /* when the last decision began */
    uint64_t fed_at;     /* the time of the present step, once it has an event or an action */
    bool is_time;        /* that event is TIME */
    struct {
        uint64_t mean_run; /* ns of a task; 0 = unknown */
        uint32_t renewing; /* 1 + the slot whose worker has had max_tasks tasks; 0 = none */
        bool given_up, paused, ended; /* pooled; the last two come from the world */
    } class[GPI_TRUTH_CLASSES];
    /* the first fault, and the oracles that have objected */
    uint32_t objected, first;
    uint64_t fault_at;
    uint32_t about_slot, about_task; /* the current subject, or GPI_NOWHERE */
    uint32_t fault_slot, fault_task; /* the subject of the first fault */
    char rule[GPI_ORACLE_RULE_SIZE];
};

void gpi_oracle_init(struct gpi_oracle *o, const struct gpi_truth *truth);

/* The caller calls each of these before it feeds the core. */
void gpi_oracle_fed(struct gpi_oracle *o, const struct gpi_sched_event *e);
void gpi_oracle_submitted(struct gpi_oracle *o, uint32_t task);
void gpi_oracle_attempt_ended(struct gpi_oracle *o, const struct gpi_sched_attempt *a);
void gpi_oracle_adopted(struct gpi_oracle *o, uint32_t task, const struct gpi_truth_adoption *a);
void gpi_oracle_observed_of(struct gpi_oracle *o, uint32_t task, uint32_t device, uint64_t bytes);
/* The caller calls each of these before the world performs the order. */
void gpi_oracle_ordered(struct gpi_oracle *o, const struct gpi_sched_action *a);
void gpi_oracle_sent(struct gpi_oracle *o, const struct gpi_sched_order *s);
void gpi_oracle_ended(struct gpi_oracle *o, const struct gpi_sched_end *e);
/* The core has no more orders for the last event. */
void gpi_oracle_settled(struct gpi_oracle *o);
void gpi_oracle_decides(struct gpi_oracle *o, bool deciding);
/* The host goes to sleep. */
void gpi_oracle_turned(struct gpi_oracle *o);
/* The core reports that a close is complete. */
void gpi_oracle_finished(struct gpi_oracle *o);

/* ---- for its own files ---- */

/* Records a broken rule.  Returns true, so that it can end a condition. */
bool gpi_oracle_object(struct gpi_oracle *o, enum gpi_oracle_kind kind, const char *rule);
void gpi_oracle_about(struct gpi_oracle *o, uint32_t slot, uint32_t task);
/* Returns the ns since `since`, without the time in which the host was stopped. */
uint64_t gpi_oracle_lasts(const struct gpi_oracle *o, uint64_t since);

/* Whether the core may send tasks to a worker, and whether max_tasks allows the worker one more. */
bool gpi_book_takes(const struct gpi_oracle *o, uint32_t slot);
bool gpi_book_has_life(const struct gpi_oracle *o, uint32_t slot);
/* Returns the limit for the setup of its worker, from the worker's start. */
/* Returns bounds of the number of tasks that it may have, which partly depends on their times. */
uint32_t gpi_book_most(const struct gpi_oracle *o, uint32_t slot);
uint32_t gpi_book_least(const struct gpi_oracle *o, uint32_t slot);
bool gpi_book_wary(const struct gpi_oracle *o);
/* Whether it is surely stuck in a long task, and whether it surely is not. */
bool gpi_book_stuck(const struct gpi_oracle *o, uint32_t slot);
bool gpi_book_lively(const struct gpi_oracle *o, uint32_t slot);
bool gpi_book_unclaimed(const struct gpi_oracle *o, uint32_t slot); /* of its last sent task */
uint64_t gpi_book_setup_limit(const struct gpi_oracle *o, uint32_t slot);
bool gpi_book_barred(const struct gpi_oracle *o, uint32_t slot);
bool gpi_book_drains(const struct gpi_oracle *o, uint32_t slot);
bool gpi_book_on_paused(const struct gpi_oracle *o, uint32_t slot); /* a device of it is paused */
bool gpi_book_paused(const struct gpi_oracle *o, uint32_t slot);    /* or its class */
bool gpi_book_doubted(const struct gpi_oracle *o, uint32_t slot);
bool gpi_book_has(const struct gpi_oracle *o, uint32_t slot, uint32_t device);
bool gpi_book_cancels(const struct gpi_oracle *o); /* tasks not started end as cancelled */
bool gpi_book_useless(const struct gpi_oracle *o, uint32_t slot); /* it can have no worker */
bool gpi_book_is_external(const struct gpi_oracle *o, uint32_t class);
bool gpi_book_waits(const struct gpi_oracle *o, uint32_t task); /* it may start now */
/* External work that may still end is on the device: not given up, not left. */
bool gpi_book_leased(const struct gpi_oracle *o, uint32_t device);
/* Pooled: devices that are in use, and empty, could hold a worker for the task. */
bool gpi_book_could_fit(const struct gpi_oracle *o, uint32_t task);
bool gpi_life_has_worker(uint32_t life);
/* Whether each of its devices is usable or due for a canary that no other slot runs. */
bool gpi_book_can_try(const struct gpi_oracle *o, uint32_t slot);
bool gpi_book_is_canary(const struct gpi_book_slot *s); /* its worker is, or will be, one alone */
bool gpi_book_tries(const struct gpi_oracle *o, uint32_t device); /* a slot runs its canary */
uint32_t gpi_book_setups(const struct gpi_oracle *o);
uint32_t gpi_book_makes(const struct gpi_oracle *o);
/* Returns true if a task of the class waits in its queue. */
bool gpi_book_queues(const struct gpi_oracle *o, uint32_t class);
bool gpi_book_renews(const struct gpi_oracle *o, uint32_t slot); /* its class replaces a worker */

void gpi_book_forget_worker(struct gpi_book_slot *s);
void gpi_book_charge(struct gpi_oracle *o, uint32_t slot, bool survived, bool spoilt);
void gpi_book_came_back(struct gpi_oracle *o, struct gpi_book_task *t);
void gpi_book_settle_task(struct gpi_oracle *o, uint32_t task);

void gpi_safety_ordered(struct gpi_oracle *o, const struct gpi_sched_action *a);
void gpi_safety_sent(struct gpi_oracle *o, const struct gpi_sched_order *s);
void gpi_safety_ended(struct gpi_oracle *o, const struct gpi_sched_end *e);
void gpi_limits_turned(struct gpi_oracle *o);
void gpi_after_ended(struct gpi_oracle *o, const struct gpi_sched_end *e);
void gpi_after_settled(struct gpi_oracle *o);

/* ---- external work: oracle_external.c, oracle_lease.c, oracle_room.c ---- */

/* Returns the lease of the task, or NULL.  Work that was left has none. */
struct gpi_book_lease *gpi_book_lease(struct gpi_oracle *o, uint32_t task);
/* The task has a lease without devices; or returns NULL: there are no more. */
struct gpi_book_lease *gpi_book_begin(struct gpi_oracle *o, uint32_t task, uint32_t grant);
bool gpi_book_is_on(const struct gpi_book_lease *l, uint32_t device);
bool gpi_book_is_barred(const struct gpi_book_device *d); /* it starts nothing */
bool gpi_book_is_on_one(const struct gpi_oracle *o, const struct gpi_book_lease *l,
                        bool (*is)(const struct gpi_book_device *));
uint64_t gpi_book_soft_at(const struct gpi_book_lease *l); /* the earlier one of its limits */
/* The task waits, until a time at the earliest. */
void gpi_book_wait(struct gpi_oracle *o, uint32_t task, uint64_t until);

void gpi_outside_submitted(struct gpi_oracle *o, uint32_t task);
void gpi_outside_fed(struct gpi_oracle *o, const struct gpi_sched_event *e); /* first of all */
void gpi_outside_ordered(struct gpi_oracle *o, const struct gpi_sched_action *a);
void gpi_outside_promised(struct gpi_oracle *o, const struct gpi_sched_action *a);
void gpi_outside_ended(struct gpi_oracle *o, const struct gpi_sched_end *e);
void gpi_outside_settled(struct gpi_oracle *o);
void gpi_outside_turned(struct gpi_oracle *o);

/* The machine, and the device, must have room for the grant.                               [S1] */
void gpi_room_machine(struct gpi_oracle *o, const struct gpi_book_lease *l);
void gpi_room_device(struct gpi_oracle *o, const struct gpi_book_lease *l, uint32_t device);
/* The same for the worker of a seat, and for a task that is sent to it. */
void gpi_outside_seated(struct gpi_oracle *o, uint32_t slot);
void gpi_outside_sent(struct gpi_oracle *o, uint32_t slot);

#endif
