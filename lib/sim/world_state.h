/* SPDX-License-Identifier: MIT */
/*
 * world_state.h - the parts of a random world, for its own files.
 *
 *   world.c          makes a world from a seed; its turns; shrinking
 *   world_agenda.c   future facts, in the order of time
 *   world_host.c     the host: feeds the core, performs its actions
 *   world_words.c    messages to the host, which it checks before it feeds them
 *   world_keeper.c   the spawner and its keepers
 *   world_worker.c   workers, and the tasks in their cells
 *   world_device.c   devices: their health, their memory
 *   world_user.c     the user, and spontaneous trouble
 *   world_pool.c     classes and seats of a pooled world
 *   world_external.c external work, which the host runs itself
 *
 * A world keeps two sides apart: the truth (keeper, worker, device), and the host's beliefs (host).
 */
#ifndef GPI_SIM_WORLD_STATE_H
#define GPI_SIM_WORLD_STATE_H

#include "base/clock.h"
#include "gpudispatch/dispatch.h"
#include "sched/sched.h"
#include "sim/oracle.h"
#include "log/play.h"
#include "sim/random.h"
#include "sim/world.h"

#define GPI_WORLD_CELLS 64u
#define GPI_WORLD_WAITS 64u

/* ---- future facts ---- */

enum gpi_fact_kind {
    /* outside of the host */
    GPI_FACT_MADE,          /* the spawner reads a request for a keeper */
    GPI_FACT_SPAWNER_THAWS,
    GPI_FACT_SWEPT,         /* the spawner has swept the processes of a dead keeper */
    GPI_FACT_DROPPED,       /* the spawner kills a keeper that the host has dropped */
    GPI_FACT_KEEPER_ENDS,   /* the host dismissed it, it is unfit, or it just dies */
    GPI_FACT_KEEPER_THAWS,
    GPI_FACT_STEP,          /* a worker's next step */
    GPI_FACT_CONTINUES,
    GPI_FACT_OVERDUE,       /* the worker was stopped for stop_limit */
    GPI_FACT_DIES,          /* SIGKILL takes effect */
    GPI_FACT_CLEARED,       /* the sweep after the worker ends */
    GPI_FACT_KILL_AT,       /* the time of the keeper's deferred kill */
    GPI_FACT_HEALS,
    GPI_FACT_WEATHER,       /* spontaneous trouble */
    GPI_FACT_WORK_ENDS,     /* external work ends */
    /* from the user, and from timers of the host, which receives them at once */
    GPI_FACT_HEARD,         /* the first kind that the host receives */
    GPI_FACT_TRY = GPI_FACT_HEARD,
    GPI_FACT_INCIDENT,
    GPI_FACT_MEMORY,
    GPI_FACT_SUBMIT,
    GPI_FACT_CANCEL,
    GPI_FACT_USER_DEVICE,
    GPI_FACT_CLOSE,
    GPI_FACT_ROOM,          /* the host frees results in a slot's arena, or they fill it */
    GPI_FACT_WISH,          /* for a class: see gpi_pool_wish */
    GPI_FACT_SOURCE_ENDS,
    GPI_FACT_GRANTED,       /* the host starts external work, or declines it */
    GPI_FACT_PROGRESS,      /* its work goes on */
    GPI_FACT_ENDED,         /* the host learns that it has ended */
    GPI_FACT_LOOK,          /* the host checks whether a keeper is stopped */
    GPI_FACT_PATIENCE,      /* the host checks whether a worker begins its tasks */
    /* messages */
    GPI_FACT_WORD,          /* an event, which the host feeds unchanged */
    GPI_FACT_NEWS,          /* a worker has ended tasks */
    GPI_FACT_EXIT,          /* EXITED */
    GPI_FACT_HANGUP,        /* the keeper's socket ends */
    GPI_FACT_GONE,          /* the spawner reports a keeper's end */
    GPI_FACT_SPAWNER_ENDS
};

struct gpi_fact {
    uint64_t at, order;
    uint32_t kind; /* enum gpi_fact_kind */
    uint32_t slot, token, task, device;
    struct {
        uint32_t kind, incarnation, how;
    } word;
};

struct gpi_agenda {
    struct gpi_fact *fact;
    uint32_t n, room;
    uint64_t order;
};

