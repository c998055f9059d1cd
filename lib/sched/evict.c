/* SPDX-License-Identifier: MIT */
/*
 * evict.c - workers that go, so that another class has room.                      [R6] [S3] [S4]
 *
 * A worker that stays is in the way of a shape that its device could hold without it.  It goes if
 * it is ripe: it was up for min_residence, is not pinned, and its class keeps min_workers.  An
 * idle one whose class has no queue goes at once.  Any other one goes only when the shape's first
 * task has waited for max_wait, and its grant has been revoked before.
 */

#include "sched/plan_parts.h"

int gpi_evict_make(struct gpi_plan *p)
{
    return gpi_heap_init(&p->times, p->most_shapes);
}

void gpi_evict_free(struct gpi_plan *p)
{
    gpi_heap_fini(&p->times);
}

/* ---- a shape that does not fit ---- */

/* Lets the workers of the ways go, until the variant has its devices.  A worker may be on several
 * of these, so it may be gone already. */
static void go(struct gpi_plan *p, uint32_t shape, uint32_t variant, const struct gpi_way *way,
               uint32_t n)
{
    const struct gpi_shape *s = &p->shape[shape];
    const uint32_t wanted = s->request[variant].devices;

    for (uint32_t i = 0; i < n && gpi_memory_count(p, s->kinds_of[variant]) < wanted; i++)
        for (uint32_t j = 0; j < way[i].n; j++)
            if (gpi_staff_stays(p, &p->run[way[i].victim[j]]))
                gpi_leave_worker(p, way[i].victim[j]);
}

/* A granted run in the way is revoked.  No worker goes while the caller may have tasks of its class
 * that are older than the shape: it is examined again when the plan knows these. */
static bool awaits_tasks(struct gpi_plan *p, const struct gpi_way *way, uint32_t n)
{
    bool awaits = false;

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < way[i].n; j++) {
            const uint32_t run = way[i].victim[j];
            if (p->run[run].grant == GPI_GRANT_LASTS)
                gpi_revoke_run(p, run);
            awaits |= gpi_revoke_await(p, run);
        }
    return awaits;
}

static uint64_t evict_variant(struct gpi_plan *p, uint32_t shape, uint32_t variant)
{
    const struct gpi_shape *s = &p->shape[shape];
    const struct gpi_request *r = &s->request[variant];
    const uint32_t has = gpi_memory_count(p, s->kinds_of[variant]);
    struct gpi_way way[GPI_RUN_DEVICES];
    const uint32_t k = has < r->devices ? r->devices - has : 0;
    uint64_t next = GPI_NEVER;

    if (k == 0 || gpi_staff_is_enough(p, s->class, r) ||
        gpi_ways_find(p, shape, variant, k, gpi_kinds_hard_at(p, s), way, &next) < k)
        return next;
    if (way[k - 1].at > p->now || awaits_tasks(p, way, k))
        return way[k - 1].at;
    go(p, shape, variant, way, k);
    return p->now;
}

/* ---- a stream task that starts ---- */

/* Returns true if there are enough ways for the variant now, and the worker is in one of them. */
static bool is_in_way(const struct gpi_plan *p, const struct gpi_shape *s, uint32_t variant,
                      uint32_t run)
{
    const uint32_t wanted = s->request[variant].devices;
    const uint32_t has = gpi_memory_count(p, s->kinds_of[variant]);
    const bool lacks = has < wanted && !gpi_staff_is_enough(p, s->class, &s->request[variant]);
    uint32_t n = has;
    bool is_in = false;
    struct gpi_way w;

    for (uint32_t d = 0; d < p->n_devices && lacks; d++)
        if (gpi_way_is(p, s, variant, d, p->now, &w) && w.at <= p->now) {
            is_in |= gpi_ways_has(&w, run);
            n++;
        }
    return is_in && n >= wanted;
}

