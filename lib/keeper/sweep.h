/* SPDX-License-Identifier: MIT */
/* sweep.h - killing every child of this process, those that were reparented to it included. */
#ifndef GPI_KEEPER_SWEEP_H
#define GPI_KEEPER_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define GPI_SWEEP_SPARED 1280u /* at most, in one call */

/* Sends SIGKILL to each child that is not in spare[0..n).  Children are ours to reap, so no
 * recycled number can be hit.  Returns how many there were, 0 = swept; -1 when that cannot be
 * told now, for a lack of files or memory say: to be called again soon, since no death will ask.
 * *ret_denied (may be NULL): how many of them got no signal. */
int gpi_sweep(const pid_t *spare, size_t n, int *ret_denied);

/* Kills what traces these children, see os/children.h.  Reads much of /proc: for those that are
 * still there some time after a sweep. */
void gpi_sweep_tracers(const pid_t *spare, size_t n);

/* Whether this process has no child at all. */
bool gpi_sweep_childless(void);

#endif