/* ---- the truth ---- */

enum gpi_worker_phase {
    GPI_WORKER_NONE, GPI_WORKER_BOOTS, GPI_WORKER_CANARY, GPI_WORKER_SETUP, GPI_WORKER_IDLE,
    GPI_WORKER_RUNS, GPI_WORKER_CLEANS,
    GPI_WORKER_DYING, GPI_WORKER_DEAD /* no process has reaped it, or its sweep still runs */
};

enum gpi_plan_end { GPI_PLAN_GOOD, GPI_PLAN_BAD, GPI_PLAN_CRASH, GPI_PLAN_FAULT, GPI_PLAN_SPOIL };

struct gpi_world_cell {
    bool used, claimed, ended;
    bool overwritten;       /* the claim of a task that the worker has not begun */
    uint32_t task;
    uint64_t number;        /* of the send */
    uint64_t started_at, stopped_ns, ended_at;
    uint64_t cancelled_at;  /* GPI_NEVER */
    bool soft;              /* the host requested a soft end */
    uint32_t outcome, phase;
    bool invalid;           /* its result is */
    /* the future of the task */
    uint64_t runs_until;    /* GPI_NEVER: the task hangs */
    uint32_t plan;          /* enum gpi_plan_end */
    bool obeys;             /* the task ends soon after its limit or a cancel */
};

struct gpi_world_worker {
    uint32_t phase; /* enum gpi_worker_phase */
    uint32_t incarnation, start; /* enum gpi_start_kind */
    bool answered, ready, passed, failed, fault, spoilt, by_us, end, deaf, sweeping;
    bool unkillable; /* it survives SIGKILL */
    bool mortal;     /* its next step is its death */
    uint32_t step;   /* the token of its next step */
    uint64_t step_at; /* GPI_NEVER: it has no next step */
    bool stopped;
    uint32_t stop;   /* the token of this stop */
    uint64_t stopped_at, stopped_ns, step_left;
    uint32_t kill_task; /* of KILL_AT */
    uint64_t kill_number;
    uint32_t kill;      /* the token of that kill */
};

struct gpi_world_order {
    uint32_t kind, incarnation, how, task;
    uint64_t at;
};

#define GPI_WORLD_ORDERS 8u

struct gpi_world_keeper {
    bool alive, frozen, unfit;
    bool served;   /* it has started a worker */
    bool start_unread;
    uint32_t life; /* the token of all facts about this keeper */
    uint32_t n_orders;
    struct gpi_world_order order[GPI_WORLD_ORDERS]; /* orders that it has not read */
};

/* The host's beliefs. */
struct gpi_world_host {
    bool asked, keeper, lost, dropped;
    bool worker;      /* from START to its end */
    bool ended;       /* its worker has ended, and the keeper has not reported that */
    bool still;
    uint32_t incarnation;
    bool stuck;       /* the host fed SURVIVED after GIVE_UP */
    uint32_t memory;  /* the token of the last READ_MEMORY */
};

struct gpi_world_slot {
    struct gpi_world_keeper keeper;
    struct gpi_world_worker worker;
    struct gpi_world_host host;
    struct gpi_world_cell cell[GPI_WORLD_CELLS];
    uint64_t number;      /* of the last send */
    uint64_t memory_at;   /* when the driver frees the memory of its last worker; GPI_NEVER */
    uint64_t heard[2];    /* the times of the last messages: page, socket */
};

enum gpi_work_plan { GPI_WORK_STARTS, GPI_WORK_DECLINES, GPI_WORK_ENDS, GPI_WORK_NOTHING };

/* External work of a task, as the host and the outside have it. */
struct gpi_world_work {
    bool granted, started, over; /* over: it has ended, and the host does not know */
    uint32_t life;               /* the token of all facts about this grant */
    uint32_t step;               /* the token of its end */
    uint32_t plan;               /* enum gpi_work_plan */
    uint64_t granted_at, started_at, over_at;
    uint32_t how;                /* enum gpi_ended */
    bool obeys, unkillable, stalls;
};

struct gpi_world_device {
    bool watched, sick;
    uint32_t may, passes, tries, token; /* `token`: of its next try */
    bool draining, removed;
};

/* ---- all of it ---- */

