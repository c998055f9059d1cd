/* SPDX-License-Identifier: MIT */
/* way.c - workers that make room on a device when they go, and when they may go.            [R6] */
#include "sched/plan_parts.h"

struct gpi_obstacle gpi_way_going(const struct gpi_plan *p, const struct gpi_run *r,
                                  uint64_t hard_at)
{
    const struct gpi_learned *c = &p->class[r->class];
    const bool calm = r->work == GPI_WORK_IDLE && (c->queued == 0 || c->paused);
    const uint64_t ripe_at = gpi_time_add(r->since, c->set.min_residence);
    struct gpi_obstacle o = { GPI_REASON_MAX_WAIT, r->class, hard_at };

    if (!gpi_staff_may_go(p, r->class))
        return (struct gpi_obstacle){ GPI_REASON_PINNED, r->class, GPI_NEVER };
    if (r->work == GPI_WORK_BOOT)
        return (struct gpi_obstacle){ GPI_REASON_BOOTING, r->class, GPI_NEVER };
    if (calm || ripe_at > hard_at) {
        o.why = GPI_REASON_MIN_RESIDENCE;
        o.at = ripe_at;
    }
    o.at = o.at > p->now ? o.at : p->now;
    return o;
}

uint64_t gpi_way_goes_at(const struct gpi_plan *p, const struct gpi_run *r, uint64_t hard_at)
{
    return gpi_way_going(p, r, hard_at).at;
}

/* A class that booted often of late is likely to boot again. */
static uint64_t cost_of(const struct gpi_plan *p, const struct gpi_run *r)
{
    const struct gpi_learned *c = &p->class[r->class];

    return c->boot.p50 / GPI_LATE * (c->late ? c->late : 1);
}

/* Returns true if its class has tasks that wait, and no other worker. */
static bool is_last(const struct gpi_plan *p, const struct gpi_run *r)
{
    const struct gpi_learned *c = &p->class[r->class];

    return c->queued && !c->paused && c->workers - c->leaving == 1;
}

static bool is_cheaper(const struct gpi_plan *p, uint32_t a, uint32_t b)
{
    const struct gpi_run *x = &p->run[a], *y = &p->run[b];
    const uint64_t cost = cost_of(p, x), other = cost_of(p, y);

    if (is_last(p, x) != is_last(p, y))
        return is_last(p, y);
    if (cost != other)
        return cost < other;
    return x->used != y->used ? x->used < y->used : a < b;
}

bool gpi_way_goes_before(const struct gpi_plan *p, uint32_t a, uint32_t b, uint64_t hard_at)
{
    const uint64_t at = gpi_way_goes_at(p, &p->run[a], hard_at),
                   other = gpi_way_goes_at(p, &p->run[b], hard_at);

    return at != other ? at < other : is_cheaper(p, a, b);
}

/* Lists the workers on the device that stay and may go, in the order in which they go. */
static uint32_t list(const struct gpi_plan *p, uint32_t device, uint32_t class, uint64_t hard_at,
                     uint32_t *ret)
{
    const struct gpi_run *r;
    uint32_t n = 0, j;

    for (uint32_t i = p->device[device].first; i != GPI_NONE; i = r->next[i % GPI_RUN_DEVICES]) {
        const uint32_t run = i / GPI_RUN_DEVICES;
        r = &p->run[run];
        if (!gpi_staff_stays(p, r) || r->class == class ||
            gpi_way_goes_at(p, r, hard_at) == GPI_NEVER ||
            (n == GPI_VICTIMS && !gpi_way_goes_before(p, run, ret[n - 1], hard_at)))
            continue;
        j = n < GPI_VICTIMS ? n++ : n - 1;
        for (; j > 0 && gpi_way_goes_before(p, run, ret[j - 1], hard_at); j--)
            ret[j] = ret[j - 1];
        ret[j] = run;
    }
    return n;
}

bool gpi_way_has_room(const struct gpi_plan *p, const struct gpi_way *w,
                      const struct gpi_request *r)
{
    const struct gpi_plan_device *d = &p->device[w->device];
    uint64_t firm = d->firm;

    for (uint32_t i = 0; i < w->n; i++)
        firm -= gpi_memory_of(p, &p->run[w->victim[i]], w->device);
    if (r->memory == GPI_MEMORY_ALL)
        return d->n_firm == w->n && gpi_memory_is_quiet(p, d);
    return r->memory <= d->usable && firm <= d->usable - r->memory;
}

/* Keeps those workers of the way that it needs. */
static void prune(const struct gpi_plan *p, struct gpi_way *w, const struct gpi_request *r)
{
    for (uint32_t i = w->n; i-- > 0;) {
        const struct gpi_way all = *w;
        for (uint32_t j = i; j + 1 < w->n; j++)
            w->victim[j] = w->victim[j + 1];
        w->n--;
        if (!gpi_way_has_room(p, w, r))
            *w = all;
    }
}

