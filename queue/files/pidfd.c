/* SPDX-License-Identifier: MIT */
/* pidfd.c - a descriptor of a process. */
#include "queue/files/pidfd.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

int gpq_pidfd_open(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    return fd < 0 ? -errno : fd;
}
