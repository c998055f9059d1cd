/* SPDX-License-Identifier: MIT */
/*
 * explain.c - why a task does not start, with the names that the user knows; and whether a submit
 * would accept it.                                                                     [R9] [S9]
 */
#include "host/explain.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/failure.h"
#include "base/versioned.h"
#include "gpudispatch/sched.h"
#include "host/act.h"
#include "host/class.h"
#include "host/core.h"
#include "host/device.h"
#include "host/drive.h"
#include "host/slot.h"
#include "host/task.h"

/* ---- rows ---- */

#define KIND(name) [GPI_REASON_##name] = GPUD_REASON_##name
static const uint8_t kinds[] = {
    KIND(PASSED_OVER_BY), KIND(MEMORY),   KIND(SHARE),     KIND(CPUS),          KIND(HEAD_HOLDS),
    KIND(DRAINED),        KIND(PAUSED),   KIND(FAULT),     KIND(FOREIGN),       KIND(MIN_RESIDENCE),
    KIND(MAX_WAIT),       KIND(PINNED),   KIND(SEATS),     KIND(BOOTING),       KIND(UNLOADING),
    KIND(BUSY),           KIND(OCCUPIED), KIND(NEVER),     KIND(RETRY),
};
#undef KIND
_Static_assert(sizeof kinds == GPUD_REASON_COUNT - 1, "each kind of the core has one");

static uint32_t unit_of_lack(uint32_t lack)
{
    switch ((enum gpi_lack)lack) {
    case GPI_LACKS_MEMORY:
        return GPUD_UNIT_BYTES;
    case GPI_LACKS_COMPUTE:
        return GPUD_UNIT_COMPUTE;
    case GPI_LACKS_CPUS:
        return GPUD_UNIT_CPUS;
    case GPI_LACKS_DEVICES:
        return GPUD_UNIT_DEVICES;
    default:
        return GPUD_UNIT_NONE;
    }
}

/* Foreign processes have too much memory, or cause more load than option foreign_load. */
static uint32_t unit_of_foreign(const gpud_dispatcher *d, const struct gpi_plan_reason *r)
{
    return d->set.foreign_load && r->need == d->set.foreign_load ? GPUD_UNIT_SHARE
                                                                 : GPUD_UNIT_BYTES;
}

static uint32_t unit_of(const gpud_dispatcher *d, const struct gpi_plan_reason *r)
{
    switch (r->kind) {
    case GPI_REASON_MEMORY:
        return GPUD_UNIT_BYTES;
    case GPI_REASON_SHARE:
        return GPUD_UNIT_SHARE;
    case GPI_REASON_CPUS:
        return GPUD_UNIT_CPUS;
    case GPI_REASON_SEATS:
        return GPUD_UNIT_WORKERS;
    case GPI_REASON_FOREIGN:
        return unit_of_foreign(d, r);
    case GPI_REASON_NEVER:
        return unit_of_lack(r->other);
    default:
        return GPUD_UNIT_NONE;
    }
}

static void name_class(const gpud_dispatcher *d, uint32_t class, struct gpud_reason *ret)
{
    (void)snprintf(ret->class_name, sizeof ret->class_name, "%s", d->class[class].name);
}

/* The dispatcher has max_workers, and the class may have more. */
static bool is_of_pool(const gpud_dispatcher *d, const struct gpi_plan_reason *r)
{
    return r->kind == GPI_REASON_SEATS && r->other != GPI_NOWHERE &&
           r->have < d->class[r->other].plan.max_workers;
}

/* The task or class in the way.  A worker that is loaded has no task. */
static void name_other(const gpud_dispatcher *d, const struct gpi_plan_reason *r, uint32_t class,
                       struct gpud_reason *ret)
{
    if (r->kind == GPI_REASON_NEVER || is_of_pool(d, r))
        return;
    if (r->other == GPI_NOWHERE) {
        if (r->kind == GPI_REASON_BUSY)
            name_class(d, class, ret);
    } else if (!gpi_sched_names_task(r->kind)) {
        name_class(d, r->other, ret);
    } else if (r->other >= d->n_tasks) {
        name_class(d, r->other - d->n_tasks, ret);
    } else {
        ret->task_id = d->task[r->other].id;
        name_class(d, d->task[r->other].class, ret);
    }
}

static void name_device(gpud_dispatcher *d, const struct gpi_plan_reason *r,
                        struct gpud_reason *ret)
{
    struct gpud_device_info info;

    if (r->device == GPI_NOWHERE)
        return;
    (void)snprintf(ret->device, sizeof ret->device, "%s", d->dev.row[r->device].id.name);
    if (r->kind != GPI_REASON_FOREIGN)
        return;
    gpi_report_device(d, r->device, &info);
    ret->pid = info.foreign_pid;
}

