/* SPDX-License-Identifier: MIT */
/*
 * pidfd.h - a descriptor of a process, which glibc can open from 2.36 on only.
 */
#ifndef GPQ_FILES_PIDFD_H
#define GPQ_FILES_PIDFD_H

#include <sys/types.h>

/* As pidfd_open(2), close-on-exec; or -errno.  The number of a child that is not reaped is that of
 * no other process. */
int gpq_pidfd_open(pid_t pid);

#endif
