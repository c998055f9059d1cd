/* SPDX-License-Identifier: MIT */
/* stopped.c - whether the last agent was told to stop: the file `stopped`. */
#include "queue/files/stopped.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/files/files.h"

bool gpq_stopped(const char *state)
{
    char path[GPQ_PATH];
    struct stat st;
    return gpq_path(path, "%s/stopped", state) == 0 && lstat(path, &st) == 0;
}

int gpq_stopped_set(const char *state)
{
    char path[GPQ_PATH];
    if (gpq_path(path, "%s/stopped", state) < 0)
        return -ENAMETOOLONG;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

void gpq_stopped_clear(const char *state)
{
    char path[GPQ_PATH];
    if (gpq_path(path, "%s/stopped", state) == 0)
        (void)unlink(path);
}
