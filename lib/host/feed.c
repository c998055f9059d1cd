/* SPDX-License-Identifier: MIT */
/*
 * feed.c - run: a feeder thread pulls from the source and submits; the calling thread polls and
 * calls back.  A source that blocks delays neither dispatch nor limits.             [C12] [C16]
 */
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/failure.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/task.h"

#define DESC_WORDS 32 /* 256 bytes: the record, and what later headers may append to it */

struct run {
    gpud_dispatcher *d;
    gpud_source_fn *source;
    struct gpud_callbacks cb;
    void *user;
    pthread_t feeder;
    bool fed;         /* guarded by the dispatcher's lock: the feeder has left the source */
    int source_value; /* what it ended with */
    int submit_error;
    bool unblocked;   /* the source was told to come back */
    bool closed;      /* as it was at the end; then the dispatcher may be gone */
};

/* What a source fills.  One that was compiled against later headers may assign a whole record of its own. */
union desc {
    struct gpud_task_desc known;
    uint64_t word[DESC_WORDS];
};

_Static_assert(sizeof(struct gpud_task_desc) < DESC_WORDS * sizeof(uint64_t) / 2, "room for what is appended");
_Static_assert(sizeof(struct gpud_task_desc) % sizeof(uint64_t) == 0, "what is not ours begins with a word");

static bool asks_for_unknown(const union desc *t)
{
    uint64_t all = 0;

    for (size_t i = sizeof t->known / sizeof(uint64_t); i < DESC_WORDS; i++)
        all |= t->word[i];
    return all != 0;
}

static int take(gpud_dispatcher *d, const union desc *t)
{
    int r;

    if (asks_for_unknown(t))
        return GPUD_EVERSION;
    r = t->known.awaited ? GPUD_EINVAL : gpi_task_check(&t->known); /* nobody would know its id */
    return r ? r : gpi_task_feed(d, &t->known);
}

static void *feed(void *arg)
{
    static const struct gpud_task_desc init = GPUD_TASK_DESC_INIT;
    struct run *r = arg;
    union desc t = { .word = { 0 } };
    int more = 0, err = 0;

    for (;;) {
        t.known = init;
        if (r->d->closing || atomic_load(&r->d->stop_asked))
            break;
        more = r->source(&t.known, r->user);
        if (more != 1)
            break;
        err = take(r->d, &t);
        if (err)
            break;
    }
    pthread_mutex_lock(&r->d->lock);
    r->source_value = more == 1 ? 0 : more;
    r->submit_error = err;
    r->fed = true;
    r->d->feeding = false;
    gpi_drive_wake(r->d);
    gpi_drive_tell(r->d);
    pthread_mutex_unlock(&r->d->lock);
    return NULL;
}

static gpud_event_fn *receiver(const struct gpud_callbacks *cb, const struct gpud_event *e)
{
    if (e->kind == GPUD_EVENT_SETUP_FAILURE && cb->on_setup_failure)
        return cb->on_setup_failure;
    if (e->kind != GPUD_EVENT_OUTCOME)
        return cb->on_event;
    if (e->outcome == GPUD_OUTCOME_SUCCESS)
        return cb->on_success;
    if (e->outcome == GPUD_OUTCOME_TIMEOUT && cb->on_timeout)
        return cb->on_timeout;
    return cb->on_error;
}

/* Hands events over, without the lock.  Gives the first value that asked to stop. */
static int call_back(struct run *r, const struct gpud_event *events, int n)
{
    int stop = 0;

    for (int i = 0; i < n; i++) {
        gpud_event_fn *fn = receiver(&r->cb, &events[i]);
        int v = fn ? fn(&events[i], r->user) : 0;
        stop = stop ? stop : v;
    }
    return stop;
}

static bool over(const struct run *r)
{
    return r->fed && r->d->live == r->d->awaited && gpi_events_waiting(r->d) == 0;
}

static bool must_unblock(const struct run *r)
{
    return r->d->closing && !r->unblocked && r->cb.unblock;
}

static bool something_to_do(const gpud_dispatcher *d, const void *context)
{
    return gpi_events_waiting(d) || over(context) || must_unblock(context);
}

static int start_feeder(struct run *r)
{
    sigset_t all, old;
    int e;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    e = pthread_create(&r->feeder, NULL, feed, r);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return e;
}

/* Polls and calls back until the source has ended and all is told.  Lock held on entry and exit. */
static int pump(struct run *r, struct gpud_event *events)
{
    gpud_dispatcher *d = r->d;
    struct gpi_sleeper me = { .asleep = false };
    int stop = 0;

    while (!over(r)) {
        bool unblock;
        int n, v;
        (void)gpi_lent_release(d);
        d->poller = &me;
        (void)gpi_drive_together(d, &me, something_to_do, r, GPI_NEVER);
        d->poller = NULL;
        n = gpi_events_take(d, events, sizeof *events, GPI_EVENTS_MAX);
        unblock = must_unblock(r);
        d->in_callback = true;
        d->callback_thread = pthread_self(); /* while callbacks run, others may drive */
        pthread_mutex_unlock(&d->lock);
        v = call_back(r, events, n);
        if (unblock)
            r->cb.unblock(r->user);
        pthread_mutex_lock(&d->lock);
        d->in_callback = false;
        r->unblocked |= unblock;
        if (v && !stop) {
            stop = v;
            gpi_close(d, GPUD_FINISH_RUNNING, GPI_NEVER);
        }
    }
    return stop;
}

static int verdict(const struct run *r, int stop, struct gpud_error *reterr)
{
    if (stop)
        return stop;
    if (r->source_value)
        return r->source_value;
    if (r->submit_error)
        return gpi_fail(reterr, r->submit_error, 0, "task", "a task of the source was refused: %s", gpud_error_text(r->submit_error));
    return r->closed ? GPUD_ESTOPPED : 0;
}

/* On failure nothing has begun.  Lock held. */
static int begin(struct run *r, struct gpud_error *reterr)
{
    gpud_dispatcher *d = r->d;
    int e = d->closing ? GPUD_ECLOSED : gpi_drive_enter(d);

    if (e)
        return gpi_fail(reterr, e, 0, "", "%s", gpud_error_text(e));
    d->feeding = true;
    e = start_feeder(r);
    if (e == 0)
        return 0;
    d->feeding = false;
    gpi_drive_leave(d);
    return gpi_fail(reterr, GPUD_ESYSTEM, e, "", "no feeder thread");
}

int gpi_run(gpud_dispatcher *d, gpud_source_fn *source, const struct gpud_callbacks *cb, void *user, struct gpud_error *reterr)
{
    struct run r = { .d = d, .source = source, .cb = *cb, .user = user };
    struct gpud_event *events = malloc(sizeof *events * GPI_EVENTS_MAX);
    int e, stop;

    if (!events)
        return gpi_fail(reterr, GPUD_ENOMEM, 0, "", "no memory for events");
    pthread_mutex_lock(&d->lock);
    e = begin(&r, reterr);
    if (e) {
        pthread_mutex_unlock(&d->lock);
        free(events);
        return e;
    }
    stop = pump(&r, events);
    (void)gpi_lent_release(d);
    r.closed = d->closing || atomic_load(&d->stop_asked); /* nobody may have driven since */
    gpi_drive_leave(d);
    pthread_mutex_unlock(&d->lock);
    pthread_join(r.feeder, NULL);
    free(events);
    return verdict(&r, stop, reterr);
}