bool gpi_way_has_spare(const struct gpi_plan *p, const struct gpi_way *w, uint32_t class)
{
    const struct gpi_learned *c = &p->class[class];
    uint32_t left = c->workers - c->leaving;

    for (uint32_t i = 0; i < w->n; i++)
        left -= p->run[w->victim[i]].class == class;
    return left > c->set.min_workers;
}

bool gpi_way_find(const struct gpi_plan *p, uint32_t device, uint32_t class,
                  const struct gpi_request *r, uint64_t hard_at, struct gpi_way *ret)
{
    uint32_t all[GPI_VICTIMS];
    const uint32_t n = list(p, device, class, hard_at, all);

    *ret = (struct gpi_way){ .device = device };
    for (uint32_t i = 0; i < n && !gpi_way_has_room(p, ret, r); i++)
        if (gpi_way_has_spare(p, ret, p->run[all[i]].class))
            ret->victim[ret->n++] = all[i];
    if (ret->n == 0 || !gpi_way_has_room(p, ret, r))
        return false;
    prune(p, ret, r);
    for (uint32_t i = 0; i < ret->n; i++) {
        const struct gpi_run *v = &p->run[ret->victim[i]];
        const uint64_t at = gpi_way_goes_at(p, v, hard_at);
        ret->cost += cost_of(p, v);
        ret->ends |= is_last(p, v);
        ret->at = at > ret->at ? at : ret->at;
        ret->used = v->used > ret->used ? v->used : ret->used;
    }
    return true;
}

bool gpi_way_is_better(const struct gpi_way *a, const struct gpi_way *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    if (a->ends != b->ends)
        return b->ends;
    if (a->cost != b->cost)
        return a->cost < b->cost;
    return a->used != b->used ? a->used < b->used : a->device < b->device;
}

bool gpi_way_is(const struct gpi_plan *p, const struct gpi_shape *s, uint32_t variant,
                uint32_t device, uint64_t hard_at, struct gpi_way *ret)
{
    const struct gpi_plan_device *d = &p->device[device];

    return d->may == GPI_PLAN_IN && d->n_firm && !(s->kinds_of[variant] & GPI_BIT_KIND(d->kind)) &&
           gpi_memory_could(p, device, &s->request[variant]) &&
           !gpi_staff_is_full(p, device, s->class, &s->request[variant], (struct gpi_runs){ 0 }) &&
           gpi_way_find(p, device, s->class, &s->request[variant], hard_at, ret);
}

uint64_t gpi_way_at(const struct gpi_plan *p, uint32_t shape, uint32_t variant, uint32_t device)
{
    const struct gpi_shape *s = &p->shape[shape];
    struct gpi_way w;

    return gpi_way_is(p, s, variant, device, gpi_kinds_hard_at(p, s), &w) ? w.at : GPI_NEVER;
}

/* The class of which some workers have to stay, if the place could do without them; or GPI_NONE. */
static uint32_t who_keeps(const struct gpi_plan *p, uint32_t device, uint32_t class,
                          const struct gpi_request *r, uint64_t hard_at)
{
    struct gpi_way w = { .device = device };
    uint32_t all[GPI_VICTIMS], keeps = GPI_NONE;
    const uint32_t n = list(p, device, class, hard_at, all);

    for (uint32_t i = 0; i < n; i++) {
        if (keeps == GPI_NONE && !gpi_way_has_spare(p, &w, p->run[all[i]].class))
            keeps = p->run[all[i]].class;
        w.victim[w.n++] = all[i];
    }
    return gpi_way_has_room(p, &w, r) ? keeps : GPI_NONE;
}

struct gpi_obstacle gpi_way_who_stays(const struct gpi_plan *p, uint32_t device, uint32_t class,
                                      const struct gpi_request *request, uint64_t hard_at)
{
    const uint32_t keeps = who_keeps(p, device, class, request, hard_at);
    struct gpi_obstacle o = { GPI_REASON_OCCUPIED, class, GPI_NEVER };
    const struct gpi_run *r;

    if (keeps != GPI_NONE)
        return (struct gpi_obstacle){ GPI_REASON_PINNED, keeps, GPI_NEVER };
    for (uint32_t i = p->device[device].first; i != GPI_NONE; i = r->next[i % GPI_RUN_DEVICES]) {
        r = &p->run[i / GPI_RUN_DEVICES];
        if (!gpi_staff_stays(p, r) || r->class == class)
            continue;
        o = gpi_way_going(p, r, hard_at);
        if (o.at == GPI_NEVER)
            return o;
        o = (struct gpi_obstacle){ GPI_REASON_OCCUPIED, r->class, GPI_NEVER };
    }
    return o;
}
