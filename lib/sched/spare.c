/* SPDX-License-Identifier: MIT */
/*
 * spare.c - idle workers of transient classes, which go as soon as another shape wants their place.
 *                                                                                         [R6]
 */
#include "sched/plan_parts.h"

/* ---- beside a head ---- */

uint32_t gpi_spare_served(const struct gpi_plan *p, uint32_t run, uint32_t shape)
{
    const struct gpi_run *w = &p->run[run];

    for (uint32_t i = p->class[w->class].paused ? GPI_NONE : gpi_shape_first(p);
         i != GPI_NONE && (shape == GPI_NONE || !gpi_shape_precedes(p, shape, i));
         i = gpi_shape_next(p, i, GPI_BIT_ANY)) {
        const struct gpi_shape *s = &p->shape[i];
        if (s->class == w->class && !s->loads && gpi_staff_serves(p, w, s))
            return i;
    }
    return GPI_NONE;
}

static bool is_spare(const struct gpi_plan *p, uint32_t run, uint32_t shape)
{
    const struct gpi_run *w = &p->run[run];
    const struct gpi_learned *c = &p->class[w->class];

    if (c->set.residence != GPI_TRANSIENT || w->work != GPI_WORK_IDLE)
        return c->set.residence == GPI_TRANSIENT && w->work == GPI_WORK_UNLOAD;
    return !c->set.pinned && gpi_spare_served(p, run, shape) == GPI_NONE;
}

/* Returns the number of idle transient workers without which the device fits, and lists them; 0: it
 * does not.  One that unloads already counts, and is listed, too. */
static uint32_t find_spare(const struct gpi_plan *p, uint32_t device, uint32_t shape,
                           const struct gpi_request *r, uint32_t *ret)
{
    const struct gpi_plan_device *d = &p->device[device];
    uint64_t held = d->reserved;
    uint32_t n = 0, rest = d->runs, alone = d->alone;
    const struct gpi_run *w;

    for (uint32_t i = d->first; i != GPI_NONE; i = w->next[i % GPI_RUN_DEVICES]) {
        w = &p->run[i / GPI_RUN_DEVICES];
        if (n == GPI_VICTIMS || !is_spare(p, i / GPI_RUN_DEVICES, shape))
            continue;
        held -= w->need.memory == GPI_MEMORY_ALL ? 0 : gpi_memory_of(p, w, device);
        alone -= w->need.memory == GPI_MEMORY_ALL;
        rest--;
        ret[n++] = i / GPI_RUN_DEVICES;
    }
    if (r->memory == GPI_MEMORY_ALL ? rest > 0 : held + r->memory > d->usable || alone)
        return 0;
    return n;
}

/* Returns true if the device fits without its idle transient workers.  Unloads them. */
static bool clear_device(struct gpi_plan *p, uint32_t device, uint32_t shape,
                         const struct gpi_request *r)
{
    uint32_t spare[GPI_VICTIMS];
    const uint32_t n = find_spare(p, device, shape, r, spare);

    for (uint32_t i = 0; i < n; i++)
        if (p->run[spare[i]].work == GPI_WORK_IDLE)
            gpi_leave_worker(p, spare[i]);
    return n > 0;
}

bool gpi_spare_evict(struct gpi_plan *p, uint32_t shape, uint32_t variant)
{
    const struct gpi_shape *s = &p->shape[shape];
    const struct gpi_request *r = &s->request[variant];
    const uint64_t own = gpi_reserve_own(p, shape, s->kinds_of[variant]);
    uint16_t device[GPI_RUN_DEVICES];
    const uint32_t has = gpi_memory_pick(p, r, own, device);
    uint32_t n = has;

    for (uint32_t d = 0; d < p->n_devices && n < r->devices; d++)
        if (p->device[d].may == GPI_PLAN_IN && own & GPI_BIT_KIND(p->device[d].kind) &&
            !gpi_is_among(device, has, d))
            n += clear_device(p, d, shape, r);
    return r->devices && n == r->devices;
}

/* ---- in place of one of its class ---- */

