/* SPDX-License-Identifier: MIT */
/*
 * wait.c - the outcome of one task, for the thread that waits for it.
 *
 * Its submit marks such a task (`awaited`): its outcome has no place among the events and stays in
 * its record until a thread collects it.  The task counts as live until then, so records cannot run
 * out.                                                                                   [C1] [C18]
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/failure.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/external.h"
#include "host/task.h"

/* While a thread waits for the task, no other thread collects it: the record stays. */
static bool has_ended(const gpud_dispatcher *d, const void *context)
{
    const struct gpi_waiter *w = context;
    const struct gpi_task *t = &d->task[w->id & ((1ull << d->id_bits) - 1)];

    return t->state == GPI_TASK_ENDED || t->id != w->id; /* a close may leave external work */
}

/* Moves the outcome out of the record and frees the record.  On failure nothing has changed. */
static int collect(gpud_dispatcher *d, struct gpi_task *t, struct gpud_event *event)
{
    struct gpud_event e = { .struct_size = sizeof e };
    struct gpi_names_room room;
    int r;

    gpi_words_complete(d, t);
    gpi_event_of(d, t, &room, &e);
    r = gpi_keep_outcome(d, t, &e);
    if (r)
        return r;
    *event = e;
    if (gpi_task_is_external(d, t)) /* poll may not have read them */
        gpi_grant_forget(d, gpi_task_index(d, t));
    gpi_task_free(d, gpi_task_index(d, t));
    d->intake.awaited--;
    d->intake.live--;
    d->stats.count.delivered++;
    gpi_room_made(d);
    return 0;
}

static int check(gpud_dispatcher *d, uint64_t id, struct gpud_error *e)
{
    const struct gpi_task *t = gpi_task_find(d, id);
    const unsigned long long shown = id;

    if (gpi_drive_reenters(d))
        return gpi_fail(e, GPUD_EREENTER, 0, "",
                        "called in a callback of run: only the thread inside run can drive");
    if (d->close.ending)
        return gpi_fail(e, GPUD_EBUSY, 0, "", "gpud_dispatcher_destroy has begun");
    if (!t || t->state == GPI_TASK_FREE || t->state == GPI_TASK_LENT ||
        t->state == GPI_TASK_HELD)
        return gpi_fail(e, GPUD_ENOTFOUND, 0, "task_id",
                        "no live task has the id %llu: no submit returned it, or its outcome was "
                        "delivered",
                        shown);
    if (!t->awaited)
        return gpi_fail(
            e, GPUD_ENOTAWAITED, 0, "task_id",
            "task %llu was submitted without awaited = 1: poll or run delivers its outcome", shown);
    return gpi_waiter_of(d, id)
               ? gpi_fail(e, GPUD_EBUSY, 0, "task_id", "another thread waits for task %llu", shown)
               : 0;
}

static int refuse_to_keep(const gpud_dispatcher *d, int r, struct gpud_error *e)
{
    if (r == GPUD_EFULL)
        return gpi_fail(e, r, 0, "queue_size",
                        "queue_size is %u, and %u events are kept: release some "
                        "(gpud_event_release)",
                        d->set.queue_size, gpi_keep_count(d));
    return gpi_fail(e, r, 0, "", "no memory for the event");
}

static int not_ended(const gpud_dispatcher *d, const struct gpi_task *t, uint64_t timeout,
                     struct gpud_error *e)
{
    char where[32] = "waits in the queue", time[GPI_DURATION_SIZE];

    if (t->state == GPI_TASK_SENT)
        (void)snprintf(where, sizeof where, "is at slot %u", t->slot);
    else if (gpi_sched_is_deferred(d->core, gpi_task_index(d, t)))
        (void)snprintf(where, sizeof where, "waits for its next attempt");
    else if (gpi_sched_grant(d->core, gpi_task_index(d, t)))
        (void)snprintf(where, sizeof where, "is granted");
    return gpi_fail(e, GPUD_ETIMEOUT, 0, "timeout",
                    "timeout is %s, and task %llu has not ended: it %s",
                    gpi_duration_text(time, timeout), (unsigned long long)t->id, where);
}

static int wait_for(gpud_dispatcher *d, uint64_t id, struct gpud_event *event, uint64_t timeout,
                    struct gpud_error *e)
{
    struct gpi_waiter w = { .id = id };
    bool ended;
    int r = check(d, id, e);

    if (r)
        return r;
    gpi_waiter_enlist(d, gpi_waiters(d, id), &w);
    ended = has_ended(d, &w) ||
            gpi_drive_together(d, &w.sleeper, has_ended, &w, gpi_wait_until(timeout));
    gpi_waiter_strike_off(d, gpi_waiters(d, id), &w);
    if (!ended)
        return not_ended(d, gpi_task_find(d, id), timeout, e);
    if (!gpi_task_find(d, id))
        return gpi_fail(e, GPUD_ENOTFOUND, 0, "task_id",
                        "task %llu has no outcome: gpud_dispatcher_close has left it alone",
                        (unsigned long long)id);
    r = collect(d, gpi_task_find(d, id), event);
    return r ? refuse_to_keep(d, r, e) : 0;
}

int gpi_wait(gpud_dispatcher *d, uint64_t id, struct gpud_event *event, uint64_t timeout,
             struct gpud_error *e)
{
    int r;

    pthread_mutex_lock(&d->lock);
    r = wait_for(d, id, event, timeout, e);
    pthread_mutex_unlock(&d->lock);
    return r;
}
