/* SPDX-License-Identifier: MIT */
/* oom.h - how many processes the kernel has killed for want of memory. */
#ifndef GPQ_RUNNER_OOM_H
#define GPQ_RUNNER_OOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPQ_OOM_UNKNOWN UINT64_MAX

/*
 * The count of the cgroup in which the caller runs, with all below it; GPQ_OOM_UNKNOWN where it
 * cannot be read.  Commands run in the cgroup of their agent, so that the kill of another command
 * counts, too.
 */
uint64_t gpq_oom_kills(void);

/* The file with the count, by the text of /proc/self/cgroup: memory.events of version 2, else
 * memory.oom_control of version 1.  False: there is none. */
bool gpq_oom_path(const char *cgroups, char *ret, size_t room);

/* The number behind "oom_kill " at the begin of a line of such a file. */
uint64_t gpq_oom_count(const char *events);

#endif
