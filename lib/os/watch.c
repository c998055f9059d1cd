/* SPDX-License-Identifier: MIT */
#include "os/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "os/fds.h"
#include "os/process.h"

#define HINT SIGHUP
#define PAUSE_MS 200 /* of C11's second */

/* When the process was born, in ticks since boot; 0 when there is none, or only its zombie. */
static uint64_t birth_of(pid_t pid)
{
    char text[1024], state = 'X';
    const char *stat = gpi_process_stat(pid, text, sizeof text);
    unsigned long long born = 0;
    long threads = 0;

    if (!stat ||
        sscanf(stat,
               "%c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
               &state, &threads, &born) != 3)
        return 0;
    /* with more, only its first thread has ended */
    if (state == 'X' || (state == 'Z' && threads <= 1))
        return 0;
    return born ? born : 1;
}

static int hint_fd(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, HINT);
    return gpi_fd_made(GPI_SYS_SIGNALFD, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

/* Asks for the hint; from now on our parent's end cannot be missed. */
static int ask_for_hint(struct gpi_watch *w)
{
    w->parent = getppid();
    if (prctl(PR_SET_PDEATHSIG, HINT))
        return gpi_refused(GPI_SYS_PRCTL);
    if (getppid() != w->parent)
        w->parent = 0; /* it ended in between: look by ourselves */
    return 0;
}

int gpi_watch_parent(struct gpi_watch *w, pid_t pid)
{
    memset(w, 0, sizeof *w);
    w->pid = pid;
    w->fd = gpi_process_pidfd(pid);
    if (w->fd < 0 && gpi_process_no_pidfds(errno)) {
        w->hint = true;
        w->born = birth_of(pid);
        w->fd = hint_fd();
        if (w->fd < 0 || ask_for_hint(w))
            return -1;
    }
    if (w->fd >= 0 && getppid() != pid) {
        gpi_fd_close(&w->fd);
        errno = ESRCH;
    }
    return w->fd < 0 ? -1 : 0;
}

int gpi_watch_inherit(struct gpi_watch *w)
{
    return w->hint ? ask_for_hint(w) : 0; /* the signalfd tells of whoever reads it */
}

bool gpi_watch_gone(struct gpi_watch *w)
{
    struct signalfd_siginfo drop;
    struct pollfd p = { .fd = w->fd, .events = POLLIN };

    if (!w->hint)
        return poll(&p, 1, 0) == 1;
    while (read(w->fd, &drop, sizeof drop) > 0)
        w->doubt = true;
    return birth_of(w->pid) != w->born;
}

int gpi_watch_pause(const struct gpi_watch *w)
{
    return w->hint && (w->doubt || getppid() != w->parent) ? PAUSE_MS : -1;
}
