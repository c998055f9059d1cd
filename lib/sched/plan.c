/* SPDX-License-Identifier: MIT */
/*
 * plan.c - the entries of a plan, and its decision.                               [S5] [S6] [S7]
 *
 * A decision examines shapes in order: the ones whose first task is new, and the first one of each
 * kind in which something became free.  A shape that does not fit is the head of its kinds.  Then
 * come the shapes that may pass it.  While nothing changes, nothing is examined.
 */
#include "sched/plan.h"

#include <stdlib.h>

#include "sched/plan_parts.h"

/* ---- life ---- */

struct gpi_plan *gpi_plan_create(const struct gpi_plan_settings *set)
{
    struct gpi_plan *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->set = *set;
    p->again = GPI_NEVER;
    p->most_shapes = set->shapes + set->classes; /* each class has a load task */
    p->class = calloc(set->classes, sizeof *p->class);
    if (p->class && gpi_actions_make(p) == 0 && gpi_memory_make(p) == 0 && gpi_shape_make(p) == 0 &&
        gpi_reserve_make(p) == 0 && gpi_leave_make(p) == 0 && gpi_evict_make(p) == 0 &&
        gpi_grant_make(p) == 0)
        return p;
    gpi_plan_destroy(p);
    return NULL;
}

void gpi_plan_destroy(struct gpi_plan *p)
{
    if (!p)
        return;
    gpi_memory_free(p);
    gpi_shape_free(p);
    gpi_reserve_free(p);
    gpi_evict_free(p);
    gpi_leave_free(p);
    gpi_grant_free(p);
    gpi_actions_free(p);
    free(p->class);
    free(p);
}

void gpi_plan_class_add(struct gpi_plan *p, uint32_t class, const struct gpi_plan_class *set)
{
    assert(class < p->set.classes && p->class[class].workers == 0);
    p->class[class] = (struct gpi_learned){ .set = *set,
                                            .late = gpi_grant_late(p, class),
                                            .boot = { .p50 = set->boot },
                                            .unload = { .p50 = set->unload },
                                            .run = { .p50 = set->run },
                                            .idle = GPI_NONE,
                                            .booting = GPI_NONE };
    p->has_workers |= set->residence != GPI_EXTERNAL;
    gpi_tenancy_load(p, class);
}

/* Classes may lack workers, or may have them no more. */
static void load_classes(struct gpi_plan *p)
{
    for (uint32_t i = 0; i < p->set.classes; i++)
        gpi_tenancy_load(p, i);
}

void gpi_plan_device_add(struct gpi_plan *p, uint32_t device, const struct gpi_plan_has *has)
{
    gpi_memory_add(p, device, has);
    gpi_shape_sort(p, device);
    load_classes(p);
}

static void empty_places(struct gpi_plan *p, uint32_t set)
{
    for (uint32_t i = 0; i < p->n_devices; i++)
        if (gpi_memory_leave_places(p, set, i))
            gpi_shape_sort(p, i);
}

void gpi_plan_places_add(struct gpi_plan *p, uint32_t set, const uint16_t *device, uint32_t n)
{
    if (n == 0)
        empty_places(p, set);
    gpi_memory_add_places(p, set, device, n);
    for (uint32_t i = 0; i < n; i++)
        gpi_shape_sort(p, device[i]);
    load_classes(p);
}

static void mark(bool *used, const struct gpi_request *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        used[r[i].places] = true;
}

void gpi_plan_mark_places(const struct gpi_plan *p, bool *used)
{
    for (uint32_t i = 0; i < p->set.runs; i++)
        if (p->run[i].work != GPI_WORK_NONE)
            used[p->run[i].need.places] = true;
    for (uint32_t i = 0; i < p->most_shapes; i++)
        if (p->shape[i].count)
            mark(used, p->shape[i].request, p->shape[i].n_requests);
}

uint64_t gpi_plan_memory(const struct gpi_plan *p, uint32_t run)
{
    return p->run[run].need.memory;
}

bool gpi_plan_is_place(const struct gpi_plan *p, uint32_t set, uint32_t device)
{
    return gpi_memory_is_place(p, set, device);
}

uint32_t gpi_plan_warm(struct gpi_plan *p, uint32_t class, const uint16_t *device, uint32_t n)
{
    return gpi_tenancy_warm(p, class, device, n);
}

bool gpi_plan_could(const struct gpi_plan *p, const struct gpi_request *r)
{
    return gpi_memory_could_hold(p, r);
}

