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

#define VICTIMS 8u /* on one device */

/* Workers that make room on a device when they go. */
struct way {
    uint32_t device;
    uint32_t n;
    uint32_t victim[VICTIMS];
    uint64_t at;         /* when they are ripe */
    uint64_t cost, used; /* ns of boots; when the last one ended a task */
};

int gpi_evict_make(struct gpi_plan *p)
{
    return gpi_heap_init(&p->times, p->most_shapes);
}

void gpi_evict_free(struct gpi_plan *p)
{
    gpi_heap_fini(&p->times);
}

/* ---- ways ---- */

/* Returns when, and why not before, the worker may go for the shape, whose first task may evict
 * busy ones at `hard_at`. */
static struct gpi_obstacle going_of(const struct gpi_plan *p, const struct gpi_run *r,
                                    uint64_t hard_at)
{
    const struct gpi_learned *c = &p->class[r->class];
    const bool calm = r->work == GPI_WORK_IDLE && (c->queued == 0 || c->paused);
    const uint64_t ripe_at = gpi_time_add(r->since, c->set.min_residence);
    struct gpi_obstacle o = { GPI_REASON_MAX_WAIT, r->class, hard_at };

    if (c->set.pinned || c->workers - c->leaving <= c->set.min_workers)
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

static uint64_t goes_at(const struct gpi_plan *p, const struct gpi_run *r, uint64_t hard_at)
{
    return going_of(p, r, hard_at).at;
}

/* A class that booted often of late is likely to boot again. */
static uint64_t cost_of(const struct gpi_plan *p, const struct gpi_run *r)
{
    const struct gpi_learned *c = &p->class[r->class];

    return c->boot.p50 / GPI_LATE * (c->late ? c->late : 1);
}

static bool is_cheaper(const struct gpi_plan *p, uint32_t a, uint32_t b)
{
    const struct gpi_run *x = &p->run[a], *y = &p->run[b];
    const uint64_t cost = cost_of(p, x), other = cost_of(p, y);

    if (cost != other)
        return cost < other;
    return x->used != y->used ? x->used < y->used : a < b;
}

/* Returns true if worker `a` goes before `b`: one that may go sooner, then the cheaper one. */
static bool goes_before(const struct gpi_plan *p, uint32_t a, uint32_t b, uint64_t hard_at)
{
    const uint64_t at = goes_at(p, &p->run[a], hard_at), other = goes_at(p, &p->run[b], hard_at);

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
        if (!gpi_memory_stays(p, r) || r->class == class || goes_at(p, r, hard_at) == GPI_NEVER ||
            (n == VICTIMS && !goes_before(p, run, ret[n - 1], hard_at)))
            continue;
        for (j = n < VICTIMS ? n++ : n - 1; j > 0 && goes_before(p, run, ret[j - 1], hard_at); j--)
            ret[j] = ret[j - 1];
        ret[j] = run;
    }
    return n;
}

/* Returns true if the device has room for the request without the workers of the way. */
static bool has_room(const struct gpi_plan *p, const struct way *w, const struct gpi_request *r)
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
static void prune(const struct gpi_plan *p, struct way *w, const struct gpi_request *r)
{
    for (uint32_t i = w->n; i-- > 0;) {
        const struct way all = *w;
        for (uint32_t j = i; j + 1 < w->n; j++)
            w->victim[j] = w->victim[j + 1];
        w->n--;
        if (!has_room(p, w, r))
            *w = all;
    }
}

/* Returns true if one more worker of the class may go, beside those of the way. */
static bool has_spare(const struct gpi_plan *p, const struct way *w, uint32_t class)
{
    const struct gpi_learned *c = &p->class[class];
    uint32_t left = c->workers - c->leaving;

    for (uint32_t i = 0; i < w->n; i++)
        left -= p->run[w->victim[i]].class == class;
    return left > c->set.min_workers;
}

