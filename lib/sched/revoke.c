/* SPDX-License-Identifier: MIT */
/*
 * revoke.c - granted runs: the caller starts further tasks in the worker, without a decision. [R1]
 *
 * No limit ends a granted run, so no promise counts on it, and nothing is known of its end until it
 * is revoked.  That is as soon as a task waits that is not in its queue and may use a device of the
 * run.  If the run has CPU slots, it is also one that needs something of the machine.  The third
 * case is a task that is to evict the worker.
 *
 * A check takes all granted runs.  It is made only after a shape has come to a kind that has some,
 * or a device or a class has changed: shape.c notes that in `doubted`.
 *
 * The caller may have older tasks of the class than the plan knows: tasks that it has sent into a
 * run that is now revoked, or the next task of its queue, once the stream task has begun.  The plan
 * knows their age with the next stream task.  Until then the run is ahead of them, and the workers
 * of the class stay: each of them could take such a task.                                   [R6]
 */
#include "sched/plan_parts.h"

static uint64_t bits_of(const struct gpi_plan *p, const struct gpi_run *r)
{
    return gpi_memory_kinds_of(p, r) | (r->need.cpus ? GPI_BIT_HOST : 0);
}

static bool is_off(const struct gpi_plan *p, const struct gpi_run *r)
{
    bool off = p->class[r->class].paused;

    for (uint32_t i = 0; i < r->n_devices; i++)
        off |= p->device[r->device[i]].may != GPI_PLAN_IN;
    return off;
}

static bool may_use(const struct gpi_plan *p, const struct gpi_shape *s, uint64_t bits)
{
    return s->kinds & bits & GPI_BITS_KINDS ||
           (bits & GPI_BIT_HOST && s->needs_host && !p->class[s->class].paused);
}

/* The first task of the shape is not in the queue that the run takes its tasks from. */
static bool is_other(const struct gpi_plan *p, const struct gpi_shape *s, const struct gpi_run *r)
{
    return s->class != r->class || (!s->loads && !p->task[s->head].stream);
}

/* Returns true if a task may use a part of the run that is not in its queue, or one of a shape that
 * comes before `shape`; GPI_NONE: the first alone. */
static bool is_wanted(const struct gpi_plan *p, const struct gpi_run *r, uint32_t shape)
{
    const uint64_t bits = bits_of(p, r);
    const struct gpi_tree_wanted w = { bits & GPI_BIT_HOST ? GPI_BIT_ANY : bits, UINT64_MAX,
                                       UINT32_MAX };

    for (uint32_t i = gpi_tree_first(&p->order, &w); i != GPI_NONE;
         i = gpi_tree_next(&p->order, i, &w))
        if ((is_other(p, &p->shape[i], r) ||
             (shape != GPI_NONE && gpi_shape_precedes(p, i, shape))) &&
            may_use(p, &p->shape[i], bits))
            return true;
    return false;
}

/* One that comes before it may be passed for as long as a limit, and a grant has none. */
bool gpi_revoke_may_grant(const struct gpi_plan *p, const struct gpi_run *r, uint32_t shape)
{
    return !is_wanted(p, r, shape);
}

static void link_run(struct gpi_plan *p, uint32_t run, uint32_t *list)
{
    struct gpi_run *r = &p->run[run];

    r->list_prev = GPI_NONE;
    r->list_next = *list;
    if (*list != GPI_NONE)
        p->run[*list].list_prev = run;
    *list = run;
}

static void unlink_run(struct gpi_plan *p, uint32_t run, uint32_t *list)
{
    const struct gpi_run *r = &p->run[run];

    if (r->list_prev == GPI_NONE)
        *list = r->list_next;
    else
        p->run[r->list_prev].list_next = r->list_next;
    if (r->list_next != GPI_NONE)
        p->run[r->list_next].list_prev = r->list_prev;
}

static void is_ahead(struct gpi_plan *p, uint32_t run)
{
    p->run[run].ahead = true;
    link_run(p, run, &p->ahead);
}

