/* SPDX-License-Identifier: MIT */
/*
 * wait.c - the outcome of one task, for the thread that asks for it.
 *
 * Such a task is told apart from the others when it is accepted (`awaited`): its outcome has no
 * place among the events and stays in its record until it is asked for.  It counts as live until
 * then, so records cannot run out.                                              [C1] [C18]
 */
#include "base/clock.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/task.h"

static struct gpi_waiter **bucket(gpud_dispatcher *d, uint64_t id)
{
    return &d->waiter[id & ((1ull << d->id_bits) - 1) & (GPI_WAITER_BUCKETS - 1)];
}

static struct gpi_waiter *waiter_of(gpud_dispatcher *d, uint64_t id)
{
    struct gpi_waiter *w = *bucket(d, id);

    while (w && w->id != id)
        w = w->next;
    return w;
}

static void enlist(gpud_dispatcher *d, struct gpi_waiter *w)
{
    struct gpi_waiter **first = bucket(d, w->id);

    w->next = *first;
    *first = w;
    d->waiters++;
}

static void strike_off(gpud_dispatcher *d, const struct gpi_waiter *w)
{
    struct gpi_waiter **at = bucket(d, w->id);

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    d->waiters--;
}

/* An awaited task has ended.  If its thread drives, that is where this was found, or the one who
 * found it wakes the driver. */
void gpi_wait_ended(gpud_dispatcher *d, const struct gpi_task *t)
{
    struct gpi_waiter *w = waiter_of(d, t->id);

    if (w)
        gpi_drive_call(&w->sleeper);
}

/* While a thread waits for it nobody else collects it, so the record stays. */
static bool has_ended(const gpud_dispatcher *d, const void *context)
{
    const struct gpi_waiter *w = context;

    return d->task[w->id & ((1ull << d->id_bits) - 1)].state == GPI_TASK_ENDED;
}

/* Moves the outcome out of the record, which is free then.  On failure nothing has changed. */
static int collect(gpud_dispatcher *d, struct gpi_task *t, struct gpud_event *event)
{
    struct gpud_event e = { .struct_size = sizeof e };
    int r;

    gpi_event_of(d, t, &e);
    r = gpi_keep_outcome(d, t, &e);
    if (r)
        return r;
    *event = e;
    gpi_task_free(d, t);
    d->awaited--;
    d->live--;
    d->count.delivered++;
    gpi_room_made(d);
    return 0;
}

static int check(gpud_dispatcher *d, uint64_t id)
{
    const struct gpi_task *t = gpi_task_find(d, id);

    if (gpi_drive_reenters(d))
        return GPUD_EREENTER;
    if (d->ending)
        return GPUD_EBUSY;
    if (!t || t->state == GPI_TASK_FREE || t->state == GPI_TASK_LENT)
        return GPUD_ENOTFOUND;
    if (!t->awaited)
        return GPUD_EINVAL;
    return waiter_of(d, id) ? GPUD_EBUSY : 0;
}

static int wait_for(gpud_dispatcher *d, uint64_t id, struct gpud_event *event, uint64_t timeout)
{
    struct gpi_waiter w = { .id = id };
    bool ended;
    int r = check(d, id);

    if (r)
        return r;
    enlist(d, &w);
    ended = has_ended(d, &w) || gpi_drive_together(d, &w.sleeper, has_ended, &w,
                                                   timeout == 0 || timeout == GPI_NEVER ? timeout : gpi_time_add(gpi_now(), timeout));
    strike_off(d, &w);
    return ended ? collect(d, gpi_task_find(d, id), event) : GPUD_ETIMEOUT;
}

int gpi_wait(gpud_dispatcher *d, uint64_t id, struct gpud_event *event, uint64_t timeout)
{
    int r;

    pthread_mutex_lock(&d->lock);
    r = wait_for(d, id, event, timeout);
    pthread_mutex_unlock(&d->lock);
    return r;
}
