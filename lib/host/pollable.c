/* SPDX-License-Identifier: MIT */
/*
 * pollable.c - one fd for an event loop of the host: readable when a poll without waiting would
 * deliver an event or act.
 *
 * The fd is an epoll of its own, so that a host that reads from it by mistake disturbs nothing.  In
 * it:
 *
 *   news   events wait, or all have been delivered: both ways of driving
 *   alarm  the earliest timer                 \  with DRIVE_CALLER only, where no other
 *   epoll  all fds that the driver watches    /  thread would check
 *
 * With DRIVE_CALLER the thread that leaves last requests doorbells from all workers, as a driver
 * does before it sleeps, checks once more, and sets the alarm.  Each event that it finds, and each
 * later submit or request, rings the driver's own doorbell, which is in the epoll.
 *
 * None of this costs anything before a call requests the fd.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/slot.h"
#include "os/fds.h"

static int watch(int outer, int fd)
{
    struct epoll_event e = { .events = EPOLLIN };

    return epoll_ctl(outer, EPOLL_CTL_ADD, fd, &e);
}

/* Sets whether the driver's fds make this fd readable. */
static void heed_epoll(gpud_dispatcher *d, bool heed)
{
    struct epoll_event e = { .events = heed ? EPOLLIN : 0 };

    if (d->pollable.heeded == heed)
        return;
    d->pollable.heeded = heed;
    (void)epoll_ctl(d->pollable.outer, EPOLL_CTL_MOD, d->loop.epoll, &e);
}

/* ---- driving requested ---- */

static void set_alarm(gpud_dispatcher *d, uint64_t at)
{
    struct itimerspec t = { .it_value = { .tv_sec = 0 } };

    if (at == d->pollable.alarm_at)
        return;
    d->pollable.alarm_at = at;
    if (at != GPI_NEVER) {
        at += at == 0; /* a timerfd takes 0 as off */
        t.it_value.tv_sec = (time_t)(at / GPI_S);
        t.it_value.tv_nsec = (long)(at % GPI_S);
    }
    (void)timerfd_settime(d->pollable.alarm, TFD_TIMER_ABSTIME, &t, NULL);
}

void gpi_pollable_away(gpud_dispatcher *d)
{
    d->pollable.away = true;
    if (!gpi_go_to_sleep(d))
        gpi_drive_wake(d); /* a worker that has ended a task has room */
    set_alarm(d, gpi_drive_next(d));
    heed_epoll(d, true);
}

void gpi_pollable_back(gpud_dispatcher *d)
{
    d->pollable.away = false;
    gpi_wake_up(d);
}

/* The driving thread reads the fds and keeps the time.  Until it does, the fd would stay readable,
 * and a loop that spins would keep the lock from it. */
void gpi_pollable_quiet(gpud_dispatcher *d)
{
    if (!d->pollable.calls_out)
        return;
    set_alarm(d, GPI_NEVER);
    heed_epoll(d, false);
}

/* ---- the fd ---- */

static int open_all(gpud_dispatcher *d, int *ret_outer)
{
    bool calls = d->set.drive == GPUD_DRIVE_CALLER;

    *ret_outer = gpi_fd_lift(epoll_create1(EPOLL_CLOEXEC));
    d->pollable.news = gpi_fd_lift(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (calls)
        d->pollable.alarm =
            gpi_fd_lift(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (*ret_outer < 0 || d->pollable.news < 0 || watch(*ret_outer, d->pollable.news))
        return -1;
    if (calls && (d->pollable.alarm < 0 || watch(*ret_outer, d->pollable.alarm) ||
                  watch(*ret_outer, d->loop.epoll)))
        return -1;
    return 0;
}

int gpi_pollable(gpud_dispatcher *d)
{
    int fd = -1;

    pthread_mutex_lock(&d->lock);
    if (d->pollable.outer < 0) {
        d->pollable.told = false;
        d->pollable.heeded = true;
        d->pollable.alarm_at = GPI_NEVER;
        if (open_all(d, &fd)) {
            gpi_fd_close(&fd);
            gpi_pollable_fini(d);
            pthread_mutex_unlock(&d->lock);
            return GPUD_ESYSTEM;
        }
        d->pollable.outer = fd;
        d->pollable.calls_out = d->set.drive == GPUD_DRIVE_CALLER;
        gpi_pollable_tell(d);
        if (d->pollable.calls_out && !d->drive.inside) {
            gpi_pollable_away(d);
            gpi_drive_wake(d); /* no thread has checked yet */
        }
    }
    fd = d->pollable.outer;
    pthread_mutex_unlock(&d->lock);
    return fd;
}

void gpi_pollable_fini(gpud_dispatcher *d)
{
    gpi_fd_close(&d->pollable.outer);
    gpi_fd_close(&d->pollable.news);
    gpi_fd_close(&d->pollable.alarm);
}
