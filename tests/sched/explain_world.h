/* SPDX-License-Identifier: MIT */
/*
 * explain_world.h - a random world around a plan, as facts that a fresh plan can be told again.
 *
 * The world is a function of its seed.  Each step invents one fact, feeds it to the plan, and
 * mostly lets the plan decide.  The same facts in the same order lead to the same actions [S6], so
 * a second plan is in the state of the first one, and something may be changed there.
 */
#ifndef T_EXPLAIN_WORLD_H
#define T_EXPLAIN_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/plan.h"
#include "sim/random.h"

#define T_TASKS 48u
#define T_RUNS 64u
#define T_MADE 12u
#define T_CLASSES 4u
#define T_DEVICES 8u
#define T_FACTS 400u

enum t_fact_kind {
    T_SUBMIT,
    T_WITHDRAW,
    T_END,
    T_UP,
    T_DYING,
    T_GONE,
    T_DEVICE,
    T_FOREIGN,
    T_OBSERVED,
    T_ADOPT,
    T_ENDS_BY,
    T_CLASS,
    T_DECIDE
};

struct t_fact {
    enum t_fact_kind kind;
    uint64_t now;
    uint32_t who, how;         /* task, worker, device or class; good, may, device or what */
    uint64_t at;               /* again, bytes, keep_alive, or ends_by */
    struct gpi_plan_task what; /* SUBMIT: its requests are those of the world; ADOPT: without */
    struct gpi_request has;    /* ADOPT */
    uint16_t device[3];
};

enum t_state { T_NOT, T_WAITS, T_RUNS_NOW, T_HOPELESS };

struct t_task {
    enum t_state state;
    struct gpi_plan_task what;
    uint64_t takes, ends;
    uint32_t worker, run, n_devices;
    uint16_t device[T_DEVICES];
};

enum t_work { T_NO_WORKER, T_BOOTS, T_IS_UP, T_LEAVES };

struct t_worker {
    enum t_work work;
    uint32_t task, n_devices;
    uint16_t device[T_DEVICES];
    uint64_t at;
};

struct t_world {
    struct gpi_random rng;
    struct gpi_plan_settings set;
    struct gpi_plan_has has[T_DEVICES];
    uint16_t place[3][T_DEVICES];
    uint32_t n_place[3];
    struct gpi_plan_class class[T_CLASSES];
    struct gpi_request made[T_MADE][GPI_VARIANTS];
    uint32_t n_made[T_MADE];
    bool workers;
    bool mixed;  /* workers of a transient class have different needs */
    bool adopts; /* some tasks run already, and the ends of runs without a worker move */
    uint64_t now, order;
    bool gone[T_DEVICES];
    struct t_task task[T_TASKS];
    struct t_worker worker[T_RUNS];
    struct t_fact fact[T_FACTS];
    uint32_t n_facts;
    struct gpi_plan *p;
    uint64_t actions; /* mixed: the same actions have the same sum */
};

void t_world_begin(struct t_world *w, uint64_t seed, bool mixed, bool adopts);
void t_world_end(struct t_world *w);
/* Returns true if the plan has decided. */
bool t_world_step(struct t_world *w);
/* Feeds one fact to a plan.  Returns the run of an ADOPT. */
uint32_t t_fact_feed(struct gpi_plan *p, const struct t_fact *f);
/* Returns a fresh plan that was told the facts; adds up its actions. */
struct gpi_plan *t_world_replay(const struct t_world *w, uint64_t *ret_actions);
/* Invents a task.  Returns false if no device could hold it. */
bool t_world_invent(struct t_world *w, struct gpi_plan_task *ret_what);

#endif
