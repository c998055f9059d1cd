/* SPDX-License-Identifier: MIT */
/*
 * drivers.c - which thread drives.
 *
 * Of the user threads inside poll, run, wait or ready, one drives.  The rest sleep, each on its
 * own condition, until their event is ready or the driver leaves.  When it leaves, it wakes the
 * thread that has slept longest, which then drives.  A thread that is woken to drive but whose own
 * event is ready wakes the next one, and a thread that comes in meanwhile may drive instead.  So
 * while threads are inside, one drives or has been woken to drive.
 *
 * With DRIVE_THREAD a library thread takes over when no user thread has been inside for 1 ms.
 * It is in one of three states:
 *
 *   DRIVING  no user thread is inside; it waits in epoll like a user thread would
 *   TICKING  a user thread came in; it checks every millisecond whether they have left
 *   DEEP     the same user thread has been inside for a whole tick; it sleeps until they leave
 *
 * It leaves DRIVING when it finds a user thread inside, or when four have come in within a
 * millisecond.  So a program that polls in a loop costs about one wake-up a millisecond, one that
 * waits inside costs none, and an idle program has none at all (C20).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "base/clock.h"
#include "base/refused.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "os/fds.h"
#include "os/process.h"

#define TAKE_OVER_MS 1
#define VISITS_ENOUGH 4 /* in that time: the user's threads drive, without the library thread */

static bool others_drive(const gpud_dispatcher *d, const void *unused)
{
    (void)unused;
    return d->drive.inside || d->drive.lib_quit || d->drive.visits >= VISITS_ENOUGH;
}

/* Sleeps without the lock, for a tick or until another thread rings. */
static void doze(gpud_dispatcher *d, int ms)
{
    struct pollfd p = { .fd = d->loop.lib_fd, .events = POLLIN };

    pthread_mutex_unlock(&d->lock);
    if (poll(&p, 1, ms) > 0)
        gpi_bell_silence(d->loop.lib_fd);
    pthread_mutex_lock(&d->lock);
}

static void *library_thread(void *arg)
{
    gpud_dispatcher *d = arg;

    gpi_process_prompt(0, true); /* a host behind programs that compute must keep limits, too */
    pthread_mutex_lock(&d->lock);
    while (!d->drive.lib_quit) {
        uint64_t entries = d->drive.entries;
        d->drive.lib = GPI_LIB_TICKING;
        doze(d, TAKE_OVER_MS);
        if (d->drive.entries != entries)
            continue;
        if (d->drive.inside) {
            d->drive.lib = GPI_LIB_DEEP;
            doze(d, -1);
            continue;
        }
        d->drive.lib = GPI_LIB_DRIVING;
        d->drive.visits = 0;
        (void)gpi_drive_until(d, others_drive, NULL, GPI_NEVER);
        gpi_drive_wake(d); /* a user thread may wait for an event of the last turn */
    }
    d->drive.lib = GPI_LIB_NONE;
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

int gpi_drive_start_thread(gpud_dispatcher *d)
{
    sigset_t all, old;
    int r;

    d->drive.lib = GPI_LIB_TICKING;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    r = pthread_create(&d->drive.lib_thread, NULL, library_thread, d);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r == 0)
        return 0;
    d->drive.lib = GPI_LIB_NONE;
    errno = r;
    return gpi_refused(GPI_SYS_PTHREAD_CREATE);
}

/* A thread that comes and goes while the library thread waits for the lock is never inside when the
 * library thread checks, so visits are counted. */
static void count_visit(gpud_dispatcher *d)
{
    if (d->now - d->drive.visits_since > TAKE_OVER_MS * GPI_MS) {
        d->drive.visits_since = d->now;
        d->drive.visits = 0;
    }
    d->drive.visits++;
}

void gpi_drive_go_in(gpud_dispatcher *d)
{
    d->drive.inside++;
    d->drive.entries++;
    if (d->drive.lib == GPI_LIB_DRIVING) {
        count_visit(d);
        gpi_drive_wake(d); /* out of epoll: events would wake both */
    } else if (d->pollable.away) {
        gpi_pollable_back(d);
    }
}

void gpi_drive_go_out(gpud_dispatcher *d)
{
    if (--d->drive.inside)
        return;
    if (d->drive.lib == GPI_LIB_DEEP)
        gpi_bell_ring(d->loop.lib_fd);
    else if (d->drive.lib == GPI_LIB_DRIVING)
        gpi_drive_wake(d); /* still in epoll, without doorbells */
    else if (d->pollable.calls_out)
        gpi_pollable_away(d);
}

bool gpi_drive_together(gpud_dispatcher *d, struct gpi_sleeper *me, gpi_done_fn *done,
                        const void *context, uint64_t until)
{
    bool got = false, in_time = true;

    gpi_drive_go_in(d);
    while (d->drive.driven && !(got = done(d, context)) && until && in_time)
        in_time = gpi_sleep_beside(d, me, until);
    if (!d->drive.driven) {
        d->drive.driven = true;
        got = gpi_drive_until(d, done, context, until);
        d->drive.driven = false;
        gpi_sleepers_hand_over(d);
    }
    gpi_drive_go_out(d);
    return got;
}

bool gpi_drive_for_events(gpud_dispatcher *d, gpi_done_fn *done, const void *context,
                          uint64_t until)
{
    struct gpi_sleeper me = { .asleep = false };
    bool got;

    d->waits.poller = &me;
    got = gpi_drive_together(d, &me, done, context, until);
    d->waits.poller = NULL;
    return got;
}

static void join_library_thread(gpud_dispatcher *d)
{
    if (d->drive.lib == GPI_LIB_NONE)
        return;
    d->drive.lib_quit = true;
    gpi_drive_wake(d);
    (void)gpi_bell_ring(d->loop.lib_fd);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->drive.lib_thread, NULL);
    pthread_mutex_lock(&d->lock);
}

void gpi_drive_alone(gpud_dispatcher *d)
{
    gpi_drive_go_in(d);
    d->drive.driven = true;
    join_library_thread(d);
}

int gpi_drive_enter(gpud_dispatcher *d)
{
    if (gpi_drive_reenters(d))
        return GPUD_EREENTER;
    if (d->drive.occupied)
        return GPUD_EBUSY;
    d->drive.occupied = true;
    return 0;
}

void gpi_drive_leave(gpud_dispatcher *d)
{
    d->drive.occupied = false;
    if (d->pollable.outer < 0)
        return;
    gpi_pollable_tell(d);
    if (d->drive.inside)
        gpi_pollable_quiet(d);
}
