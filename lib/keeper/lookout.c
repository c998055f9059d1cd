/* SPDX-License-Identifier: MIT */
#include "keeper/lookout.h"

#include <poll.h>

#include "base/clock.h"
#include "os/children.h"
#include "os/fds.h"
#include "os/process.h"

#define FIRST_NS (10 * GPI_MS) /* the kernel has reported an ordinary death by then */
#define LAST_NS (60 * GPI_S)

void gpi_lookout_begin(struct gpi_lookout *l, pid_t worker)
{
    l->pidfd = gpi_process_pidfd(worker);
    gpi_lookout_rarely(l);
}

void gpi_lookout_end(struct gpi_lookout *l)
{
    gpi_fd_close(&l->pidfd);
    l->pause = 0;
    l->at = GPI_NEVER;
}

void gpi_lookout_soon(struct gpi_lookout *l)
{
    if (l->pause)
        return;
    l->pause = FIRST_NS;
    l->at = gpi_now() + l->pause;
}

void gpi_lookout_rarely(struct gpi_lookout *l)
{
    l->pause = 0;
    l->at = l->pidfd < 0 ? gpi_now() + LAST_NS : GPI_NEVER;
}

bool gpi_lookout_due(struct gpi_lookout *l)
{
    const uint64_t now = gpi_now();

    if (now < l->at)
        return false;
    l->pause = gpi_time_min(l->pause ? 2 * l->pause : FIRST_NS, LAST_NS);
    l->at = now + l->pause;
    return true;
}

int gpi_lookout_ms(const struct gpi_lookout *l, int pause)
{
    const uint64_t now = gpi_now();
    int ms;

    if (l->at == GPI_NEVER)
        return pause;
    ms = l->at > now ? (int)((l->at - now) / GPI_MS) + 1 : 0;
    return pause < 0 || ms < pause ? ms : pause;
}

/* -1 while there is a reason to look already: the pidfd stays readable. */
int gpi_lookout_fd(const struct gpi_lookout *l)
{
    return l->pause ? -1 : l->pidfd;
}

bool gpi_lookout_ended(const struct gpi_lookout *l, pid_t worker)
{
    struct pollfd p = { .fd = l->pidfd, .events = POLLIN };

    return poll(&p, 1, 0) == 1 || gpi_children_ended(worker);
}