void gpi_revoke_start(struct gpi_plan *p, uint32_t run, bool granted)
{
    struct gpi_run *r = &p->run[run];

    if (!granted) {
        is_ahead(p, run);
        return;
    }
    r->grant = GPI_GRANT_LASTS;
    r->end_by = GPI_NEVER;
    r->plausible = 0;
    link_run(p, run, &p->granted);
    p->granted_kinds |= bits_of(p, r);
}

void gpi_revoke_forget(struct gpi_plan *p, uint32_t run)
{
    if (p->run[run].grant != GPI_GRANT_LASTS)
        return;
    p->run[run].grant = GPI_GRANT_REVOKED;
    unlink_run(p, run, &p->granted);
    if (p->granted == GPI_NONE)
        p->granted_kinds = 0;
    is_ahead(p, run);
}

void gpi_revoke_run(struct gpi_plan *p, uint32_t run)
{
    gpi_revoke_forget(p, run);
    gpi_actions_put(p, GPI_PLAN_REVOKE, p->run[run].task, 0, p->now);
}

void gpi_revoke_known(struct gpi_plan *p, uint32_t run)
{
    struct gpi_run *r = &p->run[run];

    if (!r->ahead)
        return;
    unlink_run(p, run, &p->ahead);
    if (r->awaited)
        gpi_shape_evict_again(p);
    r->ahead = r->awaited = false;
}

/* Another run of the class is ahead, and the caller has a task of the class that may be older. */
static bool hides(const struct gpi_plan *p, const struct gpi_run *other)
{
    return other->grant == GPI_GRANT_REVOKED || p->class[other->class].behind > 0;
}

bool gpi_revoke_is_ahead(const struct gpi_plan *p, uint32_t run)
{
    const struct gpi_run *r = &p->run[run];
    bool is = r->ahead;

    for (uint32_t i = p->ahead; i != GPI_NONE && !is; i = p->run[i].list_next)
        is = p->run[i].class == r->class && hides(p, &p->run[i]);
    return is;
}

bool gpi_revoke_await(struct gpi_plan *p, uint32_t run)
{
    const bool awaits = gpi_revoke_is_ahead(p, run);

    for (uint32_t i = p->ahead; i != GPI_NONE && awaits; i = p->run[i].list_next)
        p->run[i].awaited |= p->run[i].class == p->run[run].class;
    return awaits;
}

void gpi_revoke_class_empty(struct gpi_plan *p, uint32_t class)
{
    for (uint32_t i = p->ahead; i != GPI_NONE; i = p->run[i].list_next)
        if (p->run[i].class == class && p->run[i].awaited)
            gpi_shape_evict_again(p);
}

void gpi_revoke_class_known(struct gpi_plan *p, uint32_t class)
{
    for (uint32_t run = p->ahead, next; run != GPI_NONE; run = next) {
        next = p->run[run].list_next;
        if (p->run[run].class == class)
            gpi_revoke_known(p, run);
    }
}

void gpi_revoke_end(struct gpi_plan *p, uint32_t run)
{
    gpi_revoke_forget(p, run);
    gpi_revoke_known(p, run);
    p->run[run].grant = GPI_GRANT_NONE;
}

void gpi_revoke_doubted(struct gpi_plan *p)
{
    const bool doubted = p->doubted & (p->granted_kinds | ~GPI_BITS_HEADED);
    uint64_t kinds = 0;

    for (uint32_t run = p->granted, next; doubted && run != GPI_NONE; run = next) {
        next = p->run[run].list_next;
        if (is_off(p, &p->run[run]) || is_wanted(p, &p->run[run], GPI_NONE)) {
            gpi_revoke_run(p, run);
        } else {
            kinds |= bits_of(p, &p->run[run]);
        }
    }
    if (doubted)
        p->granted_kinds = kinds; /* a device may be of another kind now */
    p->doubted = 0;
}
