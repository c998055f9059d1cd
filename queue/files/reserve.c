/* SPDX-License-Identifier: MIT */
/* reserve.c - space that is kept for the end of running tasks on a full disk. */
#include "queue/files/reserve.h"

#include <errno.h>
#include <fcntl.h>

#include "queue/files/save.h"

#define NAME "reserve"

static int path_of(char path[GPQ_PATH], const char *directory)
{
    return gpq_path(path, "%s/" NAME, directory);
}

int gpq_reserve_make(const struct gpq_files *f, const char *directory, off_t size)
{
    char path[GPQ_PATH];
    int ret = path_of(path, directory), fd;

    if (ret)
        return ret;
    fd = f->open(f->user, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    while (!ret && f->allocate(f->user, fd, size))
        if (errno != EINTR)
            ret = -errno;
    if (!ret && f->fsync(f->user, fd))
        ret = -errno;
    if (f->close(f->user, fd) && !ret && errno != EINTR)
        ret = -errno;
    if (!ret)
        ret = gpq_sync_directory(f, directory);
    if (ret)
        (void)f->unlink(f->user, path);
    return ret;
}

int gpq_reserve_there(const struct gpq_files *f, const char *directory, off_t size)
{
    char path[GPQ_PATH];
    off_t present;

    return !path_of(path, directory) && f->look(f->user, path, &present) == 0 && present == size;
}

int gpq_reserve_give_up(const struct gpq_files *f, const char *directory)
{
    char path[GPQ_PATH];
    int ret = path_of(path, directory);

    if (ret)
        return ret;
    if (f->unlink(f->user, path))
        return errno == ENOENT ? 0 : -errno;
    ret = gpq_sync_directory(f, directory);
    return ret ? ret : 1;
}
