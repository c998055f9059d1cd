/* SPDX-License-Identifier: MIT */
#include "os/fds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BELL_TRIES 3

/* Below the limit there must be room for a handful of ours above the floor. */
static int fd_floor(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= GPI_FD_FLOOR + 256)
        return GPI_FD_FLOOR;
    return r.rlim_cur > 64 ? (int)r.rlim_cur / 2 : 3;
}

/* Needs no /proc, and looks no further than it must. */
uint32_t gpi_fd_free(uint32_t enough, uint64_t *ret_limit)
{
    struct rlimit r;
    uint32_t n = 0;

    *ret_limit = getrlimit(RLIMIT_NOFILE, &r) ? INT_MAX : r.rlim_cur;
    for (int fd = 0; n < enough && fd < INT_MAX && (uint64_t)fd < *ret_limit; fd++)
        n += fcntl(fd, F_GETFD) < 0;
    return n;
}

int gpi_fd_lift(int fd)
{
    int up;

    if (fd < 0 || fd >= GPI_FD_FLOOR)
        return fd;
    up = fcntl(fd, F_DUPFD_CLOEXEC, fd_floor());
    if (up < 0)
        up = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (up < 0)
        (void)gpi_refused(GPI_SYS_FCNTL);
    gpi_fd_close(&fd);
    return up;
}

int gpi_fd_made(enum gpi_sys call, int fd)
{
    return fd < 0 ? gpi_refused(call) : gpi_fd_lift(fd);
}

int gpi_fd_lift_both(int fd[2])
{
    fd[0] = gpi_fd_lift(fd[0]);
    fd[1] = gpi_fd_lift(fd[1]);
    if (fd[0] >= 0 && fd[1] >= 0)
        return 0;
    gpi_fd_close(&fd[0]);
    gpi_fd_close(&fd[1]);
    return -1;
}

int gpi_fd_pipe(int *ret_read, int *ret_write)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC))
        return gpi_refused(GPI_SYS_PIPE);
    if (gpi_fd_lift_both(p))
        return -1;
    *ret_read = p[0];
    *ret_write = p[1];
    return 0;
}

int gpi_fd_nonblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
        return gpi_refused(GPI_SYS_FCNTL);
    return 0;
}

int gpi_fd_write(int fd, const void *bytes, size_t size)
{
    ssize_t r;

    do
        r = write(fd, bytes, size); /* whole or not at all: up to PIPE_BUF bytes, or an eventfd */
    while (r < 0 && errno == EINTR);
    return r == (ssize_t)size ? 0 : -1;
}

bool gpi_bell_ring(int fd)
{
    const uint64_t one = 1;

    for (unsigned tries = 0; tries < BELL_TRIES; tries++)
        if (gpi_fd_write(fd, &one, sizeof one) == 0 || errno == EAGAIN) /* readable already */
            return true;
    return false;
}

void gpi_bell_silence(int fd)
{
    uint64_t n;

    (void)!read(fd, &n, sizeof n);
}

void gpi_fd_close(int *fd)
{
    const int err = errno;

    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = err;
}

/* For kernels before 5.9: one by one. */
static void close_range_slowly(unsigned first, unsigned last)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *e;

    if (!dir) {
        struct rlimit r;
        unsigned top =
            getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur > 65536 ? 65536 : (unsigned)r.rlim_cur;
        for (unsigned fd = first; fd < top && fd <= last; fd++)
            close((int)fd);
        return;
    }
    while ((e = readdir(dir))) {
        unsigned fd = (unsigned)strtoul(e->d_name, NULL, 10);
        if (e->d_name[0] != '.' && fd >= first && fd <= last && (int)fd != dirfd(dir))
            close((int)fd);
    }
    closedir(dir);
}

static void close_span(unsigned first, unsigned last)
{
    if (first > last)
        return;
#ifdef SYS_close_range
    if (!syscall(SYS_close_range, first, last, 0))
        return;
#endif
    close_range_slowly(first, last);
}

void gpi_fd_close_others(const int *keep, size_t n)
{
    unsigned first = 0;

    for (;;) { /* each round closes the gap below the lowest kept fd not yet passed */
        unsigned next = UINT_MAX;
        for (size_t i = 0; i < n; i++)
            if (keep[i] >= 0 && (unsigned)keep[i] >= first && (unsigned)keep[i] < next)
                next = (unsigned)keep[i];
        if (next == UINT_MAX)
            break;
        if (next > first)
            close_span(first, next - 1);
        first = next + 1;
    }
    close_span(first, UINT_MAX);
}
