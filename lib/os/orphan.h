/* SPDX-License-Identifier: MIT */
/* orphan.h - starting a program that is nobody's child, from a host of any size with any threads.
 */
#ifndef GPI_OS_ORPHAN_H
#define GPI_OS_ORPHAN_H

#include <stddef.h>
#include <sys/types.h>

/* Executes `path` with `argv` and the environment of now; of the fds only those in `keep` pass
 * (before Linux 5.11 also what is not close-on-exec); 0, 1 and 2 are /dev/null. The memory of this
 * process is not copied, however large; handlers of pthread_atfork do not run; the program's parent
 * is whoever takes orphans, so neither its end nor that of what starts it is seen by wait(NULL),
 * waitpid(-1) or SIGCHLD here. All signals are blocked in the program. 0 once it runs, with its pid
 * and a lifted pidfd, by which alone it may be hit; else an errno: of the fork, or of the exec. */
int gpi_orphan_start(const char *path, char *const argv[], const int *keep, size_t n,
                     pid_t *ret_pid, int *ret_pidfd);

#endif
