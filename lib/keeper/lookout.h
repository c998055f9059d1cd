/* SPDX-License-Identifier: MIT */
/*
 * lookout.h - when a keeper looks whether its worker has ended though the kernel reports nothing,
 * and a spawner whether something holds the remains of a keeper.
 *
 * The kernel reports a worker's end to the process that traces it, if there is one (a crash
 * reporter that the worker has forked, say).  The keeper gets no SIGCHLD, and waitid returns
 * nothing, until the tracer lets go.  The worker's pidfd becomes readable all the same, and costs
 * no wake-up before; but not where the tracer holds other threads of the worker too: then the next
 * SIGCHLD of any child, a limit or a cancel is a reason to look.  Without pidfds (Linux before 5.3)
 * the keeper looks once a minute.
 */
#ifndef GPI_KEEPER_LOOKOUT_H
#define GPI_KEEPER_LOOKOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gpi_lookout {
    int pidfd;      /* of the worker; or -1 */
    uint64_t pause; /* 0: no reason to look */
    uint64_t at;    /* of the next look; GPI_NEVER: none */
};

#define GPI_LOOKOUT_NONE { .pidfd = -1, .at = UINT64_MAX }

/* A worker was started. */
void gpi_lookout_begin(struct gpi_lookout *l, pid_t worker);
/* It was reaped. */
void gpi_lookout_end(struct gpi_lookout *l);

/* Something ought to be gone soon: looks after 10 ms, then after pauses that double, up to a
 * minute. */
void gpi_lookout_soon(struct gpi_lookout *l);
/* Nothing is to go. */
void gpi_lookout_rarely(struct gpi_lookout *l);

/* Whether it is time to look; then the next time is set. */
bool gpi_lookout_due(struct gpi_lookout *l);

/* The shorter of a pause (-1: for ever) and the time until the next look, in ms, rounded up. */
int gpi_lookout_ms(const struct gpi_lookout *l, int pause);

/* What becomes readable as a reason to look, to poll; or -1. */
int gpi_lookout_fd(const struct gpi_lookout *l);

/* Whether every thread of the worker has ended. */
bool gpi_lookout_ended(const struct gpi_lookout *l, pid_t worker);

#endif
