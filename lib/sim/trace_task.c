/* SPDX-License-Identifier: MIT */
/* trace_task.c - the tasks of a trace: they wait, run, and end as the trace has it. */
#include "sim/trace_run.h"

/* ---- the queue ---- */

static bool could(const struct gpi_trace_run *r, const struct gpi_trace_line *l)
{
    bool some = false;

    for (uint32_t i = 0; i < l->n_requests; i++)
        some |= gpi_plan_could(r->plan, &l->request[i]);
    return some;
}

static struct gpi_plan_task what_of(const struct gpi_trace_run *r, uint32_t task)
{
    const struct gpi_trace_line *l = gpi_line_of(r, task);

    return (struct gpi_plan_task){ .class = l->class,
                                   .priority = l->priority,
                                   .order = r->job[task].order,
                                   .limit = l->limit,
                                   .request = l->request,
                                   .n_requests = l->n_requests };
}

static void queue(struct gpi_trace_run *r, uint32_t task)
{
    struct gpi_job *j = &r->job[task];
    const struct gpi_plan_task what = what_of(r, task);

    j->state = GPI_JOB_WAITS;
    j->outcome = GPI_TRACE_END_waiting;
    (void)gpi_plan_submit(r->plan, r->now, task, &what); /* each line has its shape */
    gpi_trace_act(r);
}

void gpi_job_explain(struct gpi_trace_run *r, uint32_t task)
{
    struct gpi_job *j = &r->job[task];
    const struct gpi_plan_task what = what_of(r, task);

    j->waited = gpi_plan_explain(r->plan, 0, task, j->state == GPI_JOB_WAITS ? NULL : &what,
                                 &j->waited_for, 1) > 0;
}

static void finish(struct gpi_trace_run *r, uint32_t task, enum gpi_trace_outcome outcome)
{
    struct gpi_job *j = &r->job[task];

    r->moves++;
    j->state = GPI_JOB_DONE;
    j->outcome = outcome;
    j->ended = r->now;
    r->makespan = r->now;
    gpi_trace_write_task(r, task);
}

void gpi_job_submit(struct gpi_trace_run *r, uint32_t task, uint32_t line)
{
    struct gpi_job *j = &r->job[task];

    *j = (struct gpi_job){ .line = line,
                           .order = ++r->order,
                           .queued = r->now,
                           .first = GPI_NEVER,
                           .begun = GPI_NEVER,
                           .worker = GPI_NOWHERE };
    if (!could(r, gpi_line_of(r, task))) {
        gpi_job_explain(r, task);
        finish(r, task, GPI_TRACE_END_refused);
    } else if (r->hired[gpi_line_of(r, task)->class].failed) {
        finish(r, task, GPI_TRACE_END_no_worker);
    } else {
        queue(r, task);
    }
}

static void withdraw(struct gpi_trace_run *r, uint32_t task, enum gpi_trace_outcome outcome)
{
    if (r->job[task].state != GPI_JOB_WAITS)
        return;
    finish(r, task, outcome);
    gpi_plan_withdraw(r->plan, r->now, task);
}

void gpi_job_give_up(struct gpi_trace_run *r, uint32_t task)
{
    withdraw(r, task, GPI_TRACE_END_no_worker);
}

/* ---- a run ---- */

void gpi_job_begin(struct gpi_trace_run *r, const struct gpi_plan_action *a)
{
    struct gpi_job *j = &r->job[a->task];
    const struct gpi_trace_line *l = gpi_line_of(r, a->task);

    r->moves++;
    j->state = GPI_JOB_RUNS;
    j->attempt++;
    j->begun = r->now;
    j->first = j->first == GPI_NEVER ? r->now : j->first;
    j->worker = a->worker;
    j->n_devices = a->n_devices;
    for (uint32_t i = 0; i < a->n_devices; i++) {
        j->device[i] = a->device[i];
        gpi_spot_run(r, a->device[i], true);
    }
    gpi_heap_set(&r->agenda, a->task, r->now + gpi_time_min(l->run, l->limit));
}

/* The run is over.  `outcome` waiting: another attempt follows. */
static void end(struct gpi_trace_run *r, uint32_t task, enum gpi_trace_outcome outcome)
{
    struct gpi_job *j = &r->job[task];
    const uint64_t keep_alive = gpi_line_of(r, task)->keep_alive;

    gpi_heap_remove(&r->agenda, task);
    for (uint32_t i = 0; i < j->n_devices; i++)
        gpi_spot_run(r, j->device[i], false);
    if (outcome != GPI_TRACE_END_waiting)
        finish(r, task, outcome);
    gpi_plan_end(r->plan, r->now, task, outcome == GPI_TRACE_END_success, 0, keep_alive);
    gpi_trace_act(r);
    if (outcome != GPI_TRACE_END_waiting)
        return;
    j->begun = GPI_NEVER;
    j->n_devices = 0;
    queue(r, task);
}

/* The task is charged, and may have attempts left. */
void gpi_job_crash(struct gpi_trace_run *r, uint32_t task)
{
    const bool again = r->job[task].attempt < gpi_line_of(r, task)->max_attempts &&
                       !r->hired[gpi_line_of(r, task)->class].failed;

    end(r, task, again ? GPI_TRACE_END_waiting : GPI_TRACE_END_crashed);
}

void gpi_job_due(struct gpi_trace_run *r, uint32_t task)
{
    const struct gpi_trace_line *l = gpi_line_of(r, task);
    const uint32_t worker = r->job[task].worker;

    if (l->run > l->limit) {
        end(r, task, GPI_TRACE_END_timeout);
    } else if (l->fail == GPI_TRACE_CRASH) {
        gpi_job_crash(r, task);
        if (worker != GPI_NOWHERE)
            gpi_hand_lose(r, worker);
    } else {
        end(r, task, l->fail ? GPI_TRACE_END_error : GPI_TRACE_END_success);
    }
}

void gpi_job_cancel(struct gpi_trace_run *r, uint32_t task)
{
    if (r->job[task].state == GPI_JOB_RUNS)
        end(r, task, GPI_TRACE_END_cancelled);
    else
        withdraw(r, task, GPI_TRACE_END_cancelled);
}