/* Finds workers that go soonest, then the cheapest.  Returns false if the device never has room. */
static bool find_way(const struct gpi_plan *p, uint32_t device, uint32_t class,
                     const struct gpi_request *r, uint64_t hard_at, struct way *ret)
{
    uint32_t all[VICTIMS];
    const uint32_t n = list(p, device, class, hard_at, all);

    *ret = (struct way){ .device = device };
    for (uint32_t i = 0; i < n && !has_room(p, ret, r); i++)
        if (has_spare(p, ret, p->run[all[i]].class))
            ret->victim[ret->n++] = all[i];
    if (ret->n == 0 || !has_room(p, ret, r))
        return false;
    prune(p, ret, r);
    for (uint32_t i = 0; i < ret->n; i++) {
        const struct gpi_run *v = &p->run[ret->victim[i]];
        const uint64_t at = goes_at(p, v, hard_at);
        ret->cost += cost_of(p, v);
        ret->at = at > ret->at ? at : ret->at;
        ret->used = v->used > ret->used ? v->used : ret->used;
    }
    return true;
}

static bool is_better(const struct way *a, const struct way *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    if (a->cost != b->cost)
        return a->cost < b->cost;
    return a->used != b->used ? a->used < b->used : a->device < b->device;
}

/* ---- a shape that does not fit ---- */

/* Returns true if the shape could use the device of the way, once the workers are gone. */
static bool may_follow(const struct gpi_plan *p, uint32_t shape, const struct way *w)
{
    const struct gpi_shape *s = &p->shape[shape];
    const struct gpi_learned *c = &p->class[s->class];
    bool again = false; /* its own worker goes: it boots again */

    for (uint32_t i = 0; i < w->n; i++)
        again |= p->run[w->victim[i]].class == s->class;
    for (uint32_t i = 0; i < s->n_requests && (again || s->begins) && !c->paused; i++)
        if (s->request[i].devices && (again || !(s->far >> i & 1)) &&
            gpi_memory_could(p, w->device, &s->request[i]) && has_room(p, w, &s->request[i]) &&
            !gpi_memory_is_full(p, w->device, s->class, &s->request[i],
                                (struct gpi_runs){ w->victim, w->n }))
            return true;
    return false;
}

/* Returns the shape before this one that would take the place, or GPI_NONE. */
static uint32_t who_follows(struct gpi_plan *p, uint32_t shape, const struct way *w)
{
    uint32_t i = gpi_reserve_memory_head(p, p->device[w->device].kind);

    if (i != GPI_NONE && gpi_shape_precedes(p, i, shape))
        return i;
    for (i = gpi_shape_first(p); i != GPI_NONE && gpi_shape_precedes(p, i, shape);
         i = gpi_shape_next(p, i, GPI_BIT_ANY))
        if (may_follow(p, i, w))
            return i;
    return GPI_NONE;
}

/* Returns true if the shape would be the head of the device.  Else another one would take the
 * place: that one is marked, and its next start lets the shape be examined again. */
static bool would_be_head(struct gpi_plan *p, uint32_t shape, const struct way *w)
{
    const uint32_t other = who_follows(p, shape, w);

    if (other != GPI_NONE)
        p->shape[other].stops = true;
    return other == GPI_NONE;
}

/* Returns true if the device holds the variant once the workers of the way are gone, and not
 * before. */
static bool is_way(const struct gpi_plan *p, const struct gpi_shape *s, uint32_t variant,
                   uint32_t device, uint64_t hard_at, struct way *ret)
{
    const struct gpi_plan_device *d = &p->device[device];

    return d->may == GPI_PLAN_IN && d->n_firm && !(s->kinds_of[variant] & GPI_BIT_KIND(d->kind)) &&
           gpi_memory_could(p, device, &s->request[variant]) &&
           !gpi_memory_is_full(p, device, s->class, &s->request[variant], (struct gpi_runs){ 0 }) &&
           find_way(p, device, s->class, &s->request[variant], hard_at, ret);
}

/* Returns the next time at which one more worker of the device may go, so that another way may be
 * the best one. */
