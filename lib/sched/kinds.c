/* SPDX-License-Identifier: MIT */
/*
 * kinds.c - the kinds of devices that a shape may use: where a worker of its class is, where one
 * may boot, and which devices it keeps from younger workers.                          [R2] [R5]
 *
 * They depend on how long its first task has waited: late after a boot, pressed after max_wait.
 */
#include "sched/plan_parts.h"

typedef bool has_fn(const struct gpi_plan *p, uint32_t device, const struct gpi_shape *s);

static uint64_t kinds_where(const struct gpi_plan *p, const struct gpi_shape *s, has_fn *has)
{
    uint64_t kinds = 0;

    for (uint32_t i = 0; i < p->n_kinds; i++)
        if (i < GPI_KIND_MIXED && p->kind[i].n && has(p, p->kind[i].member[0], s))
            kinds |= GPI_BIT_KIND(i);
    return kinds;
}

static bool could_start(const struct gpi_plan *p, const struct gpi_shape *s)
{
    bool could = false;

    for (uint32_t i = 0; i < s->n_requests && !could; i++)
        could = gpi_memory_could_hold(p, &s->request[i]);
    return could;
}

/* A variant that too few devices could ever hold as things are holds none of them. */
static bool is_in_reach(const struct gpi_plan *p, const struct gpi_request *r, uint64_t kinds,
                        uint32_t class)
{
    uint32_t n = gpi_memory_count(p, kinds);

    for (uint32_t d = 0; d < p->n_devices && n < r->devices; d++)
        n += !(kinds & GPI_BIT_KIND(p->device[d].kind)) && gpi_memory_could_clear(p, d, r, class);
    return n >= r->devices;
}

bool gpi_kinds_in_reach(const struct gpi_plan *p, uint32_t class, const struct gpi_request *r)
{
    return r->devices == 0 || (!gpi_staff_is_enough(p, class, r) &&
                               is_in_reach(p, r, gpi_memory_kinds(p, class, r), class));
}

/* Workers that stay may leave it too few devices.  Then it keeps none until these go for it, unless
 * no later task may delay the first one.                                                   [R2] */
bool gpi_kinds_claims(const struct gpi_plan *p, const struct gpi_shape *s, uint32_t variant,
                      uint32_t more)
{
    return gpi_memory_count(p, s->kinds_of[variant]) + more >= s->request[variant].devices ||
           s->pressed || gpi_shape_is_strict(p);
}

static void find_kinds_of(const struct gpi_plan *p, struct gpi_shape *s, uint32_t variant)
{
    const struct gpi_request *r = &s->request[variant];
    uint64_t *const kinds = &s->kinds_of[variant];
    const bool may = s->begins && !gpi_staff_is_enough(p, s->class, r);
    bool is_short;

    *kinds = !may ? 0 : r->devices ? gpi_memory_kinds(p, s->class, r) : GPI_BIT_HOST;
    is_short = s->begins && gpi_memory_count(p, *kinds) < r->devices;
    s->is_short |= is_short;
    if (is_short && !(may && is_in_reach(p, r, *kinds, s->class))) {
        s->far |= (uint8_t)(1u << variant);
        *kinds = 0;
    }
    if (gpi_kinds_claims(p, s, variant, 0))
        s->claimed |= *kinds;
}

/* Returns true if a worker of its transient class serves the shape, or will. */
static bool has_worker(const struct gpi_plan *p, const struct gpi_shape *s)
{
    bool has = false;

    for (uint32_t i = 0; i < p->set.runs && p->class[s->class].workers && !has; i++) {
        const struct gpi_run *r = &p->run[i];
        has = r->work >= GPI_WORK_BOOT && r->work <= GPI_WORK_BUSY && r->class == s->class &&
              gpi_staff_serves(p, r, s);
    }
    return has;
}

