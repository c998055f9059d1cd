/* SPDX-License-Identifier: MIT */
/*
 * run.c - run: a feeder thread pulls from the source and submits; the calling thread polls and
 * calls back.  A source that blocks delays neither dispatch nor limits.                 [C12] [C16]
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failure.h"
#include "base/refused.h"
#include "base/versioned.h"
#include "host/act.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"

#define SLACK 256u /* behind the records: a source may write a longer one than it declared */
#define FIRST_TASK_SIZE \
    (offsetof(struct gpud_task_desc, awaited) + sizeof(uint32_t)) /* as of version 0.1 */

/* Why a run ends before its source does. */
enum over { OVER_NO, OVER_FAILED, OVER_REFUSED };

struct run {
    gpud_dispatcher *d;
    gpud_source_fn *source;
    struct gpud_callbacks cb;
    void *user;
    unsigned char *tasks; /* filled by the source */
    pthread_t feeder;
    bool fed; /* the feeder has left the source; guarded by the dispatcher's lock */
    enum over over;
    int source_value;
    struct gpud_error refused;
    const char *stopper; /* the callback that requested the stop, or NULL */
    int stop_value;
    struct gpud_run_counts counts;
    char no_worker[GPI_FAIL_TEXT_SIZE]; /* why a task ended NO_WORKER, if one did */
    bool unblocked;                     /* the source was requested to return */
    bool closed;                        /* as at the end; afterwards the dispatcher may be gone */
};

/* ---- the feeder ---- */

static bool must_end(gpud_dispatcher *d)
{
    return d->close.closing || atomic_load(&d->close.stop_asked);
}

/* Returns how many tasks have room, at least one: that task waits for room. */
static size_t room(gpud_dispatcher *d)
{
    uint32_t left;

    pthread_mutex_lock(&d->lock);
    left = d->intake.live < d->set.queue_size ? d->set.queue_size - d->intake.live : 1;
    pthread_mutex_unlock(&d->lock);
    return left < GPI_FED_AT_ONCE ? left : GPI_FED_AT_ONCE;
}

/* While a source feeds, close cannot complete. */
static void hear_source(gpud_dispatcher *d, bool feeds)
{
    d->now = gpi_now();
    gpi_hear(d, (struct gpi_sched_event){ .kind = GPI_EV_SOURCE, .how = feeds });
}

static struct gpud_task_desc *prepare(struct run *r, size_t n)
{
    memset(r->tasks, 0, n * r->cb.task_size);
    for (size_t i = 0; i < n; i++)
        memcpy(r->tasks + i * r->cb.task_size, &r->cb.task_size, sizeof r->cb.task_size);
    return (struct gpud_task_desc *)(void *)r->tasks;
}

static void take(struct run *r, size_t n)
{
    const struct gpi_offer offer = {
        .tasks = r->tasks,
        .n = n,
        .stride = r->cb.task_size,
        .fed = true,
    };
    size_t taken;

    if (gpi_tasks_submit(r->d, &offer, GPUD_NEVER, NULL, &taken, &r->refused))
        r->over = OVER_REFUSED;
    r->counts.pulled += taken;
}

static void *feed(void *arg)
{
    struct run *r = arg;

    while (!must_end(r->d)) {
        size_t n = room(r->d);
        int given = r->source(prepare(r, n), n, r->user);
        if (given < 0 || (size_t)given > n) {
            r->over = OVER_FAILED;
            r->source_value = given;
        }
        if (given > 0 && !r->over)
            take(r, (size_t)given);
        if (given == 0 || r->over)
            break;
    }
    pthread_mutex_lock(&r->d->lock);
    r->fed = true;
    hear_source(r->d, false);
    gpi_drive_wake(r->d);
    gpi_drive_tell(r->d);
    pthread_mutex_unlock(&r->d->lock);
    return NULL;
}

/* ---- the callbacks ---- */