static uint64_t next_at(const struct gpi_plan *p, uint32_t device, uint32_t class, uint64_t hard_at)
{
    uint64_t next = GPI_NEVER, at;
    const struct gpi_run *r;

    for (uint32_t i = p->device[device].first; i != GPI_NONE; i = r->next[i % GPI_RUN_DEVICES]) {
        r = &p->run[i / GPI_RUN_DEVICES];
        at = gpi_memory_stays(p, r) && r->class != class ? goes_at(p, r, hard_at) : GPI_NEVER;
        next = at > p->now ? gpi_time_min(next, at) : next;
    }
    return next;
}

/* Lists the best ways for `k` devices.  Returns their number.  A way that is for another shape is
 * none; `ret_next`: when that may change. */
static uint32_t find_ways(struct gpi_plan *p, uint32_t shape, uint32_t variant, uint32_t k,
                          uint64_t hard_at, struct way *ret, uint64_t *ret_next)
{
    const struct gpi_shape *s = &p->shape[shape];
    uint32_t n = 0, j;
    struct way w;

    *ret_next = GPI_NEVER;
    for (uint32_t d = 0; d < p->n_devices; d++) {
        if (!is_way(p, s, variant, d, hard_at, &w) || (n == k && !is_better(&w, &ret[k - 1])))
            continue;
        if (!would_be_head(p, shape, &w)) {
            *ret_next = gpi_time_min(*ret_next, next_at(p, d, s->class, hard_at));
            continue;
        }
        for (j = n < k ? n++ : k - 1; j > 0 && is_better(&w, &ret[j - 1]); j--)
            ret[j] = ret[j - 1];
        ret[j] = w;
    }
    return n;
}

/* A worker may be on several devices, so it may be gone already.  Or it may not go any more, since
 * its class has lost another one just now. */
static bool may_all_go(const struct gpi_plan *p, const struct way *w)
{
    struct way going = { .device = w->device };

    for (uint32_t i = 0; i < w->n; i++) {
        const struct gpi_run *r = &p->run[w->victim[i]];
        if (!gpi_memory_stays(p, r))
            continue;
        if (goes_at(p, r, p->now) > p->now || !has_spare(p, &going, r->class))
            return false;
        going.victim[going.n++] = w->victim[i];
    }
    return true;
}

/* Returns true if the workers of all ways go. */
static bool go(struct gpi_plan *p, const struct way *way, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!may_all_go(p, &way[i]))
            return false;
        for (uint32_t j = 0; j < way[i].n; j++)
            if (gpi_memory_stays(p, &p->run[way[i].victim[j]]))
                gpi_leave_worker(p, way[i].victim[j]);
    }
    return true;
}

/* A granted run in the way is revoked.  No worker goes while the caller may have tasks of its class
 * that are older than the shape: it is examined again when the plan knows these. */
static bool awaits_tasks(struct gpi_plan *p, const struct way *way, uint32_t n)
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

/* Returns true if a worker of its class serves the shape, or will. */
static bool is_warm(const struct gpi_plan *p, const struct gpi_shape *s)
{
    const struct gpi_learned *c = &p->class[s->class];

    return !s->loads && c->workers > c->leaving && !s->cold;
}

static uint64_t hard_at(const struct gpi_plan *p, const struct gpi_shape *s)
{
    const struct gpi_learned *c = &p->class[s->class];
    const uint64_t since = s->head == GPI_NONE ? p->now / GPI_MS : gpi_shape_since(p, s->head);

    if (is_warm(p, s))
        return GPI_NEVER;
    return gpi_time_add(since * GPI_MS, c->set.max_wait);
}

static uint64_t evict_variant(struct gpi_plan *p, uint32_t shape, uint32_t variant)
{
    const struct gpi_shape *s = &p->shape[shape];
    const struct gpi_request *r = &s->request[variant];
    const uint32_t has = gpi_memory_count(p, s->kinds_of[variant]);
    struct way way[GPI_RUN_DEVICES];
    const uint32_t k = has < r->devices ? r->devices - has : 0;
    uint64_t next = GPI_NEVER;

    if (k == 0 || find_ways(p, shape, variant, k, hard_at(p, s), way, &next) < k)
        return next;
    if (way[k - 1].at > p->now || awaits_tasks(p, way, k))
        return way[k - 1].at;
    return go(p, way, k) ? p->now : GPI_NEVER;
}

