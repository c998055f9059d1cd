/* SPDX-License-Identifier: MIT */
/* tenancy.c - workers come and go: loads, the ends of boots, and of workers.      [R5] [R7] [S8] */
#include "sched/plan_parts.h"

/* ---- runs ---- */

void gpi_tenancy_take_run(struct gpi_plan *p, uint32_t run)
{
    p->free_run = p->run[run].task;
    p->run[run].task = GPI_NONE;
    if (p->free_run == GPI_NONE)
        p->unsure |= 1u << GPI_PROMISE_WORKERS; /* no time is known at which one is free */
}

void gpi_tenancy_free_run(struct gpi_plan *p, uint32_t run)
{
    p->run[run].work = GPI_WORK_NONE;
    p->run[run].task = p->free_run;
    p->free_run = run;
}

/* Where all runs were used, shapes may have waited for one alone. */
void gpi_tenancy_end_run(struct gpi_plan *p, uint32_t run)
{
    if (p->free_run == GPI_NONE) {
        p->changed |= GPI_BITS_HEADED;
        p->passable |= GPI_BITS_HEADED;
    }
    gpi_tenancy_free_run(p, run);
}

/* ---- idle workers ---- */

void gpi_tenancy_offer(struct gpi_plan *p, uint32_t class)
{
    const struct gpi_learned *c = &p->class[class];

    if (c->set.residence != GPI_TRANSIENT)
        return;
    for (uint32_t i = c->idle; i != GPI_NONE; i = p->run[i].list_next)
        p->changed |= gpi_memory_kinds_of(p, &p->run[i]);
}

void gpi_tenancy_calm(struct gpi_plan *p, uint32_t class)
{
    gpi_leave_keep(p, class);
    gpi_shape_evict_again(p);
}

void gpi_tenancy_idle(struct gpi_plan *p, uint32_t run)
{
    struct gpi_run *r = &p->run[run];
    struct gpi_learned *c = &p->class[r->class];

    r->work = GPI_WORK_IDLE;
    r->end_by = r->plausible = 0;
    gpi_leave_list(p, run, &c->idle);
    if (r->keep != GPI_NEVER)
        gpi_heap_set(&p->keeps, run, gpi_time_add(r->used, r->keep));
    p->n_spare += c->set.residence == GPI_TRANSIENT;
    if (c->queued == 0 || c->paused)
        gpi_shape_evict_again(p);
}

/* ---- load tasks ---- */

void gpi_tenancy_withdraw(struct gpi_plan *p, uint32_t task)
{
    const uint32_t shape = p->task[task].holder, class = p->shape[shape].class;
    const uint64_t bits = p->order.node[shape].mask & GPI_BITS_HEADED;
    const bool stream = p->task[task].stream;

    if (p->shape[shape].head == task) {
        gpi_reserve_leave(p, shape, 0);
        p->changed |= bits | GPI_BIT_HOST;
    }
    gpi_shape_take(p, task);
    if (stream)
        gpi_revoke_class_known(p, class);
    gpi_tenancy_offer(p, class);
    gpi_tenancy_calm(p, class);
}

static bool could_load(const struct gpi_plan *p, const struct gpi_learned *c)
{
    bool could = false;

    for (uint32_t i = 0; i < c->set.n_needs && !could; i++)
        could = gpi_memory_could_hold(p, &c->set.need[i]);
    return could;
}

/* A worker without a queue boots for a task that never runs: it takes part in the order.  [R5] */
void gpi_tenancy_load(struct gpi_plan *p, uint32_t class)
{
    const struct gpi_learned *c = &p->class[class];
    const uint32_t task = p->set.tasks + class;
    const bool waits = p->task[task].holder != GPI_NONE;
    const bool lacks =
        !c->paused && c->workers - c->leaving < gpi_shape_least_workers(c) && could_load(p, c);
    const struct gpi_plan_task what = { .class = class,
                                        .order = class,
                                        .limit = GPI_NEVER,
                                        .request = c->set.need,
                                        .n_requests = c->set.n_needs };

    if (lacks == waits || c->set.residence != GPI_RESIDENT)
        return;
    if (lacks) {
        /* It has a shape of its own. */
        (void)gpi_shape_put(p, gpi_shape_place(p, task, &what), task, &what);
        return;
    }
    gpi_tenancy_withdraw(p, task);
    p->task[task].holder = GPI_NONE;
}

/* ---- the life of a worker ---- */

