/* SPDX-License-Identifier: MIT */
/*
 * promise.c - what a new head's promise takes.
 *
 * All devices are busy, and tasks for one device wait.  A task of a higher priority for 8 devices
 * comes: the decision examines it, it does not fit, and it gets a promise.  Then it is withdrawn, a
 * run ends and another begins, so that no two promises count the same.
 */
#include <stdlib.h>

#include "../measure.h"
#include "base/clock.h"
#include "base/heap.h"
#include "rows.h"
#include "samples.h"
#include "sched/plan.h"
#include "sim/random.h"

#define DEVICES 1000u
#define WIDE 8u
#define GIB (1ull << 30)

struct scene {
    struct gpi_plan *p;
    struct gpi_heap ends;
    struct gpi_random rng;
    uint32_t tasks; /* the next one is the wide one */
    uint64_t now, order;
    uint64_t *run;
    uint32_t promises; /* of the last decision */
};

static const struct gpi_request narrow = { .devices = 1,
                                           .share = GPI_SHARE_ALL,
                                           .memory = 8 * GIB },
                                wide = { .devices = WIDE,
                                         .share = GPI_SHARE_ALL,
                                         .memory = 8 * GIB };

static int open_scene(struct scene *s, enum gpi_passing passing, uint32_t promises)
{
    const struct gpi_plan_class class = { .grace = 2 * GPI_S };
    struct gpi_plan_settings settings = { .shapes = 2,
                                          .classes = 2,
                                          .devices = DEVICES,
                                          .runs = DEVICES + 1, /* no promise without one */
                                          .passing = passing,
                                          .headroom = 1000 };

    *s = (struct scene){ .rng = { 11 }, .tasks = DEVICES + promises };
    settings.tasks = s->tasks + 1;
    s->p = gpi_plan_create(&settings);
    s->run = malloc(sizeof *s->run * s->tasks);
    if (!s->p || !s->run || gpi_heap_init(&s->ends, s->tasks))
        return b_complain("no memory for %u tasks", s->tasks);
    for (uint32_t i = 0; i < 2; i++)
        gpi_plan_class_add(s->p, i, &class);
    for (uint32_t i = 0; i < DEVICES; i++) {
        const struct gpi_plan_has has = { .memory = (i % 4 ? 80 : 40) * GIB, .compute = 900 };
        gpi_plan_device_add(s->p, i, &has);
    }
    return 0;
}

static void close_scene(struct scene *s)
{
    gpi_plan_destroy(s->p);
    gpi_heap_fini(&s->ends);
    free(s->run);
}

static void submit(struct scene *s, uint32_t task, bool is_wide, uint64_t run)
{
    const struct gpi_plan_task what = { .class = is_wide,
                                        .priority = is_wide,
                                        .order = ++s->order,
                                        .limit = run + run / 2,
                                        .request = is_wide ? &wide : &narrow,
                                        .n_requests = 1 };

    if (!gpi_plan_submit(s->p, s->now, task, &what))
        abort(); /* there are two shapes */
}

/* Returns the ns that the decision took. */
static uint64_t decide(struct scene *s)
{
    const uint64_t begun = b_now();
    struct gpi_plan_action action;

    s->promises = 0;
    gpi_plan_decide(s->p, s->now);
    while (gpi_plan_next(s->p, &action)) {
        s->promises += action.kind == GPI_PLAN_PROMISE && action.task == s->tasks;
        if (action.kind == GPI_PLAN_RUN)
            gpi_heap_set(&s->ends, action.task, s->now + s->run[action.task]);
    }
    return b_now() - begun;
}

static void go_on(struct scene *s)
{
    const uint32_t task = gpi_heap_top_item(&s->ends);

    s->now = gpi_heap_top_key(&s->ends);
    gpi_heap_remove(&s->ends, task);
    gpi_plan_end(s->p, s->now, task, true, 0, 0);
    (void)decide(s);
}

static int take(struct scene *s, double clock, struct b_samples *samples)
{
    for (uint32_t i = 0; i < s->tasks; i++) {
        s->run[i] = gpi_random_scale(&s->rng, GPI_S, 100 * GPI_S);
        submit(s, i, false, s->run[i]);
    }
    (void)decide(s);
    for (size_t i = 0; i < samples->room; i++) {
        go_on(s);
        submit(s, s->tasks, true, 60 * GPI_S);
        b_samples_add(samples, (double)decide(s), clock);
        if (s->promises != 1)
            return b_complain("a head got %u promises", s->promises);
        gpi_plan_withdraw(s->p, s->now, s->tasks);
        (void)decide(s);
    }
    return 0;
}

int b_sched_promises(const struct b_sched_set *set, double *figures)
{
    const uint32_t n = (uint32_t)b_effort(20000, 1000);
    struct b_samples samples;
    struct scene s = { .p = NULL };
    int rc = b_samples_init(&samples, n);

    rc |= open_scene(&s, set->passing, n);
    if (rc == 0)
        rc = take(&s, figures[B_SCHED_clock_ns], &samples);
    if (rc == 0) {
        figures[B_SCHED_promise_ns] = b_samples_mean(&samples);
        figures[B_SCHED_p50_promise_ns] = b_percentile(samples.ns, samples.n, 0.5);
        figures[B_SCHED_p99_promise_ns] = b_percentile(samples.ns, samples.n, 0.99);
        figures[B_SCHED_interrupted] += (double)samples.interrupted;
    }
    close_scene(&s);
    b_samples_fini(&samples);
    return rc;
}
