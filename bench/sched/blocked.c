/* SPDX-License-Identifier: MIT */
/*
 * blocked.c - counts the shapes that are examined while nothing they need has changed.       [S5]
 *
 * A decision without a fact since the one before examines nothing, at the same time and later.  Nor
 * does the end of a run on devices that no waiting task may use.
 */
#include <stdlib.h>

#include "../measure.h"
#include "base/clock.h"
#include "crowd.h"
#include "rows.h"

#define GIB (1ull << 30)

static uint64_t examined(const struct gpi_plan *p)
{
    return gpi_plan_stats(p)->examined;
}

/* Decides once more, then at a later time before anything ends. */
static uint64_t decide_again(struct b_crowd *c)
{
    const uint64_t before = examined(c->p), end = gpi_heap_top_key(&c->ends);

    (void)b_crowd_decide(c);
    if (end != UINT64_MAX)
        c->now += (end - c->now) / 2;
    (void)b_crowd_decide(c);
    return examined(c->p) - before;
}

static int count_in_crowd(const struct b_sched_set *set, uint32_t devices, uint64_t *ret)
{
    const struct b_crowd_set crowd = { .devices = devices,
                                       .tasks = (uint32_t)b_effort(100000, 4000),
                                       .shapes = 24,
                                       .passing = set->passing };
    struct b_crowd c = { .p = NULL };
    int rc = b_crowd_open(&c, &crowd);

    if (rc == 0) {
        (void)b_crowd_submit(&c);
        (void)b_crowd_decide(&c);
        *ret += decide_again(&c);
        while (b_crowd_runs(&c)) {
            (void)b_crowd_step(&c);
            *ret += decide_again(&c);
        }
    }
    b_crowd_close(&c);
    return rc;
}

/* Four devices of 80 GiB, which run something for ever, and four of 24 GiB. */
static struct gpi_plan *make_two_kinds(const struct b_sched_set *set, uint32_t tasks)
{
    const struct gpi_plan_settings settings = { .tasks = tasks,
                                                .shapes = 32,
                                                .classes = 32,
                                                .devices = 8,
                                                .runs = 32,
                                                .passing = set->passing,
                                                .headroom = 1000 };
    struct gpi_plan *p = gpi_plan_create(&settings);

    for (uint32_t i = 0; p && i < 32; i++)
        gpi_plan_class_add(p, i, &(struct gpi_plan_class){ .grace = 2 * GPI_S });
    for (uint32_t i = 0; p && i < 8; i++)
        gpi_plan_device_add(p, i, &(struct gpi_plan_has){ (i < 4 ? 80 : 24) * GIB, 900 });
    return p;
}

static void submit(struct gpi_plan *p, uint64_t now, uint32_t task, uint32_t shape, uint64_t gib)
{
    const struct gpi_request request = { .devices = shape % 4 + 1,
                                         .share = GPI_SHARE_ALL,
                                         .memory = gib * GIB };
    const struct gpi_plan_task what = { .class = shape,
                                        .order = task + 1,
                                        .limit = 100 * GPI_S,
                                        .request = &request,
                                        .n_requests = 1 };

    if (!gpi_plan_submit(p, now, task, &what))
        abort(); /* there are 32 shapes */
}

static uint32_t decide(struct gpi_plan *p, uint64_t now)
{
    struct gpi_plan_action action;
    uint32_t starts = 0;

    gpi_plan_decide(p, now);
    while (gpi_plan_next(p, &action))
        starts += action.kind == GPI_PLAN_RUN;
    return starts;
}

/* Tasks that need 30 GiB wait for the large devices, all busy, while others come and go on the
 * small ones. */
static int count_beside(const struct b_sched_set *set, uint64_t *ret)
{
    const uint32_t blocked = (uint32_t)b_effort(100000, 4000), passing = 1000;
    struct gpi_plan *p = make_two_kinds(set, blocked + passing);
    uint64_t now = 0, before;
    uint32_t starts;

    if (!p)
        return b_complain("no memory for %u tasks", blocked);
    for (uint32_t i = 0; i < blocked; i++)
        submit(p, now, i, i < 4 ? 0 : i % 24, 30 + i % 24);
    starts = decide(p, now);
    for (uint32_t i = blocked; i < blocked + passing; i++) {
        submit(p, now, i, 28, 8);
        starts += decide(p, now);
        now += GPI_MS;
        before = examined(p);
        gpi_plan_end(p, now, i, true, 0, 0);
        (void)decide(p, now);
        *ret += examined(p) - before;
    }
    gpi_plan_destroy(p);
    return starts == 4 + passing ? 0 : b_complain("%u starts beside blocked tasks", starts);
}

int b_sched_blocked(const struct b_sched_set *set, double *figures)
{
    uint64_t scans = 0;
    int rc = count_in_crowd(set, 8, &scans);

    rc |= count_in_crowd(set, 1000, &scans);
    rc |= count_beside(set, &scans);
    if (rc == 0)
        figures[B_SCHED_scans_while_blocked] = (double)scans;
    return rc;
}
