/* SPDX-License-Identifier: MIT */
/*
 * sleepers.c - threads of the user that sleep while another one drives, and which of them is woken
 * by an event: the thread that waits for a task, threads that wait for workers, the thread in poll
 * or run, the event loop of the host (pollable.c).
 */
#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/task.h"
#include "os/fds.h"

static void lie_down(gpud_dispatcher *d, struct gpi_sleeper *s)
{
    s->after = NULL;
    s->before = d->waits.last_asleep;
    *(s->before ? &s->before->after : &d->waits.asleep) = s;
    d->waits.last_asleep = s;
    s->asleep = true;
}

static void get_up(gpud_dispatcher *d, struct gpi_sleeper *s)
{
    *(s->before ? &s->before->after : &d->waits.asleep) = s->after;
    *(s->after ? &s->after->before : &d->waits.last_asleep) = s->before;
    s->asleep = s->called = false;
}

/* Sleeps until a thread wakes it.  Returns false when the time expires. */
bool gpi_sleep_beside(gpud_dispatcher *d, struct gpi_sleeper *s, uint64_t until)
{
    struct timespec t = { .tv_sec = (time_t)(until / GPI_S), .tv_nsec = (long)(until % GPI_S) };
    pthread_condattr_t a;
    int r = 0;

    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&s->call, &a);
    pthread_condattr_destroy(&a);
    lie_down(d, s);
    if (until == GPI_NEVER)
        pthread_cond_wait(&s->call, &d->lock);
    else
        r = pthread_cond_timedwait(&s->call, &d->lock, &t);
    get_up(d, s);
    pthread_cond_destroy(&s->call); /* a waker holds the lock, so none is left */
    return r != ETIMEDOUT;
}

void gpi_drive_call(struct gpi_sleeper *s)
{
    if (!s->asleep || s->called)
        return;
    s->called = true;
    pthread_cond_signal(&s->call);
}

/* No thread drives: wakes the thread that has slept longest, unless its own event is ready. */
void gpi_sleepers_hand_over(gpud_dispatcher *d)
{
    struct gpi_sleeper *s = d->waits.asleep;

    while (s && s->called)
        s = s->after;
    if (s)
        pthread_cond_signal(&s->call);
}

void gpi_drive_tell(gpud_dispatcher *d)
{
    if (d->waits.poller)
        gpi_drive_call(d->waits.poller);
    if (d->pollable.outer >= 0 && !d->drive.occupied) /* else when poll or run returns */
        gpi_pollable_tell(d);
}

bool gpi_drive_reenters(const gpud_dispatcher *d)
{
    return d->callback.inside && pthread_equal(d->callback.thread, pthread_self());
}

bool gpi_drive_all_told(const gpud_dispatcher *d)
{
    return d->close.finished && d->intake.live == d->intake.awaited;
}

struct gpi_waiter **gpi_waiters(gpud_dispatcher *d, uint64_t id)
{
    return &d->waits.waiter[id & ((1ull << d->id_bits) - 1) & (GPI_WAITER_BUCKETS - 1)];
}

struct gpi_waiter *gpi_waiter_of(gpud_dispatcher *d, uint64_t id)
{
    struct gpi_waiter *w = *gpi_waiters(d, id);

    while (w && w->id != id)
        w = w->next;
    return w;
}

void gpi_waiter_enlist(gpud_dispatcher *d, struct gpi_waiter **list, struct gpi_waiter *w)
{
    w->next = *list;
    *list = w;
    d->waits.waiters++;
}

void gpi_waiter_strike_off(gpud_dispatcher *d, struct gpi_waiter **list, const struct gpi_waiter *w)
{
    while (*list != w)
        list = &(*list)->next;
    *list = w->next;
    d->waits.waiters--;
}

/* An awaited task has ended.  If its thread drives, that thread has found the end itself, or the
 * thread that found the end wakes the driver. */
void gpi_wait_ended(gpud_dispatcher *d, const struct gpi_task *t)
{
    struct gpi_waiter *w = gpi_waiter_of(d, t->id);

    if (w)
        gpi_drive_call(&w->sleeper);
}

void gpi_ready_changed(gpud_dispatcher *d)
{
    for (struct gpi_waiter *w = d->waits.ready_waiters; w; w = w->next)
        gpi_drive_call(&w->sleeper);
}

void gpi_pollable_tell(gpud_dispatcher *d)
{
    bool something = gpi_events_waiting(d) || gpi_drive_all_told(d);

    if (something == d->pollable.told)
        return;
    d->pollable.told = something && gpi_bell_ring(d->pollable.news);
    if (!something)
        gpi_bell_silence(d->pollable.news);
}