bool gpi_evict_is_due(const struct gpi_plan *p, uint32_t run)
{
    const struct gpi_tree_wanted w = { GPI_BIT_SHORT, UINT64_MAX, UINT32_MAX };
    const struct gpi_run *r = &p->run[run];
    bool is_due = false;

    for (uint32_t i = gpi_tree_first(&p->order, &w); i != GPI_NONE && !is_due;
         i = gpi_tree_next(&p->order, i, &w)) {
        const struct gpi_shape *s = &p->shape[i];
        const bool pressed = gpi_kinds_hard_at(p, s) <= p->now && s->begins;
        for (uint32_t k = 0; k < s->n_requests && pressed; k++)
            is_due |= is_in_way(p, s, k, run);
        is_due |= pressed && s->lacks_run && p->free_run == GPI_NONE && s->class != r->class &&
                  gpi_way_goes_at(p, r, p->now) <= p->now;
    }
    return is_due;
}

bool gpi_evict_is_ripe(struct gpi_plan *p, uint32_t shape, uint32_t variant)
{
    const struct gpi_shape *s = &p->shape[shape];
    const bool enough = gpi_staff_is_enough(p, s->class, &s->request[variant]);
    uint32_t n = gpi_memory_count(p, s->kinds_of[variant]);
    struct gpi_way w;

    for (uint32_t d = 0; d < p->n_devices && !enough; d++)
        n += gpi_way_is(p, s, variant, d, gpi_kinds_hard_at(p, s), &w) && w.at <= p->now &&
             gpi_ways_who_follows(p, shape, variant, &w) == GPI_NONE;
    return n >= s->request[variant].devices;
}

struct gpi_obstacle gpi_evict_obstacle(struct gpi_plan *p, uint32_t shape, uint32_t variant,
                                       uint32_t device)
{
    const struct gpi_shape *s = &p->shape[shape];
    const struct gpi_request *r = &s->request[variant];
    const uint64_t hard = gpi_kinds_hard_at(p, s);
    uint32_t other;
    struct gpi_obstacle last, going;
    struct gpi_way w;

    last = gpi_way_who_stays(p, device, s->class, r, hard);
    if (gpi_memory_count(p, s->kinds_of[variant]) >= r->devices)
        return (struct gpi_obstacle){ GPI_REASON_OCCUPIED, last.class, GPI_NEVER };
    if (!gpi_way_find(p, device, s->class, r, hard, &w))
        return last;
    if ((other = gpi_ways_who_follows(p, shape, variant, &w)) != GPI_NONE)
        return (struct gpi_obstacle){ GPI_REASON_HEAD_HOLDS, other, GPI_NEVER };
    if ((other = gpi_ways_who_stays(p, shape, variant, &w)) != GPI_NONE)
        return (struct gpi_obstacle){ GPI_REASON_PINNED, other, GPI_NEVER };
    last.at = 0;
    for (uint32_t i = 0; i < w.n; i++)
        if ((going = gpi_way_going(p, &p->run[w.victim[i]], hard)).at > last.at)
            last = going;
    for (uint32_t i = 0; i < w.n && last.at <= p->now; i++)
        if (gpi_revoke_is_ahead(p, w.victim[i]))
            last =
                (struct gpi_obstacle){ GPI_REASON_MAX_WAIT, p->run[w.victim[i]].class, GPI_NEVER };
    return last;
}

/* ---- a shape that lacks a run ---- */

/* The workers with a run, as a shape that lacks one finds them. */
struct runs {
    uint32_t unloading, draining; /* numbers of them: each is about to release its run */
    uint32_t calm, first;         /* that goes next: one without work, one of all; GPI_NONE */
};

static bool is_next(const struct gpi_plan *p, uint32_t run, uint32_t best, uint64_t hard_at)
{
    return gpi_way_goes_at(p, &p->run[run], hard_at) != GPI_NEVER &&
           (best == GPI_NONE || gpi_way_goes_before(p, run, best, hard_at));
}

/* Returns true if a worker serves the shape, or could boot for it as things are. */
static bool is_possible(const struct gpi_plan *p, const struct gpi_shape *s)
{
    bool could = !s->cold;

    for (uint32_t i = 0; i < s->n_requests && !could; i++)
        could = gpi_kinds_in_reach(p, s->class, &s->request[i]);
    return could;
}

