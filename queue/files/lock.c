/* SPDX-License-Identifier: MIT */
/* lock.c - a locked file as the proof that a process lives. */
#include "queue/files/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int lock(int fd, int how)
{
    while (flock(fd, how | LOCK_NB))
        if (errno != EINTR)
            return errno == EWOULDBLOCK ? -EBUSY : -errno;
    return 0;
}

/* 1: the path names the file of the descriptor; 0: another one, or none. */
static int same_file(const char *path, int fd)
{
    struct stat named, opened;

    return !fstat(fd, &opened) && !lstat(path, &named) && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

int gpq_lock_take(const char *path, int *ret_fd)
{
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), ret;
        if (fd < 0)
            return -errno;
        ret = lock(fd, LOCK_EX);
        if (!ret && same_file(path, fd)) {
            *ret_fd = fd;
            return 0;
        }
        (void)close(fd);
        if (ret)
            return ret;
        /* Its last holder removed the file between open and flock: the next round makes one. */
    }
}

int gpq_lock_share(const char *path, int *ret_fd)
{
    int ret;

    *ret_fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (*ret_fd < 0)
        return -errno;
    ret = lock(*ret_fd, LOCK_SH);
    if (!ret)
        return 0;
    (void)close(*ret_fd);
    *ret_fd = -1;
    return ret;
}

int gpq_lock_check(const char *path)
{
    int fd, ret = gpq_lock_share(path, &fd);

    gpq_lock_close(fd);
    return ret == -ENOENT ? 0 : ret;
}

void gpq_lock_close(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}
