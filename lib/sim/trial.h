/* SPDX-License-Identifier: MIT */
/*
 * trial.h - a plan and the slow model under the same facts.
 *
 * The trial is a caller of the plan as its header wants one: it knows which tasks and workers there
 * are, refuses a fact that no caller may feed, and takes all actions behind each fact.  The slow
 * model judges every action and decision.  After its first objection a trial takes no fact.
 *
 * A trial decides nothing itself: facts come from a world (plan_world.h), a script (plan_script.h)
 * or a fuzzer.
 */
#ifndef GPI_SIM_TRIAL_H
#define GPI_SIM_TRIAL_H

#include "log/fact.h"

enum gpi_trial_state { GPI_TRIAL_NONE, GPI_TRIAL_WAITS, GPI_TRIAL_RUNS };
struct gpi_trial_task {
    uint32_t state, class, worker;
    uint32_t run; /* of a task that runs without a worker */
    uint64_t order, limit, end_by; /* end_by: when it is killed, if it runs */
    bool hopeless;                 /* the caller withdraws it */
    bool granted, revoked;         /* its run */
    uint32_t n_devices;
    uint16_t device[16];
};

enum gpi_trial_life {
    GPI_TRIAL_OFF,
    GPI_TRIAL_BOOTS,
    GPI_TRIAL_UP,
    GPI_TRIAL_DRAINS,
    GPI_TRIAL_UNLOADS
};
struct gpi_trial_worker {
    uint32_t life, class, task; /* task: GPI_NOWHERE if it has none */
    bool leaves;                /* without an order */
    struct gpi_request need;
    uint32_t n_devices;
    uint16_t device[16];
};

struct gpi_trial_device {
    struct gpi_plan_has has;
    uint32_t may; /* enum gpi_plan_may */
    bool warm;    /* a worker was up there before the plan began */
};

#define GPI_TRIAL_ACTIONS (GPI_PLAN_REVOKE + 1u)

struct gpi_trial {
    /* Set by the caller. */
    bool alone;                                                  /* without the slow model */
    void (*action)(const struct gpi_plan_action *a, void *user); /* behind the books; or NULL */
    void *user;
    const uint64_t *allocations; /* the calls of malloc and its kin so far; or NULL */
    /* Set by the trial. */
    struct gpi_plan *plan; /* NULL before the fact PLAN */
    struct gpi_slow *slow;
    struct gpi_plan_settings set;
    uint64_t now;
    bool begun; /* it was fed a fact that has a time */
    struct gpi_trial_task *task;
    struct gpi_trial_worker *worker;
    struct gpi_trial_device *device;
    struct gpi_fact *class; /* the fact of each class; of kind PLAN if there is none */
    uint32_t n_devices;
    uint64_t facts, actions[GPI_TRIAL_ACTIONS]; /* of each kind */
    uint64_t sum; /* of all actions: equal actions, equal sums               [S6] */
    uint64_t allocations_of_steps;
    const char *broken; /* the id and text of the first objection */
    uint32_t culprit;   /* its task, or GPI_NOWHERE */
};

/* Returns NULL, or the reason why no caller may feed this fact now. */
const char *gpi_trial_refuses(const struct gpi_trial *t, const struct gpi_fact *f);
/* Returns true if a worker with this need may be on the empty device from the beginning. */
bool gpi_trial_could_warm(const struct gpi_trial *t, uint32_t device, const struct gpi_request *r);
/* Feeds a fact that is not refused. */
void gpi_trial_feed(struct gpi_trial *t, const struct gpi_fact *f);
void gpi_trial_fini(struct gpi_trial *t);

#endif