uint32_t gpi_plan_holds(const struct gpi_plan *p, const struct gpi_request *r)
{
    return gpi_memory_holds(p, r);
}

/* ---- facts ---- */

static void set_time(struct gpi_plan *p, uint64_t now)
{
    assert(now >= p->now && p->ring_count == 0);
    p->now = now;
    p->gap_of = GPI_NONE;
}

struct gpi_plan_task gpi_plan_own(const struct gpi_plan *p, const struct gpi_plan_task *what)
{
    const struct gpi_learned *c = &p->class[what->class];
    struct gpi_plan_task own = *what;

    own.order = gpi_time_add(what->order, p->set.classes); /* load tasks are older */
    if (c->set.residence == GPI_RESIDENT) {
        own.request = c->set.need;
        own.n_requests = c->set.n_needs;
    }
    assert(own.n_requests >= 1 && own.n_requests <= GPI_VARIANTS);
    return own;
}

bool gpi_plan_submit(struct gpi_plan *p, uint64_t now, uint32_t task,
                     const struct gpi_plan_task *what)
{
    const struct gpi_plan_task own = gpi_plan_own(p, what);
    uint32_t place, shape;

    assert(task < p->set.tasks);
    set_time(p, now);
    place = gpi_shape_place(p, task, &own);
    shape = p->table[place];
    if (shape != GPI_NONE && own.order < p->task[p->shape[shape].head].order)
        gpi_reserve_displaced(p, shape);
    if (!gpi_shape_put(p, place, task, &own))
        return false;
    p->unsure |= 1u << GPI_PROMISE_ORDER;
    if (what->stream)
        gpi_revoke_class_known(p, what->class);
    return true;
}

void gpi_plan_withdraw(struct gpi_plan *p, uint64_t now, uint32_t task)
{
    const uint32_t class = p->shape[p->task[task].holder].class;

    set_time(p, now);
    gpi_tenancy_withdraw(p, task);
    gpi_leave_boots(p, class);
}

void gpi_plan_end(struct gpi_plan *p, uint64_t now, uint32_t task, bool good, uint64_t run,
                  uint64_t keep_alive)
{
    set_time(p, now);
    gpi_grant_end(p, task, good, run, keep_alive);
}

void gpi_plan_ends_by(struct gpi_plan *p, uint64_t now, uint32_t task, uint64_t at)
{
    set_time(p, now);
    gpi_grant_ends_by(p, task, at);
}

bool gpi_plan_has_run(const struct gpi_plan *p)
{
    return p->free_run != GPI_NONE;
}

uint32_t gpi_plan_adopt(struct gpi_plan *p, uint64_t now, uint32_t task,
                        const struct gpi_plan_adoption *a)
{
    assert(p->class[a->class].set.residence == GPI_EXTERNAL);
    set_time(p, now);
    return gpi_grant_adopt(p, task, a);
}

void gpi_plan_up(struct gpi_plan *p, uint64_t now, uint32_t worker)
{
    set_time(p, now);
    gpi_tenancy_up(p, worker);
}

void gpi_plan_leaves(struct gpi_plan *p, uint64_t now, uint32_t worker)
{
    set_time(p, now);
    gpi_tenancy_leaves(p, worker);
}

void gpi_plan_gone(struct gpi_plan *p, uint64_t now, uint32_t worker, uint64_t again)
{
    set_time(p, now);
    gpi_tenancy_gone(p, worker, again);
}

uint64_t gpi_plan_due(const struct gpi_plan *p)
{
    const uint64_t at = gpi_time_min(gpi_heap_top_key(&p->times), gpi_heap_top_key(&p->keeps));

    return gpi_time_min(at, p->again);
}

static void device_changed(struct gpi_plan *p, uint32_t device, uint32_t old_kind)
{
    gpi_shape_sort(p, device);
    p->changed |= GPI_BIT_KIND(old_kind); /* its head has a device less */
    gpi_shape_evict_again(p);
    p->unsure |= 1u << GPI_PROMISE_DEVICE;
}

void gpi_plan_device(struct gpi_plan *p, uint64_t now, uint32_t device, enum gpi_plan_may may)
{
    const uint32_t kind = p->device[device].kind;
    set_time(p, now);
    gpi_memory_may(p, device, may);
    device_changed(p, device, kind);
    if (may == GPI_PLAN_DRAINED)
        gpi_leave_device(p, device);
    load_classes(p);
}

