/* SPDX-License-Identifier: MIT */
/* sweep.h - killing every child of this process, reparented ones included. */
#ifndef GPI_KEEPER_SWEEP_H
#define GPI_KEEPER_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define GPI_SWEEP_SPARED 1280u /* per call, at most */

/* Sends SIGKILL to each child that is not in spare[0..n).  Only this process reaps its children, so
 * the signal cannot hit a recycled number.  Returns the number of children that were there, 0 =
 * swept.  Returns -1 if it cannot read them now, for lack of files or memory: call it again soon,
 * since no death will trigger it.  *ret_denied (may be NULL): the number of children that got no
 * signal. */
int gpi_sweep(const pid_t *spare, size_t n, int *ret_denied);

/* Kills the tracers of these children, see os/children.h.  Reads much of /proc: for children that
 * are still there some time after a sweep. */
void gpi_sweep_tracers(const pid_t *spare, size_t n);

/* Returns whether this process has no child at all. */
bool gpi_sweep_childless(void);

#endif
