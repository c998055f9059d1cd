/* SPDX-License-Identifier: MIT */
/*
 * day.c - a workload in virtual time.
 *
 * What happens at one time is reported first: runs and workers, then arrivals.  Then the plan
 * decides. Jobs and workers share an agenda: item i is job i, and workers come behind the jobs.
 */
#include "day.h"

#include <math.h>
#include <stdlib.h>

#include "../measure.h"
#include "../report.h"
#include "base/clock.h"
#include "base/heap.h"
#include "ledger.h"
#include "sim/random.h"

#define RUNS (B_DEVICES * B_RUNS_OF_DEVICE)
#define GRACE (2 * GPI_S)
#define UNLOAD (5 * GPI_S)
#define MOST_TURNS 1000u

struct hand { /* a worker */
    uint32_t model;
    uint16_t device;
    bool boots, leaves;
};

struct fate {                       /* of a job */
    uint64_t begun, promise, apart; /* GPI_NEVER: not yet */
    uint32_t worker, n_devices;
    uint16_t device[B_DEVICES];
};

struct world {
    const struct b_workload *w;
    const struct b_job *job;
    uint32_t n, arrived;
    struct gpi_plan *p;
    struct gpi_heap agenda;
    struct gpi_random rng;
    struct b_ledger ledger;
    struct fate *fate;
    uint64_t *ends;
    struct hand hand[RUNS];
    uint64_t now;
    uint32_t turns; /* at this time */
    struct b_day *day;
    bool fails;
};

/* ---- the world ---- */

static void add_classes(struct world *x)
{
    for (uint32_t i = 0; i < x->w->n_types; i++) {
        struct gpi_plan_class class = { .residence = GPI_EXTERNAL, .grace = GRACE };
        if (i < x->w->n_models)
            class = (struct gpi_plan_class){ .residence = GPI_RESIDENT,
                                             .grace = GRACE,
                                             .need = { x->w->model[i].need },
                                             .n_needs = 1,
                                             .max_workers = x->w->model[i].max_workers,
                                             .min_residence = 30 * GPI_S,
                                             .max_wait = 300 * GPI_S,
                                             .keep_alive = GPI_NEVER,
                                             .boot = x->w->model[i].boot,
                                             .unload = UNLOAD,
                                             .run = 10 * GPI_S };
        gpi_plan_class_add(x->p, i, &class);
    }
}

static void add_warm(struct world *x)
{
    for (uint32_t i = 0; i < x->w->n_models; i++)
        for (uint32_t k = 0; k < x->w->model[i].n_warm; k++) {
            const uint16_t device = x->w->model[i].warm[k];
            const uint32_t worker = gpi_plan_warm(x->p, i, &device, 1);
            x->hand[worker] = (struct hand){ .model = i, .device = device };
            b_ledger_worker(&x->ledger, i, device, true);
            b_ledger_warm(&x->ledger, i, device, true);
            b_ledger_idle(&x->ledger, i, device, true);
        }
}

static int begin_world(struct world *x, const struct b_way *way)
{
    const struct gpi_plan_settings settings = { .tasks = x->n,
                                                .shapes = B_TYPES,
                                                .classes = B_TYPES,
                                                .devices = B_DEVICES,
                                                .runs = RUNS,
                                                .mode = way->mode,
                                                .passing = way->passing,
                                                .headroom = B_HEADROOM };

    x->p = gpi_plan_create(&settings);
    x->fate = malloc(sizeof *x->fate * x->n);
    x->ends = malloc(sizeof *x->ends * x->n);
    if (!x->p || !x->fate || !x->ends || gpi_heap_init(&x->agenda, x->n + RUNS) ||
        b_ledger_init(&x->ledger, x->w, x->job, x->n))
        return b_complain("no memory for %u jobs", x->n);
    for (uint32_t i = 0; i < x->n; i++)
        x->fate[i] = (struct fate){ .begun = GPI_NEVER, .promise = GPI_NEVER, .apart = GPI_NEVER };
    add_classes(x);
    for (uint32_t d = 0; d < B_DEVICES; d++)
        gpi_plan_device_add(x->p, d, &(struct gpi_plan_has){ x->w->memory[d], 900 });
    add_warm(x);
    return 0;
}

