/* SPDX-License-Identifier: MIT */
/* ways.h - the ways in which a process sends SIGKILL to a child of its own. */
#ifndef GPI_BASE_WAYS_H
#define GPI_BASE_WAYS_H

/* A system call filter may deny each, and so may the user that the child has changed to. */
enum gpi_way { GPI_WAY_PIDFD = 1, GPI_WAY_KILL = 2, GPI_WAYS = 3 };

#endif
