/* SPDX-License-Identifier: MIT */
/*
 * keeper.h - the tiny process that owns one slot's workers: it alone starts, reaps, kills and
 * guards them.  One thread, own session, every signal blocked, child subreaper, never blocks
 * but in poll.  When a worker exits it kills the group while the leader is still a zombie (a
 * recycled number can never be hit), then every child that is left, and only then reports.
 * A worker that a process of its own traces is watched by pidfd, and freed of its tracers; one
 * that no signal reaches dies by our own end.
 * It ends, and everything it started with it, when the host is gone.          [C8] [C11]
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
    struct gpi_watch host;  /* it ends with the host */
    int fds[GPI_MAKE_FDS + 1]; /* the last, of the program, may be -1 */
};

/* Becomes the keeper; does not return. */
_Noreturn void gpi_keeper_run(const struct gpi_keeper_plan *plan);

#endif
