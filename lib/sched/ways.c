/* SPDX-License-Identifier: MIT */
/*
 * ways.c - ways for all the devices that a shape lacks.                                    [R6]
 *
 * The workers of all ways may go together.  A way is for the shape that would be the head of its
 * device then.
 */
#include "sched/plan_parts.h"

/* Returns the most devices that have room for an older shape once the workers are gone.  If the
 * variant lacks other devices, too, more workers may go. */
static uint32_t cleared_by(const struct gpi_plan *p, uint32_t shape, uint32_t variant,
                           const struct gpi_way *w)
{
    const struct gpi_shape *s = &p->shape[shape];
    const uint32_t has = gpi_memory_count(p, s->kinds_of[variant]);
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->n; i++)
        n += p->run[w->victim[i]].n_devices;
    return gpi_shape_stays(p, shape) && has + 1 == s->request[variant].devices ? n : UINT16_MAX;
}

/* Returns the workers of the class that go. */
static uint32_t count_of(const struct gpi_plan *p, const struct gpi_way *w, uint32_t class)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->n; i++)
        n += p->run[w->victim[i]].class == class;
    return n;
}

/* Returns true if the shape could use the device of the way, once the workers are gone: it has so
 * many more devices then.  A worker of its own that goes boots again. */
static bool may_follow(const struct gpi_plan *p, uint32_t shape, const struct gpi_way *w,
                       uint32_t more)
{
    const struct gpi_shape *s = &p->shape[shape];
    const bool again = count_of(p, w, s->class) > 0;

    for (uint32_t i = 0; i < s->n_requests && (again || s->begins) && !p->class[s->class].paused;
         i++)
        if (s->request[i].devices && (again || !(s->far >> i & 1)) &&
            (again || gpi_kinds_claims(p, s, i, more)) &&
            gpi_memory_could(p, w->device, &s->request[i]) &&
            gpi_way_has_room(p, w, &s->request[i]) &&
            !gpi_staff_is_full(p, w->device, s->class, &s->request[i],
                               (struct gpi_runs){ w->victim, w->n }))
            return true;
    return false;
}

static bool is_served_then(const struct gpi_plan *p, uint32_t shape, const struct gpi_way *w)
{
    const struct gpi_shape *s = &p->shape[shape];
    const struct gpi_learned *c = &p->class[s->class];

    return s->served && c->workers - c->leaving > count_of(p, w, s->class);
}

/* The first in order has the place, of the shape and of all shapes that may follow. */
uint32_t gpi_ways_who_follows(struct gpi_plan *p, uint32_t shape, uint32_t variant,
                              const struct gpi_way *w)
{
    const bool stays = gpi_shape_stays(p, shape);
    const uint32_t more = cleared_by(p, shape, variant, w);
    const uint32_t there = gpi_reserve_claimant(p, shape, p->device[w->device].kind);
    uint32_t i = gpi_shape_first(p), left = shape, next;
    struct gpi_walk walk = { GPI_NONE };
    bool ends = false;

    if (there != GPI_NONE)
        return there;
    while (!ends && (next = gpi_shape_older(p, i, &left)) != GPI_NONE) {
        if (next == shape || may_follow(p, next, w, more))
            ends = gpi_reserve_walk(p, &walk, next, stays && is_served_then(p, next, w));
        if (next == i)
            i = gpi_shape_next(p, i, GPI_BIT_ANY);
    }
    return walk.head == shape ? GPI_NONE : walk.head;
}

/* Returns the next time at which one more worker of the device may go, so that another way may be
 * the best one. */
static uint64_t next_at(const struct gpi_plan *p, uint32_t device, uint32_t class, uint64_t hard_at)
{
    uint64_t next = GPI_NEVER, at;
    const struct gpi_run *r;

    for (uint32_t i = p->device[device].first; i != GPI_NONE; i = r->next[i % GPI_RUN_DEVICES]) {
        r = &p->run[i / GPI_RUN_DEVICES];
        at =
            gpi_staff_stays(p, r) && r->class != class ? gpi_way_goes_at(p, r, hard_at) : GPI_NEVER;
        next = at > p->now ? gpi_time_min(next, at) : next;
    }
    return next;
}

