/* SPDX-License-Identifier: MIT */
/* actions.c - the actions of a plan, first in, first out. */
#include <stdlib.h>

#include "sched/plan_parts.h"

/* Between two facts each run begins, is revoked, boots, drains and unloads once at most: a run that
 * begins twice has ended between.  And each first task is hopeless once.  First tasks are those of
 * all shapes and the started ones. */
int gpi_actions_make(struct gpi_plan *p)
{
    const uint32_t firsts = p->most_shapes + p->set.runs;

    p->ring_size = 5 * p->set.runs + firsts + p->most_shapes;
    p->ring = malloc(sizeof *p->ring * p->ring_size);
    return p->ring ? 0 : -1;
}

void gpi_actions_free(struct gpi_plan *p)
{
    free(p->ring);
}

void gpi_actions_put(struct gpi_plan *p, enum gpi_plan_action_kind kind, uint32_t task,
                     uint32_t how, uint64_t at)
{
    assert(p->ring_head + p->ring_count < p->ring_size);
    if (kind == GPI_PLAN_PROMISE && p->ring_promises == p->most_shapes) {
        p->stats.promises_dropped++;
        return;
    }
    p->ring_promises += kind == GPI_PLAN_PROMISE;
    p->ring[p->ring_head + p->ring_count++] = (struct gpi_plan_word){
        .at = at, .task = task, .kind = (uint8_t)kind, .how = (uint8_t)how
    };
}

static bool has_task(uint8_t kind)
{
    return kind == GPI_PLAN_RUN || kind == GPI_PLAN_REVOKE || kind == GPI_PLAN_PROMISE ||
           kind == GPI_PLAN_HOPELESS;
}

bool gpi_plan_next(struct gpi_plan *p, struct gpi_plan_action *ret)
{
    const struct gpi_plan_word *w = &p->ring[p->ring_head];
    const struct gpi_run *r;

    if (p->ring_count == 0)
        return false;
    *ret = (struct gpi_plan_action){ .kind = w->kind, .how = w->how, .at = w->at };
    ret->task = ret->worker = ret->run = GPI_NOWHERE;
    if (has_task(w->kind))
        ret->task = w->task;
    if (w->kind != GPI_PLAN_PROMISE && w->kind != GPI_PLAN_HOPELESS) {
        const uint32_t run = has_task(w->kind) ? p->task[w->task].holder : w->task;
        r = &p->run[run];
        ret->run = run;
        if (r->work != GPI_WORK_TASK)
            ret->worker = run;
        ret->class = r->class;
        ret->need = r->need;
        ret->what = r->variant;
        ret->n_devices = r->n_devices;
        ret->device = r->device;
    }
    p->ring_promises -= w->kind == GPI_PLAN_PROMISE;
    p->ring_head++;
    if (--p->ring_count == 0)
        p->ring_head = 0;
    return true;
}
