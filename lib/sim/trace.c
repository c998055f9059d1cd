/* SPDX-License-Identifier: MIT */
/*
 * trace.c - plays a trace.  At each moment: the ends of runs and boots, the facts of the file, a
 * decision.  Then time goes on to the next moment at which anything happens.
 */
#include "sim/trace.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/trace_run.h"

#define WORKERS_PER_DEVICE 64u
#define IDLE_MOMENTS 10000u /* in a row, in which no task begins or ends */

/* ---- life ---- */

static struct gpi_plan_settings settings(const struct gpi_trace *t)
{
    struct gpi_plan_settings s = t->set;

    s.tasks = t->n_tasks + 1;
    s.shapes = t->n_lines + 1;
    s.classes = t->n_classes;
    s.devices = t->n_devices + 1;
    s.runs = t->n_tasks + WORKERS_PER_DEVICE * (t->n_devices + 1);
    s.place_sets = t->n_places;
    return s;
}

static int make(struct gpi_trace_run *r)
{
    const struct gpi_trace *t = r->trace;
    const struct gpi_plan_settings s = settings(t);

    r->plan = gpi_plan_create(&s);
    r->job = calloc(s.tasks, sizeof *r->job);
    r->hopeless = calloc(s.tasks, sizeof *r->hopeless);
    r->hand = calloc(s.runs, sizeof *r->hand);
    r->hired = calloc(s.classes, sizeof *r->hired);
    r->spot = calloc(s.devices, sizeof *r->spot);
    return !r->plan || !r->job || !r->hopeless || !r->hand || !r->hired || !r->spot ||
                   gpi_heap_init(&r->agenda, t->n_tasks + s.runs) < 0
               ? -1
               : 0;
}

static void add_world(struct gpi_trace_run *r)
{
    const struct gpi_trace *t = r->trace;

    for (uint32_t i = 0; i < t->n_classes; i++)
        gpi_plan_class_add(r->plan, i, &t->class[i].set);
    for (uint32_t i = 0; i < t->n_devices; i++) {
        gpi_plan_device_add(r->plan, i, &t->device[i].has);
        r->spot[i].changed = true;
    }
    r->changed = t->n_devices;
    for (uint32_t i = 0; i < t->n_places; i++)
        gpi_plan_places_add(r->plan, i + 1, t->places[i].device, t->places[i].n);
    for (uint32_t i = 0; i < t->n_warm; i++)
        gpi_hand_warm(r, &t->warm[i]);
    gpi_spot_tell(r, true);
}

static void fini(struct gpi_trace_run *r)
{
    gpi_plan_destroy(r->plan);
    gpi_heap_fini(&r->agenda);
    free(r->job);
    free(r->hopeless);
    free(r->hand);
    free(r->hired);
    free(r->spot);
}

/* ---- actions ---- */

static void perform(struct gpi_trace_run *r, const struct gpi_plan_action *a)
{
    switch ((enum gpi_plan_action_kind)a->kind) {
    case GPI_PLAN_RUN:
        gpi_job_begin(r, a);
        break;
    case GPI_PLAN_PROMISE:
        r->renewed += a->how != GPI_PROMISE_FIRST;
        gpi_trace_write_promise(r, a);
        break;
    case GPI_PLAN_BOOT:
        gpi_hand_begin(r, a);
        break;
    case GPI_PLAN_DRAIN:
        gpi_hand_drain(r, a->worker);
        break;
    case GPI_PLAN_UNLOAD:
        gpi_hand_unload(r, a->worker);
        break;
    case GPI_PLAN_REVOKE: /* a trace has no stream tasks */
        break;
    case GPI_PLAN_HOPELESS:
        assert(r->n_hopeless < r->trace->n_tasks);
        r->hopeless[r->n_hopeless++] = a->task;
        break;
    }
}

void gpi_trace_act(struct gpi_trace_run *r)
{
    struct gpi_plan_action a;
    uint32_t given_up = 0;

    for (;;) {
        while (gpi_plan_next(r->plan, &a))
            perform(r, &a);
        if (given_up == r->n_hopeless)
            break;
        gpi_job_give_up(r, r->hopeless[given_up++]); /* feeds the plan, which takes one at a time */
    }
    r->n_hopeless = 0;
}

/* ---- time ---- */

