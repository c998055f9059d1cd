/* SPDX-License-Identifier: MIT */
/* bell.c - a bell that is rung is heard, also where a call is refused. */
#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/fds.h"

static unsigned refusals;

/* In place of libc's. */
ssize_t write(int fd, const void *bytes, size_t size)
{
    if (!refusals)
        return (ssize_t)syscall(SYS_write, fd, bytes, size);
    refusals--;
    errno = ENOMEM;
    return -1;
}

static int heard(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, 0);
}

static bool rings(int fd, unsigned refused)
{
    bool rung;

    refusals = refused;
    rung = gpi_bell_ring(fd);
    refusals = 0;
    return rung;
}

T_CASE(refused_once)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    T_CHECK(fd >= 0);
    T_CHECK(rings(fd, 1));
    T_EQ(heard(fd), 1);
    gpi_bell_silence(fd);
    T_EQ(heard(fd), 0);
    T_CHECK(!rings(fd, 1000000));
    T_EQ(heard(fd), 0);
    gpi_fd_close(&fd);
    T_CHECK(!gpi_bell_ring(fd));
}

T_CASE(rung_often)
{
    const uint64_t most = UINT64_MAX - 1;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    T_CHECK(fd >= 0);
    T_EQ(gpi_fd_write(fd, &most, sizeof most), 0);
    T_CHECK(gpi_bell_ring(fd));
    gpi_bell_silence(fd);
    T_EQ(heard(fd), 0);
    gpi_bell_silence(fd); /* does not wait */
    gpi_fd_close(&fd);
}