/* ---- a stream task that starts ---- */

static bool is_victim(const struct way *w, uint32_t run)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (w->victim[i] == run)
            return true;
    return false;
}

/* Returns true if there are enough ways for the variant now, and the worker is in one of them. */
static bool is_in_way(const struct gpi_plan *p, const struct gpi_shape *s, uint32_t variant,
                      uint32_t run)
{
    const uint32_t wanted = s->request[variant].devices;
    const uint32_t has = gpi_memory_count(p, s->kinds_of[variant]);
    uint32_t n = has;
    bool is_in = false;
    struct way w;

    for (uint32_t d = 0; d < p->n_devices && has < wanted; d++)
        if (is_way(p, s, variant, d, p->now, &w) && w.at <= p->now) {
            is_in |= is_victim(&w, run);
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
        const bool pressed = hard_at(p, s) <= p->now && s->begins;
        for (uint32_t k = 0; k < s->n_requests && pressed; k++)
            is_due |= is_in_way(p, s, k, run);
        is_due |= pressed && s->lacks_run && p->free_run == GPI_NONE && s->class != r->class &&
                  goes_at(p, r, p->now) <= p->now;
    }
    return is_due;
}

/* The class of which some workers have to stay, if the place could do without them; or GPI_NONE. */
static uint32_t who_keeps(const struct gpi_plan *p, uint32_t device, uint32_t class,
                          const struct gpi_request *r, uint64_t hard_at)
{
    struct way w = { .device = device };
    uint32_t all[VICTIMS], keeps = GPI_NONE;
    const uint32_t n = list(p, device, class, hard_at, all);

    for (uint32_t i = 0; i < n; i++) {
        if (keeps == GPI_NONE && !has_spare(p, &w, p->run[all[i]].class))
            keeps = p->run[all[i]].class;
        w.victim[w.n++] = all[i];
    }
    return has_room(p, &w, r) ? keeps : GPI_NONE;
}

/* There is no way: returns a worker that never goes, or one of those of which some have to stay.
 * Without such the workers of the class have the place. */
static struct gpi_obstacle who_stays(const struct gpi_plan *p, uint32_t device, uint32_t class,
                                     const struct gpi_request *request, uint64_t hard_at)
{
    const uint32_t keeps = who_keeps(p, device, class, request, hard_at);
    struct gpi_obstacle o = { GPI_REASON_OCCUPIED, class, GPI_NEVER };
    const struct gpi_run *r;

    if (keeps != GPI_NONE)
        return (struct gpi_obstacle){ GPI_REASON_PINNED, keeps, GPI_NEVER };
    for (uint32_t i = p->device[device].first; i != GPI_NONE; i = r->next[i % GPI_RUN_DEVICES]) {
        r = &p->run[i / GPI_RUN_DEVICES];
        if (!gpi_memory_stays(p, r) || r->class == class)
            continue;
        o = going_of(p, r, hard_at);
        if (o.at == GPI_NEVER)
            return o;
        o = (struct gpi_obstacle){ GPI_REASON_OCCUPIED, r->class, GPI_NEVER };
    }
    return o;
}

bool gpi_evict_is_ripe(struct gpi_plan *p, uint32_t shape, uint32_t variant)
{
    const struct gpi_shape *s = &p->shape[shape];
    uint32_t n = gpi_memory_count(p, s->kinds_of[variant]);
    struct way w;

    for (uint32_t d = 0; d < p->n_devices; d++)
        n += is_way(p, s, variant, d, hard_at(p, s), &w) && w.at <= p->now &&
             who_follows(p, shape, &w) == GPI_NONE;
    return n >= s->request[variant].devices;
}