static void end_world(struct world *x)
{
    gpi_plan_destroy(x->p);
    gpi_heap_fini(&x->agenda);
    b_ledger_fini(&x->ledger);
    free(x->fate);
    free(x->ends);
}

/* ---- actions ---- */

static void put(struct b_waits *waits, double s)
{
    waits->s[waits->n++] = s;
}

static double seconds(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) / 1e9 : 0;
}

static void on_run(struct world *x, const struct gpi_plan_action *a)
{
    const struct b_job *j = &x->job[a->task];
    struct fate *f = &x->fate[a->task];

    f->begun = x->now;
    f->worker = a->worker;
    f->n_devices = a->n_devices;
    for (uint32_t i = 0; i < a->n_devices; i++)
        f->device[i] = a->device[i];
    if (a->worker != GPI_NOWHERE)
        b_ledger_idle(&x->ledger, x->hand[a->worker].model, a->device[0], false);
    if (!b_ledger_begin(&x->ledger, a->task, f->device, f->n_devices))
        x->fails = true;
    x->ends[a->task] = x->now + j->run;
    gpi_heap_set(&x->agenda, a->task, x->ends[a->task]);
    put(x->w->type[j->type].wide ? &x->day->wide : &x->day->narrow, seconds(j->at, x->now));
    x->day->late += f->promise != GPI_NEVER && x->now > f->promise;
    if (f->apart != GPI_NEVER)
        put(&x->day->delay, seconds(f->apart, x->now));
}

/* A renewed promise: what the head would have had is not comparable any more. */
static void on_promise(struct world *x, const struct gpi_plan_action *a)
{
    struct fate *f = &x->fate[a->task];

    x->day->promises++;
    x->day->renewed += a->how != GPI_PROMISE_FIRST;
    f->promise = a->at;
    f->apart = a->how == GPI_PROMISE_FIRST ? b_ledger_apart(&x->ledger, a->task, x->ends, x->now)
                                           : GPI_NEVER;
}

static void on_boot(struct world *x, const struct gpi_plan_action *a)
{
    const uint64_t boot = x->w->model[a->class].boot;

    x->day->boots++;
    x->hand[a->worker] = (struct hand){ .model = a->class, .device = a->device[0], .boots = true };
    b_ledger_worker(&x->ledger, a->class, a->device[0], true);
    gpi_heap_set(&x->agenda, x->n + a->worker,
                 x->now + boot * gpi_random_from(&x->rng, 80, 120) / 100);
}

static void on_unload(struct world *x, const struct gpi_plan_action *a)
{
    struct hand *h = &x->hand[a->worker];

    x->day->unloads++;
    if (!h->boots) {
        b_ledger_warm(&x->ledger, h->model, h->device, false);
        b_ledger_idle(&x->ledger, h->model, h->device, false);
    }
    h->leaves = true;
    gpi_heap_set(&x->agenda, x->n + a->worker, x->now + UNLOAD);
}

static void act(struct world *x)
{
    struct gpi_plan_action a;

    while (gpi_plan_next(x->p, &a))
        switch (a.kind) {
        case GPI_PLAN_RUN:
            on_run(x, &a);
            break;
        case GPI_PLAN_PROMISE:
            on_promise(x, &a);
            break;
        case GPI_PLAN_BOOT:
            on_boot(x, &a);
            break;
        case GPI_PLAN_UNLOAD:
            on_unload(x, &a);
            break;
        case GPI_PLAN_DRAIN: /* an UNLOAD follows its task */
            break;
        default:
            x->fails = true;
        }
}

/* ---- facts ---- */

static void end_job(struct world *x, uint32_t i)
{
    const struct fate *f = &x->fate[i];

    b_ledger_end(&x->ledger, i, f->device, f->n_devices);
    if (f->worker != GPI_NOWHERE)
        b_ledger_idle(&x->ledger, x->hand[f->worker].model, f->device[0], true);
    gpi_plan_end(x->p, x->now, i, true, 0, 0);
    act(x);
}

static void on_worker(struct world *x, uint32_t i)
{
    struct hand *h = &x->hand[i];

    if (h->leaves) {
        b_ledger_worker(&x->ledger, h->model, h->device, false);
        gpi_plan_gone(x->p, x->now, i, x->now);
    } else {
        h->boots = false;
        b_ledger_warm(&x->ledger, h->model, h->device, true);
        b_ledger_idle(&x->ledger, h->model, h->device, true);
        gpi_plan_up(x->p, x->now, i);
    }
    act(x);
}

