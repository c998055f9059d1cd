/* SPDX-License-Identifier: MIT */
/*
 * lookout.h - when a keeper checks whether its worker has ended although the kernel reports
 * nothing, and a spawner whether a process holds the remains of a keeper.
 *
 * The kernel reports a worker's end to the process that traces it, if there is one (for example a
 * crash reporter that the worker has forked).  Until the tracer lets go, the keeper gets no
 * SIGCHLD, and its waitid returns nothing.  The worker's pidfd becomes readable all the same, and
 * costs no wake-up before.  It does not if the tracer holds other threads of the worker, too.  Then
 * the next SIGCHLD of any child, a limit or a cancel is the reason to look.  Without pidfds (Linux
 * before 5.3) the keeper looks once a minute.
 */
#ifndef GPI_KEEPER_LOOKOUT_H
#define GPI_KEEPER_LOOKOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gpi_lookout {
    int pidfd;      /* of the worker; or -1 */
    uint64_t pause; /* 0: no reason to look */
    uint64_t at;    /* time of the next look; GPI_NEVER: none */
};

#define GPI_LOOKOUT_NONE { .pidfd = -1, .at = UINT64_MAX }

/* To be called when a worker has started. */
void gpi_lookout_begin(struct gpi_lookout *l, pid_t worker);
/* To be called when the worker is reaped. */
void gpi_lookout_end(struct gpi_lookout *l);

/* Some process should be gone soon: schedules looks after 10 ms, then after pauses that double, up
 * to a minute. */
void gpi_lookout_soon(struct gpi_lookout *l);
/* No process is expected to go. */
void gpi_lookout_rarely(struct gpi_lookout *l);

/* Returns whether it is time to look; if so, sets the next time. */
bool gpi_lookout_due(struct gpi_lookout *l);

/* Returns the shorter of a pause (-1: unlimited) and the time until the next look, in ms, rounded
 * up. */
int gpi_lookout_ms(const struct gpi_lookout *l, int pause);

/* Returns the fd to poll that becomes readable as a reason to look, or -1. */
int gpi_lookout_fd(const struct gpi_lookout *l);

/* Returns whether every thread of the worker has ended. */
bool gpi_lookout_ended(const struct gpi_lookout *l, pid_t worker);

#endif