uint32_t gpi_spare_replaced(const struct gpi_plan *p, uint32_t shape)
{
    const struct gpi_shape *s = &p->shape[shape];
    const struct gpi_learned *c = &p->class[s->class];
    uint32_t i = c->set.residence == GPI_TRANSIENT ? c->idle : GPI_NONE;

    while (i != GPI_NONE && (gpi_staff_serves(p, &p->run[i], s) ||
                             gpi_spare_served(p, i, s->cold ? shape : GPI_NONE) != GPI_NONE))
        i = p->run[i].list_next;
    return i;
}

/* Returns true if idle workers are all that keeps the shape from the device. */
static bool frees(const struct gpi_plan *p, uint32_t shape, const struct gpi_request *r,
                  uint32_t device, uint64_t kinds)
{
    const struct gpi_plan_device *d = &p->device[device];
    uint32_t spare[GPI_VICTIMS];

    return d->may == GPI_PLAN_IN && kinds & GPI_BIT_KIND(d->kind) &&
           d->share + r->share <= GPI_SHARE_ALL && find_spare(p, device, shape, r, spare) > 0;
}

/* Returns the number of devices, at most those of the request, that a worker for the shape could
 * have once an idle one is gone: they are free now, or without idle workers, or workers that stay
 * may go there.  Else *ret_at is the time at which one of these may go, if that is sooner. */
static uint32_t count_places(const struct gpi_plan *p, uint32_t shape, uint32_t variant,
                             uint64_t *ret_at)
{
    const struct gpi_shape *s = &p->shape[shape];
    const struct gpi_request *r = &s->request[variant];
    const uint64_t kinds = gpi_memory_kinds(p, s->class, r);
    uint16_t device[GPI_RUN_DEVICES];
    const uint32_t has = gpi_memory_pick(p, r, kinds, device);
    uint32_t n = has;
    uint64_t at;

    if (r->devices && gpi_staff_is_enough(p, s->class, r))
        return 0;
    for (uint32_t d = 0; d < p->n_devices && n < r->devices; d++) {
        if (gpi_is_among(device, has, d))
            continue;
        if (frees(p, shape, r, d, kinds)) {
            n++;
        } else {
            at = gpi_way_at(p, shape, variant, d);
            n += at <= p->now;
            *ret_at = at > p->now ? gpi_time_min(*ret_at, at) : *ret_at;
        }
    }
    return n;
}

/* Returns when a worker for the shape could boot in place of an idle one, as things are. */
static uint64_t could_boot_at(const struct gpi_plan *p, uint32_t shape)
{
    const struct gpi_shape *s = &p->shape[shape];
    uint64_t at = GPI_NEVER;

    for (uint32_t i = 0; i < s->n_requests; i++)
        if (count_places(p, shape, i, &at) >= s->request[i].devices)
            return p->now;
    return at;
}

static bool is_unloading(const struct gpi_plan *p)
{
    for (uint32_t i = 0; i < p->set.runs; i++)
        if (p->run[i].work == GPI_WORK_UNLOAD)
            return true;
    return false;
}

bool gpi_spare_may_replace(const struct gpi_plan *p, uint32_t class)
{
    const struct gpi_learned *c = &p->class[class];
    const bool is_full = c->workers - c->leaving >= c->set.max_workers;

    return c->set.residence == GPI_TRANSIENT && c->queued && !c->paused &&
           (is_full || (p->free_run == GPI_NONE && !is_unloading(p)));
}

uint64_t gpi_spare_replace(struct gpi_plan *p, uint32_t shape)
{
    const struct gpi_shape *s = &p->shape[shape];
    const bool would_boot = s->cold || p->class[s->class].booting == GPI_NONE;
    const bool may = s->late && would_boot && gpi_spare_may_replace(p, s->class);
    const uint32_t idle = may ? gpi_spare_replaced(p, shape) : GPI_NONE;
    const uint64_t at = idle == GPI_NONE ? GPI_NEVER : could_boot_at(p, shape);

    if (at > p->now)
        return at;
    gpi_leave_worker(p, idle);
    return GPI_NEVER;
}