/* `class` is that of the task that waits. */
static void fill(gpud_dispatcher *d, const struct gpi_plan_reason *r, uint32_t class,
                 struct gpud_reason *ret)
{
    *ret = (struct gpud_reason){
        .struct_size = sizeof *ret,
        .kind = kinds[r->kind],
        .variant = r->variant,
        .unit = unit_of(d, r),
        .until = r->until == GPI_NEVER ? 0 : r->until,
    };
    ret->have = ret->unit ? r->have : 0;
    ret->need = ret->unit ? r->need : 0;
    name_device(d, r, ret);
    name_other(d, r, class, ret);
}

/* ---- explain ---- */

struct question {
    uint32_t task, class;
    const struct gpi_sched_task *what; /* of a task that is not submitted */
};

static int answer(gpud_dispatcher *d, const struct question *q, struct gpi_reason_rows *ret,
                  struct gpud_error *e)
{
    const uint32_t count = gpi_sched_explain(d->core, d->now, q->task, q->what, NULL, 0);
    const uint32_t n = ret->n < count ? (uint32_t)ret->n : count;
    struct gpi_plan_reason *row = n ? calloc(n, sizeof *row) : NULL;

    if (n && !row)
        return gpi_fail(e, GPUD_ENOMEM, 0, "", "no memory for %u reasons", n);
    (void)gpi_sched_explain(d->core, d->now, q->task, q->what, row, n);
    for (uint32_t i = 0; i < n; i++) {
        struct gpud_reason own;
        fill(d, &row[i], q->class, &own);
        gpi_versioned_write((char *)ret->rows + (size_t)i * ret->stride, ret->stride, &own,
                            sizeof own);
    }
    free(row);
    ret->count = count;
    return 0;
}

/* A task on which the plan has not decided yet has no reason. */
static void settle(gpud_dispatcher *d)
{
    if (!gpi_sched_undecided(d->core) && gpi_sched_due(d->core) > d->now)
        return;
    gpi_decide(d);
    gpi_drive_wake(d);
}

static int explain_desc(gpud_dispatcher *d, const struct gpud_task_desc *desc,
                        struct gpi_reason_rows *ret, struct gpud_error *e)
{
    struct gpi_needs own;
    const int class = gpi_submit_check(d, desc, false, &own, e);
    struct gpi_sched_task what;

    if (class < 0)
        return class;
    what = gpi_submit_what(d, desc, (uint32_t)class, &own);
    settle(d);
    return answer(d, &(struct question){ GPI_NOWHERE, (uint32_t)class, &what }, ret, e);
}

/* Returns true if the worker has begun the task, or is about to. */
static bool runs(const gpud_dispatcher *d, const struct gpi_task *t)
{
    if (t->state == GPI_TASK_QUEUED && gpi_sched_grant(d->core, gpi_task_index(d, t)))
        return true; /* external */
    return t->state == GPI_TASK_SENT && gpi_slot_running(d, &d->slot[t->slot]) >> t->cell & 1;
}

static int explain_id(gpud_dispatcher *d, uint64_t id, struct gpi_reason_rows *ret,
                      struct gpud_error *e)
{
    const struct gpi_task *t;

    settle(d);
    t = gpi_task_find(d, id);
    if (!t || (t->state != GPI_TASK_QUEUED && t->state != GPI_TASK_SENT))
        return gpi_fail(e, GPUD_ENOTFOUND, 0, "task_id",
                        "task %llu has ended, or was never accepted", (unsigned long long)id);
    ret->count = 0;
    if (runs(d, t))
        return 0;
    return answer(d, &(struct question){ gpi_task_index(d, t), t->class, NULL }, ret, e);
}

int gpi_explain(gpud_dispatcher *d, uint64_t id, const struct gpud_task_desc *desc,
                struct gpi_reason_rows *ret, struct gpud_error *e)
{
    int r;

    pthread_mutex_lock(&d->lock);
    d->now = gpi_now();
    r = desc ? explain_desc(d, desc, ret, e) : explain_id(d, id, ret, e);
    pthread_mutex_unlock(&d->lock);
    return r;
}

/* ---- check ---- */

int gpi_task_check(gpud_dispatcher *d, const struct gpud_task_desc *desc, struct gpud_error *e)
{
    const struct gpi_class *c;
    struct gpi_needs own;
    int class, r;

    pthread_mutex_lock(&d->lock);
    class = gpi_submit_check(d, desc, true, &own, e);
    r = class < 0 ? class : 0;
    c = &d->class[r ? 0 : class];
    if (r == 0 && d->set.pooled && !desc->request)
        r = gpi_request_fits(d, c->name, "needs", c->plan.need, c->plan.n_needs, e);
    pthread_mutex_unlock(&d->lock);
    return r;
}