struct gpi_world {
    struct gpi_random random;
    uint64_t seed, now;
    const struct gpi_world_options *options;
    struct gpi_sched_settings set;
    uint32_t chance[GPI_TROUBLES]; /* in a million */
    uint64_t stop_limit, kill_limit, latency, weather, task_time, memory_time;
    uint32_t canary_passes;
    struct gpi_play play;
    struct gpi_truth truth;
    struct gpi_oracle oracle;
    struct gpi_agenda agenda;
    struct gpi_fact *missed; /* facts that the host missed while it was stopped */
    uint32_t n_missed, missed_room;
    uint64_t stopped_until;
    uint32_t depth;          /* > 0 while the host performs actions; a reply then only feeds */
    struct {
        bool alive, frozen;
        bool gone;           /* the host has hung up */
        uint32_t n_waits;
        struct gpi_fact wait[GPI_WORLD_WAITS]; /* until it continues */
    } spawner;
    struct gpi_world_slot slot[GPI_TRUTH_SLOTS];
    struct gpi_world_device device[GPI_TRUTH_DEVICES];
    bool external;           /* the pool has classes of external work */
    struct gpi_world_work work[GPI_TRUTH_TASKS];
    bool submitted[GPI_TRUTH_TASKS]; /* the task's record is in use */
    uint32_t tasks_left;     /* to submit */
    bool source, closed;
    uint64_t close_at;
    uint64_t events, happened;
    uint64_t turns;          /* since time last advanced */
};

/* ---- world.c ---- */

bool gpi_world_happens(struct gpi_world *w, enum gpi_trouble trouble);
uint64_t gpi_world_time(struct gpi_world *w, uint64_t from, uint64_t to); /* log scale */

/* ---- world_agenda.c ---- */

/* Adds a fact.  Aborts if memory is exhausted, as all test programs do. */
void gpi_agenda_add(struct gpi_world *w, struct gpi_fact f);
bool gpi_agenda_take(struct gpi_world *w, uint64_t until, struct gpi_fact *ret);
uint64_t gpi_agenda_next(const struct gpi_world *w); /* GPI_NEVER if the agenda is empty */
void gpi_agenda_fini(struct gpi_world *w);

/* Adds a fact about a slot, `wait` ns from now. */
void gpi_world_soon(struct gpi_world *w, enum gpi_fact_kind kind, uint32_t slot, uint32_t token,
                    uint64_t wait);

/* ---- world_host.c ---- */

void gpi_host_feed(struct gpi_world *w, struct gpi_sched_event e);
void gpi_host_feed_slot(struct gpi_world *w, uint32_t kind, uint32_t slot, uint32_t how);
void gpi_host_submit(struct gpi_world *w, uint32_t task, const struct gpi_sched_task *what);
void gpi_host_adopt(struct gpi_world *w, uint32_t task, const struct gpi_truth_adoption *a);
void gpi_host_observed_of(struct gpi_world *w, uint32_t task, uint32_t device, uint64_t bytes);
void gpi_host_decide(struct gpi_world *w);
void gpi_host_perform(struct gpi_world *w); /* all orders */
void gpi_host_collect(struct gpi_world *w, uint32_t slot); /* tasks that have ended in its cells */
void gpi_host_take_back(struct gpi_world *w, uint32_t slot); /* tasks that have not begun */
void gpi_host_drain(struct gpi_world *w, uint32_t slot); /* both */
void gpi_host_forget(struct gpi_world *w, uint32_t slot); /* its worker */
void gpi_host_lose_spawner(struct gpi_world *w);
void gpi_host_lose_keeper(struct gpi_world *w, uint32_t slot); /* drops a stopped keeper */

/* ---- world_words.c ---- */

enum gpi_channel { GPI_CHANNEL_PAGE, GPI_CHANNEL_SOCKET };

/* Sends a message to the host.  It arrives after all earlier messages of the same channel. */
void gpi_word_send(struct gpi_world *w, enum gpi_channel channel, uint32_t slot, uint32_t kind,
                   uint32_t how);
void gpi_word_send_fact(struct gpi_world *w, enum gpi_channel channel, struct gpi_fact f);
void gpi_word_hear(struct gpi_world *w, const struct gpi_fact *f);

/* ---- world_keeper.c ---- */