static void arrive(struct world *x, uint32_t i)
{
    const struct b_job *j = &x->job[i];
    const struct b_type *t = &x->w->type[j->type];
    const struct gpi_plan_task task = { .class = t->class,
                                        .order = i + 1,
                                        .limit = j->limit,
                                        .request = &t->request,
                                        .n_requests = 1 };

    b_ledger_wait(&x->ledger, i);
    if (!gpi_plan_submit(x->p, x->now, i, &task))
        x->fails = true;
    act(x);
}

/* Returns when something happens; GPI_NEVER: all is over. */
static uint64_t next_time(const struct world *x)
{
    uint64_t at = gpi_time_min(gpi_heap_top_key(&x->agenda), gpi_plan_due(x->p));

    return x->arrived < x->n ? gpi_time_min(at, x->job[x->arrived].at) : at;
}

static void pass_time(struct world *x, uint64_t to)
{
    const uint64_t last = x->job[x->n - 1].at;

    if (x->now < last)
        b_ledger_pass(&x->ledger, seconds(x->now, gpi_time_min(to, last)));
    x->turns = to > x->now ? 0 : x->turns + 1;
    x->now = to > x->now ? to : x->now;
    if (x->turns > MOST_TURNS)
        x->fails = true; /* the plan wants to decide now, for ever */
}

static void turn(struct world *x)
{
    while (gpi_heap_top_key(&x->agenda) <= x->now) {
        const uint32_t item = gpi_heap_top_item(&x->agenda);
        gpi_heap_remove(&x->agenda, item);
        if (item < x->n)
            end_job(x, item);
        else
            on_worker(x, item - x->n);
    }
    while (x->arrived < x->n && x->job[x->arrived].at <= x->now)
        arrive(x, x->arrived++);
    gpi_plan_decide(x->p, x->now);
    act(x);
}

/* ---- the day ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void finish(struct world *x)
{
    struct b_day *day = x->day;

    day->seconds = (double)x->job[x->n - 1].at / 1e9;
    day->busy = x->ledger.busy;
    day->held = x->ledger.held;
    day->missed = x->ledger.missed;
    day->passed = gpi_plan_stats(x->p)->passed;
    qsort(day->narrow.s, day->narrow.n, sizeof *day->narrow.s, compare);
    qsort(day->wide.s, day->wide.n, sizeof *day->wide.s, compare);
    qsort(day->delay.s, day->delay.n, sizeof *day->delay.s, compare);
}

int b_day_run(struct b_day *ret, const struct b_workload *w, const struct b_job *job, uint32_t n,
              const struct b_way *way)
{
    struct world x = { .w = w, .job = job, .n = n, .rng = { 3 }, .day = ret };
    int rc;

    *ret = (struct b_day){ 0 };
    ret->narrow.s = malloc(sizeof(double) * n);
    ret->wide.s = malloc(sizeof(double) * n);
    ret->delay.s = malloc(sizeof(double) * n);
    rc = begin_world(&x, way);
    if (!ret->narrow.s || !ret->wide.s || !ret->delay.s)
        rc = b_complain("no memory for the waits of %u jobs", n);
    if (rc == 0) {
        for (uint64_t at; (at = next_time(&x)) != GPI_NEVER && !x.fails;) {
            pass_time(&x, at);
            turn(&x);
        }
        finish(&x);
        if (x.fails || ret->narrow.n + ret->wide.n != n)
            rc = b_complain("%s, %s: %zu of %u jobs began", w->name, way->name,
                            ret->narrow.n + ret->wide.n, n);
    }
    end_world(&x);
    return rc;
}

void b_day_free(struct b_day *day)
{
    free(day->narrow.s);
    free(day->wide.s);
    free(day->delay.s);
}

double b_waits_percentile(const struct b_waits *waits, double p)
{
    size_t rank = (size_t)ceil(p * (double)waits->n);

    if (waits->n == 0)
        return NAN;
    rank = rank > 0 ? rank - 1 : 0;
    return waits->s[rank < waits->n ? rank : waits->n - 1];
}