static gpud_event_fn *receiver(const struct gpud_callbacks *cb, const struct gpud_event *e,
                               const char **ret_name)
{
    *ret_name = "on_event";
    if (e->kind == GPUD_EVENT_SETUP_FAILURE && cb->on_setup_failure)
        return *ret_name = "on_setup_failure", cb->on_setup_failure;
    if (e->kind != GPUD_EVENT_OUTCOME)
        return cb->on_event;
    if (e->outcome == GPUD_OUTCOME_SUCCESS)
        return *ret_name = "on_success", cb->on_success;
    if (e->outcome == GPUD_OUTCOME_TIMEOUT && cb->on_timeout)
        return *ret_name = "on_timeout", cb->on_timeout;
    return *ret_name = "on_error", cb->on_error;
}

/* The counts lie side by side, in the order of enum gpud_outcome. */
_Static_assert(offsetof(struct gpud_run_counts, no_worker) -
                       offsetof(struct gpud_run_counts, success) ==
                   (GPUD_OUTCOME_NO_WORKER - GPUD_OUTCOME_SUCCESS) * sizeof(uint64_t),
               "one count per outcome");

static void count(struct gpud_run_counts *c, const struct gpud_event *e)
{
    uint64_t *first = (uint64_t *)(void *)((char *)c + offsetof(struct gpud_run_counts, success));

    if (e->kind == GPUD_EVENT_OUTCOME)
        first[e->outcome - GPUD_OUTCOME_SUCCESS]++;
}

/* Delivers events, without the lock.  Keeps the first value that requests a stop. */
static void call_back(struct run *r, const struct gpud_event *events, int n)
{
    for (int i = 0; i < n; i++) {
        const char *name;
        gpud_event_fn *fn = receiver(&r->cb, &events[i], &name);
        int v;
        count(&r->counts, &events[i]);
        if (events[i].outcome == GPUD_OUTCOME_NO_WORKER && r->d->set.pooled && !*r->no_worker)
            snprintf(r->no_worker, sizeof r->no_worker, "%s", events[i].text);
        v = fn ? fn(&events[i], r->user) : 0;
        if (v && !r->stopper) {
            r->stopper = name;
            r->stop_value = v;
        }
    }
}

static bool over(const struct run *r)
{
    return r->fed && r->d->intake.live == r->d->intake.awaited && gpi_events_waiting(r->d) == 0;
}

static bool must_unblock(const struct run *r)
{
    return r->d->close.closing && !r->unblocked && r->cb.unblock;
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
    errno = e;
    return e ? gpi_refused(GPI_SYS_PTHREAD_CREATE) : 0;
}

/* Polls and calls back until the source has ended and all events are delivered.  Lock held on entry
 * and exit. */
static void pump(struct run *r, struct gpud_event *events)
{
    gpud_dispatcher *d = r->d;
    bool stopped = false;

    while (!over(r)) {
        bool unblock;
        int n;
        (void)gpi_lent_release(d);
        (void)gpi_drive_for_events(d, something_to_do, r, GPI_NEVER);
        n = gpi_events_take(d, events, sizeof *events, GPI_EVENTS_MAX);
        unblock = must_unblock(r);
        d->callback.inside = true;
        d->callback.thread = pthread_self(); /* other threads may drive during callbacks */
        pthread_mutex_unlock(&d->lock);
        call_back(r, events, n);
        if (unblock)
            r->cb.unblock(r->user);
        pthread_mutex_lock(&d->lock);
        d->callback.inside = false;
        r->unblocked |= unblock;
        if (r->stopper && !stopped) {
            stopped = true;
            gpi_close_in_run(d);
        }
    }
}

/* ---- the end ---- */

static int source_failed(const struct run *r, struct gpud_error *e)
{
    if (r->source_value < 0)
        return gpi_fail(e, GPUD_ESOURCE, 0, "source", "source returned %d after %llu tasks",
                        r->source_value, (unsigned long long)r->counts.pulled);
    return gpi_fail(e, GPUD_ESOURCE, 0, "source",
                    "source returned %d after %llu tasks, which is more than its argument n",
                    r->source_value, (unsigned long long)r->counts.pulled);
}