void gpi_keeper_fact(struct gpi_world *w, const struct gpi_fact *f);
void gpi_keeper_order(struct gpi_world *w, uint32_t slot, struct gpi_world_order order);
void gpi_keeper_reap(struct gpi_world *w, uint32_t slot);
void gpi_keeper_freeze(struct gpi_world *w, uint32_t slot);
void gpi_keeper_end(struct gpi_world *w, uint32_t slot);
void gpi_spawner_freeze(struct gpi_world *w);
void gpi_spawner_end(struct gpi_world *w);

/* ---- world_worker.c ---- */

void gpi_worker_born(struct gpi_world *w, uint32_t slot, uint32_t incarnation, uint32_t start);
void gpi_worker_fact(struct gpi_world *w, const struct gpi_fact *f);
void gpi_worker_wake(struct gpi_world *w, uint32_t slot); /* the host sent it tasks, or END */
void gpi_worker_alarm(struct gpi_world *w, uint32_t slot, uint32_t task);
void gpi_worker_kill(struct gpi_world *w, uint32_t slot, bool by_us);
void gpi_worker_die(struct gpi_world *w, uint32_t slot);
void gpi_worker_stop(struct gpi_world *w, uint32_t slot);
void gpi_worker_race(struct gpi_world *w, uint32_t slot); /* it may act just now */
bool gpi_worker_lives(const struct gpi_world_worker *k);
struct gpi_world_cell *gpi_cell_of(struct gpi_world *w, uint32_t slot, uint32_t task);
struct gpi_world_cell *gpi_cell_running(struct gpi_world *w, uint32_t slot);
uint64_t gpi_cell_soft(const struct gpi_world *w, uint32_t slot, const struct gpi_world_cell *c);

/* ---- world_device.c ---- */

void gpi_world_judge(struct gpi_world *w, uint32_t slot, enum gpi_judge how);
void gpi_world_read_memory(struct gpi_world *w, uint32_t slot);
void gpi_world_returned(struct gpi_world *w, uint32_t device);
void gpi_device_fact(struct gpi_world *w, const struct gpi_fact *f);
void gpi_device_hear(struct gpi_world *w, const struct gpi_fact *f);

/* ---- world_pool.c ---- */

void gpi_pool_draw(struct gpi_world *w);
/* Returns a request that fits on empty devices: a host refuses another one. */
struct gpi_request gpi_pool_draw_need(struct gpi_world *w);
bool gpi_pool_begin(struct gpi_world *w); /* false: no memory */
void gpi_pool_seat(struct gpi_world *w, const struct gpi_sched_action *a);
void gpi_pool_seat_on(struct gpi_world *w, const struct gpi_sched_action *a);
void gpi_pool_entered(struct gpi_world *w, const struct gpi_sched_action *a);
/* A random reading, or a request for a class. */
void gpi_pool_disturb(struct gpi_world *w);
void gpi_pool_wish(struct gpi_world *w, uint32_t class, uint32_t what);
/* After a decision: checks that each task that waits has a reason.                       [S9] */
void gpi_pool_explain(struct gpi_world *w);

/* ---- world_external.c ---- */

void gpi_work_draw(struct gpi_world *w);
void gpi_work_draw_class(struct gpi_world *w, uint32_t class); /* it may be external */
void gpi_work_draw_task(struct gpi_world *w, struct gpi_truth_task *t);
void gpi_work_begin(struct gpi_world *w); /* adopts work that runs already */
void gpi_work_ordered(struct gpi_world *w, const struct gpi_sched_action *a);
void gpi_work_fact(struct gpi_world *w, const struct gpi_fact *f);
void gpi_work_left(struct gpi_world *w); /* at a close */
void gpi_work_disturb(struct gpi_world *w);
/* After a decision: the core's own queries agree with the world. */
void gpi_work_check(struct gpi_world *w);

/* ---- world_user.c ---- */

/* Submits a task.  Returns its record, or GPI_NOWHERE. */
uint32_t gpi_user_submit(struct gpi_world *w);

void gpi_user_begin(struct gpi_world *w, uint64_t length);
void gpi_user_hear(struct gpi_world *w, const struct gpi_fact *f);
void gpi_user_weather(struct gpi_world *w);

#endif