bool gpi_ways_has(const struct gpi_way *w, uint32_t run)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (w->victim[i] == run)
            return true;
    return false;
}

/* Returns true if the class keeps min_workers without the workers of the ways. */
static bool is_spared(const struct gpi_plan *p, const struct gpi_way *way, uint32_t n,
                      uint32_t class)
{
    const struct gpi_learned *c = &p->class[class];
    uint32_t left = c->workers - c->leaving;

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < way[i].n; j++) {
            bool counted = p->run[way[i].victim[j]].class != class;
            for (uint32_t k = 0; k < i && !counted; k++)
                counted = gpi_ways_has(&way[k], way[i].victim[j]);
            left -= !counted;
        }
    return left >= c->set.min_workers;
}

/* Returns the class of which workers of the last way stay; GPI_NONE: those of all ways may go. */
static uint32_t who_stays(const struct gpi_plan *p, const struct gpi_way *way, uint32_t n)
{
    for (uint32_t i = 0; i < way[n - 1].n; i++) {
        const uint32_t class = p->run[way[n - 1].victim[i]].class;
        if (!is_spared(p, way, n, class))
            return class;
    }
    return GPI_NONE;
}

static bool is_cleared(const struct gpi_way *way, uint32_t n, uint32_t device)
{
    for (uint32_t i = 0; i < n; i++)
        if (way[i].device == device)
            return true;
    return false;
}

/* Finds the best way for one device more, beside `n` ways. */
static bool find_way(struct gpi_plan *p, uint32_t shape, uint32_t variant, uint64_t hard_at,
                     struct gpi_way *way, uint32_t n, uint64_t *ret_next)
{
    const struct gpi_shape *s = &p->shape[shape];
    struct gpi_way best;
    bool found = false;
    uint32_t other;

    for (uint32_t d = 0; d < p->n_devices; d++) {
        if (is_cleared(way, n, d) || !gpi_way_is(p, s, variant, d, hard_at, &way[n]) ||
            (found && !gpi_way_is_better(&way[n], &best)) || who_stays(p, way, n + 1) != GPI_NONE)
            continue;
        other = gpi_ways_who_follows(p, shape, variant, &way[n]);
        if (other != GPI_NONE && ret_next) {
            p->shape[other].stops = true;
            *ret_next = gpi_time_min(*ret_next, next_at(p, d, s->class, hard_at));
        }
        if (other != GPI_NONE)
            continue;
        best = way[n];
        found = true;
    }
    if (found)
        way[n] = best;
    return found;
}

uint32_t gpi_ways_find(struct gpi_plan *p, uint32_t shape, uint32_t variant, uint32_t k,
                       uint64_t hard_at, struct gpi_way *ret, uint64_t *ret_next)
{
    uint32_t n = 0;

    while (n < k && find_way(p, shape, variant, hard_at, ret, n, ret_next))
        n++;
    return n;
}

uint32_t gpi_ways_who_stays(struct gpi_plan *p, uint32_t shape, uint32_t variant,
                            const struct gpi_way *w)
{
    const struct gpi_shape *s = &p->shape[shape];
    const uint32_t has = gpi_memory_count(p, s->kinds_of[variant]);
    const uint32_t k = s->request[variant].devices - has;
    struct gpi_way way[GPI_RUN_DEVICES];
    bool keeps = false;
    uint32_t n;

    for (uint32_t i = 0; i < w->n; i++)
        keeps |= p->class[p->run[w->victim[i]].class].set.min_workers != 0;
    if (!keeps || k == 1)
        return GPI_NONE;
    n = gpi_ways_find(p, shape, variant, k, gpi_kinds_hard_at(p, s), way, NULL);
    if (n == k || is_cleared(way, n, w->device))
        return GPI_NONE;
    way[n] = *w;
    return who_stays(p, way, n + 1);
}