uint32_t gpi_tenancy_warm(struct gpi_plan *p, uint32_t class, const uint16_t *device, uint32_t n)
{
    struct gpi_learned *c = &p->class[class];
    const uint32_t run = p->free_run;
    struct gpi_run *r = &p->run[run];

    assert(run != GPI_NONE && c->set.residence == GPI_RESIDENT && n <= GPI_RUN_DEVICES);
    gpi_tenancy_take_run(p, run);
    *r = (struct gpi_run){ .task = GPI_NONE,
                           .class = class,
                           .need = c->set.need[0],
                           .n_devices = n,
                           .since = p->now,
                           .used = p->now,
                           .keep = c->set.keep_alive,
                           .work = GPI_WORK_BOOT };
    for (uint32_t i = 0; i < n; i++)
        r->device[i] = device[i];
    c->workers++;
    gpi_memory_take(p, run, GPI_HOLD);
    gpi_memory_there(p, run, true);
    gpi_tenancy_idle(p, run);
    gpi_memory_warm(p, run, true);
    for (uint32_t i = 0; i < n; i++)
        gpi_shape_sort(p, device[i]);
    gpi_shape_class(p, class);
    gpi_tenancy_load(p, class);
    return run;
}

void gpi_tenancy_up(struct gpi_plan *p, uint32_t worker)
{
    struct gpi_run *r = &p->run[worker];
    struct gpi_learned *c = &p->class[r->class];

    if (r->work != GPI_WORK_BOOT)
        return;
    gpi_learn_spell(&c->boot, p->now - r->since);
    r->since = r->used = p->now;
    c->to_load = false;
    gpi_leave_unlist(p, worker);
    gpi_tenancy_idle(p, worker);
    gpi_memory_warm(p, worker, true);
    for (uint32_t i = 0; i < r->n_devices; i++)
        gpi_shape_sort(p, r->device[i]);
    gpi_shape_class(p, r->class);
    gpi_shape_examine_class(p, r->class);
    if (c->set.residence == GPI_TRANSIENT)
        p->changed |= gpi_memory_kinds_of(p, r); /* it may go for the head there */
    gpi_leave_keep(p, r->class);
    gpi_shape_evict_again(p);
}

void gpi_tenancy_leaves(struct gpi_plan *p, uint32_t worker)
{
    struct gpi_run *r = &p->run[worker];
    const bool is_up = r->work >= GPI_WORK_BOOT && r->work <= GPI_WORK_BUSY;

    if (!is_up && r->work != GPI_WORK_DRAIN)
        return;
    r->leaves = true;
    if (!is_up)
        return;
    gpi_leave_worker(p, worker);
    gpi_shape_examine_class(p, r->class);
    gpi_tenancy_load(p, r->class);
}

void gpi_tenancy_time(struct gpi_plan *p)
{
    if (p->again > p->now)
        return;
    p->again = GPI_NEVER;
    for (uint32_t i = 0; i < p->set.classes; i++) {
        struct gpi_learned *c = &p->class[i];
        if (c->again > p->now) {
            p->again = gpi_time_min(p->again, c->again);
        } else if (c->again) {
            c->again = 0;
            gpi_shape_class(p, i);
        }
    }
}

void gpi_tenancy_forgive(struct gpi_plan *p, uint32_t class)
{
    if (p->class[class].again <= p->now)
        return;
    p->class[class].again = 0;
    gpi_shape_class(p, class);
    gpi_shape_examine_class(p, class);
}

void gpi_tenancy_gone(struct gpi_plan *p, uint32_t worker, uint64_t again)
{
    struct gpi_run *r = &p->run[worker];
    struct gpi_learned *c = &p->class[r->class];
    const bool resident = c->set.residence == GPI_RESIDENT;
    const uint32_t class = r->class;

    assert(r->task == GPI_NONE);
    if (r->work == GPI_WORK_UNLOAD) {
        if (!r->leaves)
            gpi_learn_spell(&c->unload, p->now - r->since);
        c->leaving--;
    } else {
        gpi_memory_there(p, worker, false);
    }
    if (r->work == GPI_WORK_IDLE) {
        gpi_memory_warm(p, worker, false);
        p->n_spare -= !resident;
    }
    if (r->work == GPI_WORK_IDLE || r->work == GPI_WORK_BOOT)
        gpi_leave_unlist(p, worker);
    p->changed |= gpi_memory_release(p, worker, GPI_HOLD);
    c->workers--;
    c->again = again;
    p->again = gpi_time_min(p->again, again > p->now ? again : GPI_NEVER);
    r->work = GPI_WORK_TASK;
    for (uint32_t i = 0; i < r->n_devices; i++)
        gpi_shape_sort(p, r->device[i]);
    gpi_tenancy_end_run(p, worker);
    gpi_shape_class(p, class);
    gpi_shape_examine_class(p, class);
    gpi_tenancy_load(p, class);
    gpi_shape_evict_again(p);
}
