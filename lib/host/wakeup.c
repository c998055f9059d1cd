/* SPDX-License-Identifier: MIT */
/* wakeup.c - the fds that the driving thread watches, and the doorbell that wakes it. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/refused.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "os/fds.h"

int gpi_drive_watch(gpud_dispatcher *d, int fd, enum gpi_fd_kind kind, uint32_t slot)
{
    struct epoll_event e = { .events = EPOLLIN, .data.u64 = (uint64_t)kind << 32 | slot };

    return epoll_ctl(d->loop.epoll, EPOLL_CTL_ADD, fd, &e) ? gpi_refused(GPI_SYS_EPOLL_CTL) : 0;
}

void gpi_drive_unwatch(gpud_dispatcher *d, int fd)
{
    /* A forked child that cleans up must not remove the fd from the host's set. */
    if (fd >= 0 && *d->alive)
        (void)epoll_ctl(d->loop.epoll, EPOLL_CTL_DEL, fd, NULL);
}

void gpi_drive_close(gpud_dispatcher *d, int *fd)
{
    gpi_drive_unwatch(
        d, *fd); /* a bare-forked sibling may hold a copy: close alone would leave it watched */
    gpi_fd_close(fd);
}

void gpi_drive_wake(gpud_dispatcher *d)
{
    if (d->loop.woken || (!d->loop.sleepers && !d->pollable.calls_out))
        return;
    d->loop.woken = gpi_bell_ring(d->loop.wake);
}

int gpi_drive_init(gpud_dispatcher *d)
{
    const uint64_t one = 1;
    struct epoll_event e;

    d->loop.epoll = gpi_fd_made(GPI_SYS_EPOLL_CREATE, epoll_create1(EPOLL_CLOEXEC));
    if (d->loop.epoll < 0)
        return -1;
    d->loop.wake = gpi_fd_made(GPI_SYS_EVENTFD, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (d->loop.wake < 0)
        return -1;
    d->loop.lib_fd = gpi_fd_made(GPI_SYS_EVENTFD, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (d->loop.lib_fd < 0)
        return -1;
    /* If the kernel refuses one of these two, the host would lose events without any sign. */
    if (epoll_wait(d->loop.epoll, &e, 1, 0) < 0 && errno != EINTR)
        return gpi_refused(GPI_SYS_EPOLL_WAIT);
    if (gpi_fd_write(d->loop.wake, &one, sizeof one))
        return gpi_refused(GPI_SYS_WRITE);
    gpi_bell_silence(d->loop.wake);
    return gpi_drive_watch(d, d->loop.wake, GPI_FD_WAKE, 0);
}

void gpi_drive_fini(gpud_dispatcher *d)
{
    gpi_fd_close(&d->loop.lib_fd);
    gpi_fd_close(&d->loop.wake);
    gpi_fd_close(&d->loop.epoll);
}
