/* SPDX-License-Identifier: MIT */
/*
 * fds.h - file descriptors that do not get in anybody's way: close-on-exec from birth
 * (C13), at numbers from 700 up where the limit allows, since low numbers get a host's
 * stray writes.
 */
#ifndef GPI_OS_FDS_H
#define GPI_OS_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/refused.h"

#define GPI_FD_FLOOR 700

/* How many numbers below RLIMIT_NOFILE are free, as far as `enough`; and that limit. */
uint32_t gpi_fd_free(uint32_t enough, uint64_t *ret_limit);

/* Moves fd up, close-on-exec; the old number is closed.  Gives the new number, or -1 with
 * errno and fd closed.  A negative fd comes back as it is. */
int gpi_fd_lift(int fd);

/* The same with what a call has returned; -1 is noted as its failure (base/refused.h). */
int gpi_fd_made(enum gpi_sys call, int fd);

/* The same with two that belong together.  0, or -1 with errno and both closed. */
int gpi_fd_lift_both(int fd[2]);

/* A pipe with both ends lifted.  0, or -1 with errno. */
int gpi_fd_pipe(int *ret_read, int *ret_write);

/* Sets O_NONBLOCK on the open file description behind fd. */
int gpi_fd_nonblock(int fd);

/* Writes it whole, also when a signal comes in between: a bell must not be lost for that.
 * 0, or -1 with errno. */
int gpi_fd_write(int fd, const void *bytes, size_t size);

/* Rings a bell, an eventfd that does not block.  If the call is refused, tries again at once:
 * without the bell its listener waits forever.  False if each try is refused. */
bool gpi_bell_ring(int fd);

void gpi_bell_silence(int fd);

/* Closes *fd if it is one and makes it -1.  errno stays. */
void gpi_fd_close(int *fd);

/* Closes every fd of the process but the n in `keep` (any order; negative ones ignored). */
void gpi_fd_close_others(const int *keep, size_t n);

#endif