struct gpi_obstacle gpi_evict_obstacle(struct gpi_plan *p, uint32_t shape, uint32_t variant,
                                       uint32_t device)
{
    const struct gpi_shape *s = &p->shape[shape];
    const struct gpi_request *r = &s->request[variant];
    const uint64_t hard = hard_at(p, s);
    uint32_t other;
    struct gpi_obstacle last, going;
    struct way w;

    last = who_stays(p, device, s->class, r, hard);
    if (gpi_memory_count(p, s->kinds_of[variant]) >= r->devices)
        return (struct gpi_obstacle){ GPI_REASON_OCCUPIED, last.class, GPI_NEVER };
    if (!find_way(p, device, s->class, r, hard, &w))
        return last;
    if ((other = who_follows(p, shape, &w)) != GPI_NONE)
        return (struct gpi_obstacle){ GPI_REASON_HEAD_HOLDS, other, GPI_NEVER };
    last.at = 0;
    for (uint32_t i = 0; i < w.n; i++)
        if ((going = going_of(p, &p->run[w.victim[i]], hard)).at > last.at)
            last = going;
    for (uint32_t i = 0; i < w.n && last.at <= p->now; i++)
        if (gpi_revoke_is_ahead(p, w.victim[i]))
            last =
                (struct gpi_obstacle){ GPI_REASON_MAX_WAIT, p->run[w.victim[i]].class, GPI_NEVER };
    return last;
}

/* ---- idle transient workers ---- */

