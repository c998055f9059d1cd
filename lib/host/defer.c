/* SPDX-License-Identifier: MIT */
/*
 * defer.c - tasks that a time concerns before they start.  One that is to be tried again later stands in a
 * heap by the end of its wait, one that expires in another by when it must have started: nobody looks at
 * them before, and the driver sleeps until the first is due.                        [C3] [C6] [C20]
 */
#include "base/clock.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/shadow.h"
#include "host/slot.h"
#include "host/task.h"

#define AT_A_TIME 4096u /* of those that are due: a million that expire together must not hold the lock for seconds */

int gpi_defer_init(gpud_dispatcher *d)
{
    /* Untouched until used: what needs neither costs nothing. */
    return gpi_heap_init(&d->retries, d->n_tasks) || gpi_heap_init(&d->expiries, d->n_tasks) ? -1 : 0;
}

void gpi_defer_fini(gpud_dispatcher *d)
{
    gpi_heap_fini(&d->retries);
    gpi_heap_fini(&d->expiries);
}

void gpi_defer(gpud_dispatcher *d, struct gpi_task *t, uint64_t until)
{
    t->state = GPI_TASK_DEFERRED;
    gpi_heap_set(&d->retries, gpi_task_index(d, t), until);
    gpi_shadow_task(d, t);
}

void gpi_undefer(gpud_dispatcher *d, struct gpi_task *t)
{
    gpi_heap_remove(&d->retries, gpi_task_index(d, t));
    t->state = GPI_TASK_QUEUED; /* in name: the caller puts it into the queue, or ends it */
}

static struct gpi_task *first(gpud_dispatcher *d)
{
    return &d->task[gpi_heap_top_item(&d->retries)];
}

uint64_t gpi_defer_next(const gpud_dispatcher *d)
{
    return gpi_time_min(gpi_heap_top_key(&d->retries), gpi_heap_top_key(&d->expiries));
}

/* ---- expiry ---- */

void gpi_expiry_set(gpud_dispatcher *d, struct gpi_task *t, uint64_t expires)
{
    uint32_t i = gpi_task_index(d, t);

    t->expires = 1;
    d->expires[i] = expires;
    gpi_heap_set(&d->expiries, i, gpi_time_add(t->queued_at, expires));
    if (gpi_heap_top_item(&d->expiries) == i)
        gpi_drive_wake(d); /* whoever sleeps does so until a later time */
}

void gpi_expiry_remove(gpud_dispatcher *d, struct gpi_task *t)
{
    t->expires = 0;
    gpi_heap_remove(&d->expiries, gpi_task_index(d, t));
}

/* Not known to have started in time: the claim word tells whether it has. */
static void expire(gpud_dispatcher *d, struct gpi_task *t)
{
    gpi_heap_remove(&d->expiries, gpi_task_index(d, t));
    if (t->state == GPI_TASK_SENT && !gpi_take_back(d, t))
        return; /* claimed: whether that was in time, the worker has seen */
    if (t->state == GPI_TASK_QUEUED)
        gpi_queue_remove(&d->queue, gpi_task_index(d, t), t->priority);
    gpi_task_end(d, t, GPUD_OUTCOME_TIMEOUT, GPUD_PHASE_QUEUED, GPUD_ETIMEOUT);
}

void gpi_defer_run(gpud_dispatcher *d)
{
    for (uint32_t n = 0; n < AT_A_TIME && gpi_heap_top_key(&d->expiries) <= d->now; n++)
        expire(d, &d->task[gpi_heap_top_item(&d->expiries)]);
    for (uint32_t n = 0; n < AT_A_TIME && gpi_heap_top_key(&d->retries) <= d->now; n++) {
        struct gpi_task *t = first(d);
        gpi_undefer(d, t);
        gpi_task_requeue(d, t);
    }
}

void gpi_defer_end_all(gpud_dispatcher *d, uint32_t outcome, int32_t code)
{
    while (d->retries.count) {
        struct gpi_task *t = first(d);
        gpi_undefer(d, t);
        gpi_task_end(d, t, outcome, GPUD_PHASE_QUEUED, code);
    }
}