void gpi_plan_foreign(struct gpi_plan *p, uint64_t now, uint32_t device, uint64_t bytes,
                      uint32_t load)
{
    const uint32_t kind = p->device[device].kind;
    set_time(p, now);
    if (!gpi_memory_foreign(p, device, bytes, load))
        return;
    device_changed(p, device, kind);
}

void gpi_plan_observed(struct gpi_plan *p, uint64_t now, uint32_t worker, uint32_t device,
                       uint64_t bytes)
{
    const uint32_t kind = p->device[device].kind;
    const struct gpi_run *r = &p->run[worker];
    uint32_t at = 0;

    set_time(p, now);
    while (at < r->n_devices && r->device[at] != device)
        at++;
    if (r->work == GPI_WORK_NONE || at == r->n_devices ||
        !gpi_memory_observed(p, worker, at, bytes))
        return;
    device_changed(p, device, kind);
}

static void pause(struct gpi_plan *p, uint32_t class, bool paused)
{
    p->class[class].paused = paused;
    gpi_shape_pause(p, class);
    p->unsure |= 1u << GPI_PROMISE_CLASS;
    gpi_tenancy_load(p, class);
    gpi_leave_boots(p, class);
    gpi_leave_keep(p, class); /* its idle workers are calm, or no more */
    gpi_shape_evict_again(p);
}

void gpi_plan_class_set(struct gpi_plan *p, uint64_t now, uint32_t class,
                        enum gpi_plan_class_what what)
{
    struct gpi_learned *c = &p->class[class];

    set_time(p, now);
    if (what == GPI_CLASS_REMOVE)
        return;
    if (what == GPI_CLASS_LOAD || what == GPI_CLASS_RESUME)
        gpi_tenancy_forgive(p, class);
    if (what == GPI_CLASS_PIN || what == GPI_CLASS_UNPIN) {
        c->set.pinned = what == GPI_CLASS_PIN;
        if (p->n_devices)
            gpi_shape_sort(p, 0);     /* devices may be out of reach now, or in reach */
        p->changed |= GPI_BITS_KINDS; /* idle workers may go for the heads of their devices */
        gpi_leave_keep(p, class);
        gpi_shape_evict_again(p);
        return;
    }
    if (what == GPI_CLASS_LOAD)
        c->to_load |= c->workers == c->leaving; /* its first load may boot */
    if (what == GPI_CLASS_UNLOAD || what == GPI_CLASS_END)
        c->to_load = false;
    if (what == GPI_CLASS_END)
        c->set.min_workers = 0;
    if (what == GPI_CLASS_UNLOAD || what == GPI_CLASS_DRAIN || what == GPI_CLASS_END)
        gpi_leave_class(p, class);
    if (what == GPI_CLASS_LOAD || what == GPI_CLASS_UNLOAD)
        gpi_tenancy_load(p, class);
    else
        pause(p, class, what != GPI_CLASS_RESUME);
}

void gpi_plan_queue(struct gpi_plan *p, uint64_t now, uint32_t class, uint32_t n, uint64_t run)
{
    set_time(p, now);
    gpi_grant_queue(p, class, n, run);
    gpi_leave_boots(p, class);
}

void gpi_plan_run_seed(struct gpi_plan *p, uint64_t now, uint32_t class, uint64_t run)
{
    set_time(p, now);
    if (p->class[class].run.n == 0)
        p->class[class].run.p50 = run;
    gpi_shape_class(p, class);
}

uint32_t gpi_plan_wants_from(const struct gpi_plan *p, uint32_t class)
{
    return gpi_shape_wants_from(p, &p->class[class]);
}

/* ---- the decision ---- */

static uint32_t first_fresh(const struct gpi_plan *p)
{
    const struct gpi_tree_wanted fresh = { GPI_BIT_FRESH, UINT64_MAX, UINT32_MAX };

    if (p->n_fresh == 1 && p->shape[p->last_fresh].fresh)
        return p->last_fresh;
    return p->n_fresh ? gpi_tree_first(&p->order, &fresh) : GPI_NONE;
}

/* Returns the first shape that is new, or is the first of a kind that got something free. */
static uint32_t next_shape(struct gpi_plan *p)
{
    uint32_t next = first_fresh(p);

    for (uint64_t left = p->changed; left; left &= left - 1) {
        const uint32_t head = gpi_shape_head(p, gpi_lowest_bit(left));
        if (head != GPI_NONE && (next == GPI_NONE || gpi_shape_precedes(p, head, next)))
            next = head;
    }
    return next;
}

