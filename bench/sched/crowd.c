/* SPDX-License-Identifier: MIT */
/* crowd.c - many tasks that wait for devices. */
#include "crowd.h"

#include <stdlib.h>

#include "../measure.h"
#include "../report.h"
#include "base/clock.h"

#define GIB (1ull << 30)

static struct gpi_request request_of(const struct b_crowd_set *set, uint32_t shape)
{
    static const uint32_t devices[8] = { 1, 1, 1, 1, 1, 2, 4, 8 };
    static const uint32_t share[8] = { 2500, 5000, 7500, 10000, 10000, 10000, 10000, 10000 };

    /* Memory alone makes further shapes. */
    return (struct gpi_request){ .devices = devices[shape % 8],
                                 .share = share[shape % 8],
                                 .memory = set->shapes <= 24 ? GIB * (2 + shape % 18)
                                                             : GIB / 64 * (64 + shape % 1024) };
}

static int make_plan(struct b_crowd *c)
{
    const struct gpi_plan_settings settings = {
        .tasks = c->set.tasks,
        .shapes = c->set.shapes, /* distinct limits make no further ones, or submit would fail */
        .classes = B_CROWD_CLASSES,
        .devices = c->set.devices,
        .runs = 4 * c->set.devices,
        .passing = c->set.passing,
        .headroom = 1000,
        .least_headroom = GIB / 2,
        .foreign_memory = GIB,
    };
    const struct gpi_plan_class class = { .grace = 2 * GPI_S };

    c->p = gpi_plan_create(&settings);
    if (!c->p)
        return -1;
    for (uint32_t i = 0; i < B_CROWD_CLASSES; i++)
        gpi_plan_class_add(c->p, i, &class);
    for (uint32_t i = 0; i < c->set.devices; i++) {
        const struct gpi_plan_has has = { .memory = (i % 4 ? 80 : 40) * GIB, .compute = 900 };
        gpi_plan_device_add(c->p, i, &has);
    }
    return 0;
}

int b_crowd_open(struct b_crowd *c, const struct b_crowd_set *set)
{
    *c = (struct b_crowd){ .set = *set, .rng = { 7 } };
    c->request = malloc(sizeof *c->request * set->shapes);
    c->run = malloc(sizeof *c->run * set->tasks);
    c->started = malloc(sizeof *c->started * 4 * set->devices);
    if (!c->request || !c->run || !c->started || gpi_heap_init(&c->ends, set->tasks) ||
        make_plan(c))
        return b_complain("no memory for %u tasks", set->tasks);
    for (uint32_t i = 0; i < set->shapes; i++)
        c->request[i] = request_of(set, i);
    return 0;
}

void b_crowd_close(struct b_crowd *c)
{
    gpi_plan_destroy(c->p);
    gpi_heap_fini(&c->ends);
    free(c->request);
    free(c->run);
    free(c->started);
}

double b_crowd_submit(struct b_crowd *c)
{
    const uint64_t begun = b_now();

    for (uint32_t i = 0; i < c->set.tasks; i++) {
        const uint32_t shape = (uint32_t)gpi_random_below(&c->rng, c->set.shapes);
        struct gpi_plan_task task = { .class = shape % B_CROWD_CLASSES,
                                      .order = ++c->order,
                                      .request = &c->request[shape],
                                      .n_requests = 1 };
        c->run[i] = gpi_random_scale(&c->rng, GPI_S, 100 * GPI_S);
        task.limit = c->run[i] + c->run[i] / 2;
        if (!gpi_plan_submit(c->p, c->now, i, &task))
            abort(); /* a limit has made a shape */
    }
    c->waiting = c->set.tasks;
    return (double)(b_now() - begun) / c->set.tasks;
}

static void collect(struct b_crowd *c)
{
    struct gpi_plan_action action;

    c->n_started = 0;
    while (gpi_plan_next(c->p, &action))
        if (action.kind == GPI_PLAN_RUN)
            c->started[c->n_started++] = action.task;
}

static void begin_runs(struct b_crowd *c)
{
    for (uint32_t i = 0; i < c->n_started; i++)
        gpi_heap_set(&c->ends, c->started[i], c->now + c->run[c->started[i]]);
    c->waiting -= c->n_started;
}

uint64_t b_crowd_decide(struct b_crowd *c)
{
    const uint64_t begun = b_now();
    uint64_t took;

    gpi_plan_decide(c->p, c->now);
    collect(c);
    took = b_now() - begun;
    begin_runs(c);
    return took;
}

uint64_t b_crowd_step(struct b_crowd *c)
{
    const uint32_t task = gpi_heap_top_item(&c->ends);
    uint64_t begun, took;

    c->now = gpi_heap_top_key(&c->ends);
    gpi_heap_remove(&c->ends, task);
    begun = b_now();
    gpi_plan_end(c->p, c->now, task, true, 0, 0);
    gpi_plan_decide(c->p, c->now);
    collect(c);
    took = b_now() - begun;
    begin_runs(c);
    return took;
}