uint32_t gpi_evict_served(const struct gpi_plan *p, uint32_t run, uint32_t shape)
{
    const struct gpi_run *w = &p->run[run];

    for (uint32_t i = p->class[w->class].paused ? GPI_NONE : gpi_shape_first(p);
         i != GPI_NONE && (shape == GPI_NONE || !gpi_shape_precedes(p, shape, i));
         i = gpi_shape_next(p, i, GPI_BIT_ANY)) {
        const struct gpi_shape *s = &p->shape[i];
        if (s->class == w->class && !s->loads && gpi_memory_serves(p, w, s))
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
    return !c->set.pinned && gpi_evict_served(p, run, shape) == GPI_NONE;
}

/* Returns the number of idle transient workers without which the device fits, and lists them; 0: it
 * does not.  Those that unload already count, and are listed, too. */
static uint32_t find_spare(const struct gpi_plan *p, uint32_t device, uint32_t shape,
                           const struct gpi_request *r, uint32_t *ret)
{
    const struct gpi_plan_device *d = &p->device[device];
    uint64_t held = d->reserved;
    uint32_t n = 0, rest = d->runs, alone = d->alone;
    const struct gpi_run *w;

    for (uint32_t i = d->first; i != GPI_NONE; i = w->next[i % GPI_RUN_DEVICES]) {
        w = &p->run[i / GPI_RUN_DEVICES];
        if (n == VICTIMS || !is_spare(p, i / GPI_RUN_DEVICES, shape))
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
    uint32_t spare[VICTIMS];
    const uint32_t n = find_spare(p, device, shape, r, spare);

    for (uint32_t i = 0; i < n; i++)
        if (p->run[spare[i]].work == GPI_WORK_IDLE)
            gpi_leave_worker(p, spare[i]);
    return n > 0;
}

/* Returns true if enough devices of which the shape is the head are free, or are cleared now. */
static bool evict_spare(struct gpi_plan *p, uint32_t shape, uint32_t variant)
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

/* ---- a shape that lacks a run ---- */

/* The workers with a run, as a shape that lacks one finds them. */
struct runs {
    uint32_t unloading, draining; /* numbers of them: each is about to release its run */
    uint32_t calm, first;         /* that goes next: one without work, one of all; GPI_NONE */
};

static bool is_next(const struct gpi_plan *p, uint32_t run, uint32_t best, uint64_t hard_at)
{
    return goes_at(p, &p->run[run], hard_at) != GPI_NEVER &&
           (best == GPI_NONE || goes_before(p, run, best, hard_at));
}

/* Returns true if a worker serves the shape, or could boot for it as things are. */
static bool is_possible(const struct gpi_plan *p, const struct gpi_shape *s)
{
    bool could = !s->cold;

    for (uint32_t i = 0; i < s->n_requests && !could; i++)
        could = gpi_shape_in_reach(p, s->class, &s->request[i]);
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
    const uint64_t hard = hard_at(p, &p->shape[shape]);
    const struct runs f = find_runs(p, shape, hard);
    const uint64_t calm_at =
        f.calm == GPI_NONE ? GPI_NEVER : goes_at(p, &p->run[f.calm], GPI_NEVER);
    const uint64_t at = f.first == GPI_NONE ? GPI_NEVER : goes_at(p, &p->run[f.first], hard);
    const struct way way = { .n = 1, .victim = { f.first } };

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

uint32_t gpi_evict_replaced(const struct gpi_plan *p, uint32_t shape)
{
    const struct gpi_shape *s = &p->shape[shape];
    const struct gpi_learned *c = &p->class[s->class];
    uint32_t i = c->set.residence == GPI_TRANSIENT ? c->idle : GPI_NONE;

    while (i != GPI_NONE && (gpi_memory_serves(p, &p->run[i], s) ||
                             gpi_evict_served(p, i, s->cold ? shape : GPI_NONE) != GPI_NONE))
        i = p->run[i].list_next;
    return i;
}

/* Returns true if idle workers are all that keeps the shape from the device. */
static bool frees(const struct gpi_plan *p, uint32_t shape, const struct gpi_request *r,
                  uint32_t device, uint64_t kinds)
{
    const struct gpi_plan_device *d = &p->device[device];
    uint32_t spare[VICTIMS];

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
    struct way w;

    for (uint32_t d = 0; d < p->n_devices && n < r->devices; d++) {
        if (gpi_is_among(device, has, d))
            continue;
        if (frees(p, shape, r, d, kinds)) {
            n++;
        } else if (is_way(p, s, variant, d, hard_at(p, s), &w)) {
            n += w.at <= p->now;
            *ret_at = w.at > p->now ? gpi_time_min(*ret_at, w.at) : *ret_at;
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

bool gpi_evict_may_replace(const struct gpi_plan *p, uint32_t class)
{
    const struct gpi_learned *c = &p->class[class];
    const bool is_full = c->workers - c->leaving >= c->set.max_workers;

    return c->set.residence == GPI_TRANSIENT && c->queued && !c->paused &&
           (is_full || (p->free_run == GPI_NONE && !is_unloading(p)));
}

/* A shape lets an idle worker of its class go that does not serve it.  Returns when one goes, if
 * none does now. */
static uint64_t replace(struct gpi_plan *p, uint32_t shape)
{
    const struct gpi_shape *s = &p->shape[shape];
    const bool would_boot = s->cold || p->class[s->class].booting == GPI_NONE;
    const bool may = s->late && would_boot && gpi_evict_may_replace(p, s->class);
    const uint32_t idle = may ? gpi_evict_replaced(p, shape) : GPI_NONE;
    const uint64_t at = idle == GPI_NONE ? GPI_NEVER : could_boot_at(p, shape);

    if (at > p->now)
        return at;
    gpi_leave_worker(p, idle);
    return GPI_NEVER;
}

void gpi_evict_for(struct gpi_plan *p, uint32_t shape)
{
    const uint32_t n = p->shape[shape].n_requests;
    const struct gpi_learned *c = &p->class[p->shape[shape].class];
    const bool may = p->shape[shape].begins;
    uint64_t at = GPI_NEVER;

    gpi_heap_remove(&p->times, shape);
    for (uint32_t i = 0; i < n && may && p->n_firm && at > p->now; i++)
        at = gpi_time_min(at, evict_variant(p, shape, i));
    for (uint32_t i = 0; i < n && may && p->n_spare; i++)
        if (evict_spare(p, shape, i))
            break;
    at = gpi_time_min(at, replace(p, shape));
    if (p->shape[shape].lacks_run)
        at = gpi_time_min(at, evict_for_run(p, shape));
    if (p->now < c->again)
        at = gpi_time_min(at, c->again);
    if (!p->shape[shape].late)
        at = gpi_time_min(at, gpi_shape_late_at(p, shape));
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