static void examine(struct gpi_plan *p)
{
    uint32_t shape;

    while ((shape = next_shape(p)) != GPI_NONE) {
        const uint64_t bits = p->order.node[shape].mask & p->changed;
        p->changed &= ~bits; /* unless the try changes something itself */
        if (gpi_grant_try(p, shape))
            p->changed |= bits;
    }
    p->changed = 0;
}

/* Returns true if a task of the shape could begin in an idle worker, or in a run or worker of its
 * own.  Else no free share helps it. */
static bool is_able(const struct gpi_plan *p, uint32_t shape)
{
    const struct gpi_shape *s = &p->shape[shape];
    bool able = p->class[s->class].idle != GPI_NONE;

    for (uint32_t i = 0; i < s->n_requests && !able; i++)
        able = s->kinds_of[i] != 0;
    return able;
}

/* Examines the shapes that may pass the head of a kind.  Returns true if one has. */
static bool let_pass(struct gpi_plan *p, uint32_t bit)
{
    const uint32_t head = gpi_shape_head(p, bit);
    const bool is_host = bit == GPI_KINDS;
    struct gpi_tree_wanted w = { 1ull << bit, GPI_NEVER,
                                 is_host ? UINT32_MAX : gpi_memory_offer(p) };
    uint32_t shape = head;

    while (shape != GPI_NONE) {
        shape = is_host ? gpi_tree_next(&p->order, shape, &w)
                        : gpi_reserve_next(p, head, bit, shape, &w);
        if (shape != GPI_NONE && is_able(p, shape) && gpi_grant_try(p, shape))
            return true;
    }
    return false;
}

/* Examines the shapes that may boot beside the head of the kind.                          [R5] */
static bool let_boot(struct gpi_plan *p, uint32_t bit)
{
    const struct gpi_tree_wanted w = { GPI_BIT_BOOTS, UINT64_MAX, UINT32_MAX };

    for (uint32_t i = gpi_tree_first(&p->order, &w); i != GPI_NONE;
         i = gpi_tree_next(&p->order, i, &w))
        if (p->shape[i].kinds >> bit & 1 && gpi_shape_head(p, bit) != i && gpi_grant_try(p, i))
            return true;
    return false;
}

/* Returns true if something has changed, so the shapes are to be examined again. */
static bool pass(struct gpi_plan *p)
{
    /* In STRICT mode only CPU slots and host memory are passed on: CPU tasks wait for no device. */
    const uint64_t may = p->set.mode == GPI_MODE_STRICT ? GPI_BIT_HOST : UINT64_MAX;
    uint64_t left;

    while ((left = p->passable & p->free_kinds & may) != 0) {
        if (let_pass(p, gpi_lowest_bit(left)) ||
            (p->has_workers && may == UINT64_MAX && let_boot(p, gpi_lowest_bit(left))) ||
            p->changed)
            return true;
        p->passable &= ~(left & -left);
    }
    p->passable = 0;
    return false;
}

void gpi_plan_decide(struct gpi_plan *p, uint64_t now)
{
    set_time(p, now);
    gpi_tenancy_time(p);
    gpi_evict_time(p);
    p->stats.decisions += p->changed || p->n_fresh;
    do {
        do
            examine(p);
        while (pass(p));
        gpi_reserve_renew(p);
        gpi_leave_kept(p); /* after the starts: a task goes before the end of a keep_alive   [R6] */
    } while (p->changed || p->passable || p->n_fresh);
    gpi_revoke_doubted(p);
}

bool gpi_plan_idles(struct gpi_plan *p)
{
    bool idles = false;

    for (uint32_t bit = 0; bit <= GPI_KINDS && !idles; bit++) {
        const uint32_t head = bit < p->n_kinds || bit == GPI_KINDS ? gpi_shape_head(p, bit)
                                                                   : GPI_NONE;
        idles = head != GPI_NONE && gpi_grant_could(p, head);
    }
    return idles;
}

const struct gpi_plan_stats *gpi_plan_stats(const struct gpi_plan *p)
{
    return &p->stats;
}

void gpi_plan_times(const struct gpi_plan *p, uint32_t class, struct gpi_plan_times *ret)
{
    const struct gpi_learned *c = &p->class[class];

    ret->boot = gpi_learn_times(&c->boot);
    ret->unload = gpi_learn_times(&c->unload);
    ret->run = gpi_learn_times(&c->run);
}

void gpi_plan_usual(const struct gpi_plan *p, uint32_t class, struct gpi_plan_usual *ret)
{
    const struct gpi_learned *c = &p->class[class];

    *ret = (struct gpi_plan_usual){ c->boot.p50, c->unload.p50, c->run.p50 };
}
