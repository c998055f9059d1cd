/* SPDX-License-Identifier: MIT */
/* process.h - processes by /proc: the one that a record means, and those of a command. */
#ifndef GPQ_RUNNER_PROCESS_H
#define GPQ_RUNNER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gpq_process {
    pid_t pid, parent, session;
    char state;     /* as in proc(5) */
    uint32_t flags; /* PF_* of the kernel */
    uint32_t threads;
    uint64_t ticks; /* start, in clock ticks after the boot */
};

/* 0; -ESRCH: there is none; or -errno. */
int gpq_process_read(pid_t pid, struct gpq_process *ret);

/* Calls fn for each process that has not ended, until it returns another value than 0, which is
 * then returned; or -errno. */
int gpq_process_each(int (*fn)(const struct gpq_process *p, void *user), void *user);

/* Calls fn for each child of this process, which has one thread; as above. */
int gpq_process_children(int (*fn)(pid_t child, void *user), void *user);

/*
 * Whether the environment with which its program was started has this "NAME=value": 1 or 0.  Also
 * 0 if the caller may not read it.
 *
 * While a process executes a program, it has no environment for a moment.  The call waits for its
 * end; -EAGAIN after a second.
 */
int gpq_process_has_variable(const struct gpq_process *p, const char *assignment);

/* Opens a pidfd if the number is still that of the process that started then; or -errno, -ESRCH. */
int gpq_process_open(pid_t pid, uint64_t ticks);
int gpq_process_signal(int pidfd, int number);

#endif
