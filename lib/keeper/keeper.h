/* SPDX-License-Identifier: MIT */
/*
 * keeper.h - the small process that owns one slot's workers: it alone starts, guards, kills and
 * reaps them.  It has one thread and a session of its own, blocks every signal, is a child
 * subreaper, and never blocks but in poll.
 *
 * When a worker exits, the keeper kills the worker's group while the leader is still a zombie, so
 * that it never hits a recycled number.  Then it kills every child that is left, and only then
 * reports.  A pidfd watches a worker that a process of its own traces, and the keeper kills such
 * tracers.  A worker that no signal reaches dies by the keeper's own end.
 *
 * When the host is gone the keeper ends, and every process it has started with it.  [C8] [C11]
 */
#ifndef GPI_KEEPER_KEEPER_H
#define GPI_KEEPER_KEEPER_H

#include "os/watch.h"
#include "wire/control.h"
#include "wire/plan.h"

struct gpi_keeper_plan {
    const struct gpi_spawner_plan *spawner;
    pid_t parent;           /* the spawner */
    uint32_t slot;
    int control;            /* socket to the host */
    struct gpi_watch host;  /* the keeper ends with the host */
    int fds[GPI_MAKE_FDS];
};

/* Becomes the keeper; does not return. */
_Noreturn void gpi_keeper_run(const struct gpi_keeper_plan *plan);

#endif