static void apply(struct gpi_trace_run *r, const struct gpi_trace_fact *f)
{
    if (r->options.line)
        *r->options.line = f->line;
    switch (f->kind) {
    case GPI_TRACE_TASK:
        gpi_job_submit(r, f->number, f->detail);
        break;
    case GPI_TRACE_CANCEL:
        gpi_job_cancel(r, f->number);
        break;
    case GPI_TRACE_DEVICE:
        gpi_spot_set(r, f->number, (enum gpi_plan_may)f->detail);
        break;
    case GPI_TRACE_FOREIGN:
        gpi_plan_foreign(r->plan, r->now, f->number, f->bytes, f->load);
        break;
    case GPI_TRACE_CLASS:
        gpi_plan_class_set(r->plan, r->now, f->number, (enum gpi_plan_class_what)f->detail);
        break;
    }
    gpi_trace_act(r);
}

static void play_agenda(struct gpi_trace_run *r)
{
    while (gpi_heap_top_key(&r->agenda) <= r->now) {
        const uint32_t item = gpi_heap_top_item(&r->agenda);

        gpi_heap_remove(&r->agenda, item);
        if (item < r->trace->n_tasks)
            gpi_job_due(r, item);
        else
            gpi_hand_due(r, item - r->trace->n_tasks);
    }
}

static void decide(struct gpi_trace_run *r)
{
    const uint64_t begun = r->options.time ? gpi_now() : 0;

    gpi_plan_decide(r->plan, r->now);
    r->ns += r->options.time ? gpi_now() - begun : 0;
    gpi_trace_act(r);
}

static uint64_t next_time(const struct gpi_trace_run *r)
{
    const struct gpi_trace *t = r->trace;
    const uint64_t fact = r->next < t->n_facts ? t->fact[r->next].at : GPI_NEVER;

    return gpi_time_min(fact, gpi_time_min(gpi_heap_top_key(&r->agenda), gpi_plan_due(r->plan)));
}

/* Notes the reasons of the tasks of these facts that wait. */
static void explain(struct gpi_trace_run *r, uint32_t from)
{
    for (uint32_t i = from; i < r->next; i++) {
        const struct gpi_trace_fact *f = &r->trace->fact[i];

        if (f->kind == GPI_TRACE_TASK && r->job[f->number].state == GPI_JOB_WAITS)
            gpi_job_explain(r, f->number);
    }
}

/* All that happens at one time. */
static void play_moment(struct gpi_trace_run *r, uint64_t at)
{
    const struct gpi_trace *t = r->trace;
    const uint32_t from = r->next;

    r->now = at;
    play_agenda(r);
    while (r->next < t->n_facts && t->fact[r->next].at == at)
        apply(r, &t->fact[r->next++]);
    decide(r);
    explain(r, from);
    gpi_spot_tell(r, false);
}

static int fail_at(const struct gpi_trace_run *r, const char *what)
{
    (void)fprintf(stderr, "%s: at %.9g s the plan %s\n", r->trace->path,
                  (double)r->now / (double)GPI_S, what);
    return -1;
}

/* Everything is examined at the start.  Returns: 0 when nothing is left to happen; -1 if the
 * plan wants a time that has passed, or only workers come and go. */
static int play(struct gpi_trace_run *r)
{
    uint32_t idle = 0; /* moments */

    for (uint64_t at = 0; at != GPI_NEVER; at = next_time(r)) {
        const uint64_t before = r->moves + r->next;

        play_moment(r, at);
        idle = r->moves + r->next == before ? idle + 1 : 0;
        if (gpi_plan_due(r->plan) <= at)
            return fail_at(r, "wants a time that has passed");
        if (idle > IDLE_MOMENTS)
            return fail_at(r, "boots and unloads workers without end");
    }
    return 0;
}

static void write_waiting(struct gpi_trace_run *r)
{
    for (uint32_t i = 0; i < r->trace->n_tasks; i++)
        if (r->job[i].state == GPI_JOB_WAITS) {
            gpi_job_explain(r, i);
            gpi_trace_write_task(r, i);
        }
}

int gpi_trace_play(const char *path, const struct gpi_trace_options *options)
{
    struct gpi_trace t;
    struct gpi_trace_run r = { .options = *options, .trace = &t };
    int failed;

    if (gpi_trace_read(&t, path) < 0)
        return -1;
    failed = make(&r);
    if (failed)
        (void)fprintf(stderr, "%s: there is no memory left\n", path);
    else
        add_world(&r);
    failed = failed ? failed : play(&r);
    if (!failed) {
        write_waiting(&r);
        gpi_trace_write_summary(&r);
    }
    fini(&r);
    gpi_trace_free(&t);
    return failed;
}