static int verdict(struct run *r, struct gpud_error *e)
{
    if (r->stopper) {
        r->counts.value = r->stop_value;
        return gpi_fail(e, GPUD_ECALLBACK, 0, r->stopper, "%s returned %d", r->stopper,
                        r->stop_value);
    }
    if (r->over == OVER_FAILED) {
        r->counts.value = r->source_value;
        return source_failed(r, e);
    }
    if (r->over == OVER_REFUSED)
        return gpi_fail(e, GPUD_EREFUSED, r->refused.sys_errno, r->refused.field,
                        "task %llu of the source, counted from 0: %s: %s",
                        (unsigned long long)r->counts.pulled, gpud_error_name(r->refused.code),
                        r->refused.text);
    if (r->counts.no_worker)
        return gpi_fail(e, GPUD_ENOWORKER, 0, "", "%s", r->no_worker);
    return r->closed ? gpi_fail(e, GPUD_ESTOPPED, 0, "", "%s", gpud_error_text(GPUD_ESTOPPED)) : 0;
}

/* If this fails, nothing has begun.  Lock held. */
static int begin(struct run *r, struct gpud_error *reterr)
{
    gpud_dispatcher *d = r->d;
    int e = d->close.closing ? GPUD_ECLOSED : gpi_drive_enter(d);

    if (e)
        return gpi_fail(reterr, e, 0, "", "%s", gpud_error_text(e));
    hear_source(d, true);
    if (start_feeder(r) == 0)
        return 0;
    e = errno;
    hear_source(d, false);
    gpi_drive_leave(d);
    return gpi_fail(reterr, GPUD_ESYSTEM, e, "", "starting the feeder thread failed");
}

static int run(struct run *r, struct gpud_event *events, struct gpud_error *reterr)
{
    gpud_dispatcher *d = r->d;
    int e;

    pthread_mutex_lock(&d->lock);
    e = begin(r, reterr);
    if (e) {
        pthread_mutex_unlock(&d->lock);
        return e;
    }
    pump(r, events);
    (void)gpi_lent_release(d);
    r->closed = must_end(d); /* perhaps no thread has driven since */
    if (!*r->no_worker)
        snprintf(r->no_worker, sizeof r->no_worker, "%s", gpi_why_no_worker(d, 0));
    gpi_drive_leave(d);
    pthread_mutex_unlock(&d->lock);
    pthread_join(r->feeder, NULL);
    return verdict(r, reterr);
}

static int run_with_memory(struct run *r, struct gpud_error *e)
{
    struct gpud_event *events;
    int code;

    if (!r->cb.task_size)
        r->cb.task_size = FIRST_TASK_SIZE;
    if (!gpi_versioned_sized(r->cb.task_size, GPI_DESC_LEAST))
        return gpi_fail(e, GPUD_ESTRUCT, 0, "task_size", "callbacks.task_size is %u, expected %zu",
                        r->cb.task_size, sizeof(struct gpud_task_desc));
    events = malloc(sizeof *events * GPI_EVENTS_MAX);
    r->tasks = malloc((size_t)GPI_FED_AT_ONCE * r->cb.task_size + SLACK);
    code = events && r->tasks ? run(r, events, e)
                              : gpi_fail(e, GPUD_ENOMEM, 0, "", "no memory for events and tasks");
    free(events);
    free(r->tasks);
    return code;
}

int gpi_run(gpud_dispatcher *d, gpud_source_fn *source, const struct gpud_callbacks *cb, void *user,
            struct gpud_error *reterr)
{
    struct run r = {
        .d = d, .source = source, .cb = *cb, .user = user, .refused = GPUD_ERROR_INIT
    };
    struct gpud_run_counts *counts = cb->counts;
    int code;

    if (counts &&
        !gpi_versioned_sized(counts->struct_size, offsetof(struct gpud_run_counts, success)))
        return gpi_fail(reterr, GPUD_ESTRUCT, 0, "counts", "counts.struct_size is %u, expected %zu",
                        counts->struct_size, sizeof *counts);
    code = run_with_memory(&r, reterr);
    if (counts)
        gpi_versioned_write(counts, counts->struct_size, &r.counts, sizeof r.counts);
    return code;
}
