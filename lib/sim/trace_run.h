/* SPDX-License-Identifier: MIT */
/*
 * trace_run.h - a trace that is played: the plan, and the world that the plan is for.  Private to
 * the run.
 *
 * The world follows the orders of the plan: tasks run for as long as the trace has it, workers boot
 * and unload.  The agenda has the time at which each of these ends: items are tasks, then workers.
 */
#ifndef GPI_SIM_TRACE_RUN_H
#define GPI_SIM_TRACE_RUN_H

#include "base/clock.h"
#include "base/heap.h"
#include "sched/plan.h"
#include "sim/trace.h"
#include "sim/trace_parts.h"

#define GPI_OUTCOME_MAP(X) \
    X(success) X(error) X(crashed) X(timeout) X(cancelled) X(no_worker) X(refused) X(waiting)
#define GPI_X_OUTCOME(name) GPI_TRACE_END_##name,
enum gpi_trace_outcome { GPI_OUTCOME_MAP(GPI_X_OUTCOME) GPI_TRACE_OUTCOMES };
#undef GPI_X_OUTCOME

enum gpi_job_state { GPI_JOB_FUTURE, GPI_JOB_WAITS, GPI_JOB_RUNS, GPI_JOB_DONE };

/* trace_task.c */
struct gpi_job {
    uint32_t line;
    enum gpi_job_state state;
    enum gpi_trace_outcome outcome; /* DONE */
    uint32_t attempt, worker;
    bool waited;
    struct gpi_plan_reason waited_for;    /* the first reason, when it was submitted */
    uint64_t order;                       /* its age: the number of its submit */
    uint64_t queued, first, begun, ended; /* first: the start of the first attempt */
    uint32_t n_devices;
    uint16_t device[GPI_TRACE_WIDTH];
};

enum gpi_hand_state {
    GPI_HAND_NONE,
    GPI_HAND_BOOTS,
    GPI_HAND_UP,
    GPI_HAND_DRAINS,
    GPI_HAND_UNLOADS,
    GPI_HAND_STATES
};

/* trace_worker.c: a worker */
struct gpi_hand {
    enum gpi_hand_state state;
    uint32_t class, n_devices;
    uint16_t device[GPI_TRACE_WIDTH];
};

/* trace_worker.c */
struct gpi_hired {     /* a class */
    uint32_t boots;    /* that have ended */
    uint32_t failures; /* of these, the last ones in a row */
    bool failed;       /* for good */
};

/* trace_device.c */
struct gpi_spot { /* a device */
    enum gpi_plan_may may;
    uint32_t runs, hands[GPI_HAND_STATES]; /* workers in each state */
    uint64_t busy, busy_since;
    bool changed;
    const char *told; /* its state in the last line */
    uint32_t told_class;
};

struct gpi_trace_run {
    struct gpi_trace_options options;
    const struct gpi_trace *trace;
    struct gpi_plan *plan;
    uint64_t now;
    uint32_t next; /* the next fact */
    uint64_t order, ns;
    uint64_t moves; /* tasks that began or ended */
    struct gpi_job *job;
    struct gpi_hand *hand;
    uint32_t n_hands; /* those beyond have never been used */
    struct gpi_hired *hired;
    struct gpi_spot *spot;
    uint32_t *hopeless, n_hopeless; /* tasks that the plan has given up */
    struct gpi_heap agenda;
    uint64_t makespan, renewed;
    uint32_t changed; /* devices */
};

static inline const struct gpi_trace_line *gpi_line_of(const struct gpi_trace_run *r, uint32_t task)
{
    return &r->trace->line[r->job[task].line];
}

static inline const struct gpi_trace_class *gpi_class_of(const struct gpi_trace_run *r,
                                                         uint32_t task)
{
    return &r->trace->class[gpi_line_of(r, task)->class];
}

static inline uint32_t gpi_hand_item(const struct gpi_trace_run *r, uint32_t worker)
{
    return r->trace->n_tasks + worker;
}

/* ---- trace.c ---- */

/* Performs the actions of the plan.  Each call that feeds the plan is followed by this one. */
void gpi_trace_act(struct gpi_trace_run *r);

/* ---- trace_task.c ---- */

void gpi_job_submit(struct gpi_trace_run *r, uint32_t task, uint32_t line);
void gpi_job_cancel(struct gpi_trace_run *r, uint32_t task);
void gpi_job_begin(struct gpi_trace_run *r, const struct gpi_plan_action *a);
/* The task ends in the way that the trace has for it. */
void gpi_job_due(struct gpi_trace_run *r, uint32_t task);
/* Its worker or device is lost. */
void gpi_job_crash(struct gpi_trace_run *r, uint32_t task);
/* Notes why the task does not start, or would not.  A decision has run since the last fact. */
void gpi_job_explain(struct gpi_trace_run *r, uint32_t task);
/* It never begins.  The caller performs the actions that follow. */
void gpi_job_give_up(struct gpi_trace_run *r, uint32_t task);

/* ---- trace_worker.c ---- */

void gpi_hand_begin(struct gpi_trace_run *r, const struct gpi_plan_action *a);
void gpi_hand_warm(struct gpi_trace_run *r, const struct gpi_trace_warm *w);
void gpi_hand_drain(struct gpi_trace_run *r, uint32_t worker);
void gpi_hand_unload(struct gpi_trace_run *r, uint32_t worker);
void gpi_hand_due(struct gpi_trace_run *r, uint32_t worker);
/* The worker is dead, and has no task any more. */
void gpi_hand_lose(struct gpi_trace_run *r, uint32_t worker);

/* ---- trace_device.c ---- */

void gpi_spot_set(struct gpi_trace_run *r, uint32_t device, enum gpi_plan_may may);
void gpi_spot_run(struct gpi_trace_run *r, uint32_t device, bool begins);
void gpi_spot_hand(struct gpi_trace_run *r, const struct gpi_hand *h, enum gpi_hand_state state);
/* Writes the states that have changed since the last call. */
void gpi_spot_tell(struct gpi_trace_run *r, bool silent);

/* ---- trace_write.c ---- */

void gpi_trace_write_state(const struct gpi_trace_run *r, uint32_t device);
void gpi_trace_write_task(const struct gpi_trace_run *r, uint32_t task);
void gpi_trace_write_promise(const struct gpi_trace_run *r, const struct gpi_plan_action *a);
void gpi_trace_write_summary(const struct gpi_trace_run *r);

#endif