/* Returns true if the run of a worker of the class would be for another shape: a shape of the class
 * waits before this one, or one that lacks a run, too. */
static bool is_behind(struct gpi_plan *p, uint32_t shape, uint32_t class)
{
    for (uint32_t i = gpi_shape_first(p); i != GPI_NONE && gpi_shape_precedes(p, i, shape);
         i = gpi_shape_next(p, i, GPI_BIT_ANY)) {
        struct gpi_shape *s = &p->shape[i];
        if (p->class[s->class].paused || !(s->class == class ? is_possible(p, s) : s->lacks_run))
            continue;
        s->stops = true;
        return true;
    }
    return false;
}

static struct runs find_runs(struct gpi_plan *p, uint32_t shape, uint64_t hard_at)
{
    struct runs f = { 0, 0, GPI_NONE, GPI_NONE };

    for (uint32_t i = 0; i < p->set.runs; i++) {
        const struct gpi_run *r = &p->run[i];
        f.unloading += r->work == GPI_WORK_UNLOAD;
        f.draining += r->work == GPI_WORK_DRAIN;
        if ((r->work != GPI_WORK_IDLE && r->work != GPI_WORK_BUSY) ||
            r->class == p->shape[shape].class)
            continue;
        if (is_next(p, i, f.calm, GPI_NEVER))
            f.calm = i;
        if (is_next(p, i, f.first, hard_at) && !is_behind(p, shape, r->class))
            f.first = i;
    }
    return f;
}

/* One worker goes, unless another one is about to release its run.  Returns when one goes, if none
 * does now. */
static uint64_t evict_for_run(struct gpi_plan *p, uint32_t shape)
{
    const uint64_t hard = gpi_kinds_hard_at(p, &p->shape[shape]);
    const struct runs f = find_runs(p, shape, hard);
    const uint64_t calm_at =
        f.calm == GPI_NONE ? GPI_NEVER : gpi_way_goes_at(p, &p->run[f.calm], GPI_NEVER);
    const uint64_t at =
        f.first == GPI_NONE ? GPI_NEVER : gpi_way_goes_at(p, &p->run[f.first], hard);
    const struct gpi_way way = { .n = 1, .victim = { f.first } };

    if (f.unloading)
        return GPI_NEVER;
    if (calm_at <= p->now)
        gpi_leave_worker(p, f.calm);
    else if (at <= p->now && !f.draining && !awaits_tasks(p, &way, 1))
        gpi_leave_worker(p, f.first);
    else if (at > p->now)
        return gpi_time_min(calm_at, at);
    else
        return calm_at;
    return GPI_NEVER;
}

void gpi_evict_for(struct gpi_plan *p, uint32_t shape)
{
    const uint32_t n = p->shape[shape].n_requests;
    const bool may = p->shape[shape].begins;
    uint64_t at = GPI_NEVER;

    gpi_heap_remove(&p->times, shape);
    for (uint32_t i = 0; i < n && may && p->n_firm && at > p->now; i++)
        at = gpi_time_min(at, evict_variant(p, shape, i));
    for (uint32_t i = 0; i < n && may && p->n_spare; i++)
        if (gpi_spare_evict(p, shape, i))
            break;
    at = gpi_time_min(at, gpi_spare_replace(p, shape));
    if (p->shape[shape].lacks_run)
        at = gpi_time_min(at, evict_for_run(p, shape));
    at = gpi_time_min(at, gpi_kinds_older_at(p, shape));
    if (at > p->now && at != GPI_NEVER)
        gpi_heap_set(&p->times, shape, at);
}

void gpi_evict_time(struct gpi_plan *p)
{
    uint32_t shape;

    while (gpi_heap_top_key(&p->times) <= p->now) {
        shape = gpi_heap_top_item(&p->times);
        gpi_heap_remove(&p->times, shape);
        gpi_shape_class(p, p->shape[shape].class);
        gpi_shape_refresh(p, shape);
    }
}
