/* SPDX-License-Identifier: MIT */
/*
 * leave.c - a worker leaves: for another class (evict.c), after its keep_alive, with its class or
 * device, or since no task waits for its boot.                                     [R6] [R7] [R8]
 */
#include "sched/plan_parts.h"

int gpi_leave_make(struct gpi_plan *p)
{
    return gpi_heap_init(&p->keeps, p->set.runs);
}

void gpi_leave_free(struct gpi_plan *p)
{
    gpi_heap_fini(&p->keeps);
}

/* ---- one worker ---- */

void gpi_leave_list(struct gpi_plan *p, uint32_t run, uint32_t *list)
{
    struct gpi_run *r = &p->run[run];

    r->list_next = *list;
    r->list_prev = GPI_NONE;
    if (*list != GPI_NONE)
        p->run[*list].list_prev = run;
    *list = run;
    p->class[r->class].n_booting += r->work == GPI_WORK_BOOT;
}

void gpi_leave_unlist(struct gpi_plan *p, uint32_t run)
{
    struct gpi_run *r = &p->run[run];
    struct gpi_learned *c = &p->class[r->class];

    c->n_booting -= r->work == GPI_WORK_BOOT;
    if (r->list_prev != GPI_NONE)
        p->run[r->list_prev].list_next = r->list_next;
    else if (c->idle == run)
        c->idle = r->list_next;
    else
        c->booting = r->list_next;
    if (r->list_next != GPI_NONE)
        p->run[r->list_next].list_prev = r->list_prev;
    gpi_heap_remove(&p->keeps, run);
}

static void sort_devices(struct gpi_plan *p, const struct gpi_run *r)
{
    for (uint32_t i = 0; i < r->n_devices; i++)
        gpi_shape_sort(p, r->device[i]);
}

void gpi_leave_worker(struct gpi_plan *p, uint32_t run)
{
    struct gpi_run *r = &p->run[run];
    struct gpi_learned *c = &p->class[r->class];
    const uint8_t before = r->work;
    const bool drains = before == GPI_WORK_BUSY;

    c->leaving++;
    p->stats.unloads += !r->leaves;
    if (before == GPI_WORK_IDLE || before == GPI_WORK_BOOT)
        gpi_leave_unlist(p, run);
    p->n_spare -= c->set.residence == GPI_TRANSIENT && before == GPI_WORK_IDLE;
    gpi_revoke_forget(p, run);
    r->work = drains ? GPI_WORK_DRAIN : GPI_WORK_UNLOAD;
    r->since = p->now;
    gpi_memory_there(p, run, false);
    if (before != GPI_WORK_BOOT)
        gpi_memory_warm(p, run, false);
    if (!r->leaves)
        gpi_actions_put(p, drains ? GPI_PLAN_DRAIN : GPI_PLAN_UNLOAD, run, 0, p->now);
    sort_devices(p, r);
    if (r->n_devices == 0)
        p->changed |= GPI_BIT_HOST; /* CPU slots were kept for it */
    gpi_shape_class(p, r->class);
    gpi_shape_evict_again(p);
}

/* ---- workers that are to go ---- */

static bool is_up(const struct gpi_run *r)
{
    return r->work >= GPI_WORK_BOOT && r->work <= GPI_WORK_BUSY;
}

void gpi_leave_class(struct gpi_plan *p, uint32_t class)
{
    for (uint32_t i = 0; i < p->set.runs; i++)
        if (is_up(&p->run[i]) && p->run[i].class == class)
            gpi_leave_worker(p, i);
}

void gpi_leave_device(struct gpi_plan *p, uint32_t device)
{
    for (uint32_t i = 0; i < p->set.runs; i++)
        if (is_up(&p->run[i]) && gpi_is_among(p->run[i].device, p->run[i].n_devices, device))
            gpi_leave_worker(p, i);
}

void gpi_leave_boots(struct gpi_plan *p, uint32_t class)
{
    struct gpi_learned *c = &p->class[class];

    while (c->booting != GPI_NONE && (c->queued == 0 || c->paused) &&
           c->workers - c->leaving > gpi_shape_least_workers(c))
        gpi_leave_worker(p, c->booting);
}

/* ---- keep_alive ---- */

static bool may_leave(const struct gpi_learned *c)
{
    return !c->set.pinned && (c->queued == 0 || c->paused) &&
           c->workers - c->leaving > c->set.min_workers;
}

void gpi_leave_keep(struct gpi_plan *p, uint32_t class)
{
    const struct gpi_learned *c = &p->class[class];
    const struct gpi_run *r;

    for (uint32_t i = may_leave(c) ? c->idle : GPI_NONE; i != GPI_NONE; i = r->list_next) {
        r = &p->run[i];
        if (r->keep != GPI_NEVER)
            gpi_heap_set(&p->keeps, i, gpi_time_add(r->used, r->keep));
    }
}

void gpi_leave_kept(struct gpi_plan *p)
{
    uint32_t run;

    while (gpi_heap_top_key(&p->keeps) <= p->now) {
        run = gpi_heap_top_item(&p->keeps);
        gpi_heap_remove(&p->keeps, run);
        if (may_leave(&p->class[p->run[run].class]))
            gpi_leave_worker(p, run); /* else gpi_leave_keep sets the time again */
    }
}
