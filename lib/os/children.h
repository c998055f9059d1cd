/* SPDX-License-Identifier: MIT */
/* children.h - the children of this single-threaded process, and the processes that trace them. */
#ifndef GPI_OS_CHILDREN_H
#define GPI_OS_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Lists children of this single-threaded process into pids[0..max).
 * Returns how many there are (maybe more than max), -1 when it cannot be told. */
int gpi_process_children(pid_t *pids, size_t max);

/*
 * The kernel keeps a zombie from its parent while another process traces it (ptrace), and a tracer
 * can hold a process that was killed at its exit (PTRACE_O_TRACEEXIT).  The end of the tracer frees
 * both.
 */

/* Kills each process that traces a thread of `child` and descends from this process; the tracers
 * of that one first.  A tracer from elsewhere, such as the debugger of an administrator, is left
 * alone. */
void gpi_children_free(pid_t child);

/* Whether each thread of `child` has ended; false, too, when that cannot be read. */
bool gpi_children_ended(pid_t child);

#endif