static uint64_t late_at(const struct gpi_plan *p, const struct gpi_shape *s)
{
    const struct gpi_learned *c = &p->class[s->class];

    if (s->loads || s->head == GPI_NONE || c->set.residence == GPI_EXTERNAL)
        return GPI_NEVER;
    return gpi_time_add(gpi_shape_since(p, s->head) * GPI_MS, c->boot.p50);
}

uint64_t gpi_kinds_late_at(const struct gpi_plan *p, uint32_t shape)
{
    return late_at(p, &p->shape[shape]);
}

/* Returns true if a worker of its class serves the shape, or will. */
static bool is_served(const struct gpi_plan *p, const struct gpi_shape *s)
{
    const struct gpi_learned *c = &p->class[s->class];

    return !s->loads && c->workers > c->leaving && !s->cold;
}

uint64_t gpi_kinds_hard_at(const struct gpi_plan *p, const struct gpi_shape *s)
{
    const struct gpi_learned *c = &p->class[s->class];
    const uint64_t since = s->head == GPI_NONE ? p->now / GPI_MS : gpi_shape_since(p, s->head);

    return is_served(p, s) ? GPI_NEVER : gpi_time_add(since * GPI_MS, c->set.max_wait);
}

uint64_t gpi_kinds_older_at(const struct gpi_plan *p, uint32_t shape)
{
    const struct gpi_shape *s = &p->shape[shape];
    const uint64_t late = s->late ? GPI_NEVER : late_at(p, s);

    return s->pressed || !s->is_short ? late : gpi_time_min(late, gpi_kinds_hard_at(p, s));
}

/* Returns true if its first task has become late, or pressed, since its kinds were found. */
bool gpi_kinds_is_older(const struct gpi_plan *p, const struct gpi_shape *s)
{
    return s->late != (late_at(p, s) <= p->now) ||
           s->pressed != (gpi_kinds_hard_at(p, s) <= p->now);
}

/* Returns true if the class could add a worker for a task that none serves. */
bool gpi_kinds_may_add(const struct gpi_plan *p, const struct gpi_learned *c)
{
    return c->set.residence != GPI_EXTERNAL && !c->paused && p->now >= c->again &&
           c->workers - c->leaving < c->set.max_workers;
}

void gpi_kinds_find_if(const struct gpi_plan *p, struct gpi_shape *s, bool wants, bool adds)
{
    const struct gpi_learned *c = &p->class[s->class];

    s->cold = c->set.residence == GPI_TRANSIENT && !has_worker(p, s);
    s->served = is_served(p, s);
    s->late = late_at(p, s) <= p->now;
    s->pressed = gpi_kinds_hard_at(p, s) <= p->now;
    s->begins = c->set.residence == GPI_EXTERNAL
                    ? !c->paused
                    : wants || (adds && (s->cold || (s->late && c->booting == GPI_NONE)));
    s->warm = s->coming = 0;
    if (c->workers && !c->paused && !s->loads) {
        s->warm = kinds_where(p, s, gpi_staff_has_warm);
        if (c->booting != GPI_NONE && gpi_shape_is_strict(p)) /* idle while a worker boots */
            s->coming = kinds_where(p, s, gpi_staff_has_coming);
    }
    s->kinds = s->warm | s->coming;
    s->is_short = !s->begins && s->late && c->set.residence == GPI_TRANSIENT;
    s->far = 0;
    s->claimed = 0;
    for (uint32_t i = 0; i < s->n_requests; i++) {
        find_kinds_of(p, s, i);
        s->kinds |= s->served ? 0 : s->kinds_of[i];
    }
    s->kinds |= s->claimed;
    s->boots = c->set.residence == GPI_RESIDENT && s->begins;
    s->hopeless = p->n_gone && !s->loads && !could_start(p, s);
}

void gpi_kinds_find(const struct gpi_plan *p, struct gpi_shape *s)
{
    const struct gpi_learned *c = &p->class[s->class];

    gpi_kinds_find_if(p, s, c->wants, c->may_add);
}
