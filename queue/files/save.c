/* SPDX-License-Identifier: MIT */
/* save.c - writes a file so that a reader finds it whole, also after a power cut. */
#include "queue/files/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define TEMPORARY ".tmp"

int gpq_write_all(const struct gpq_files *f, int fd, const void *data, size_t size)
{
    for (const char *at = data; size;) {
        ssize_t n = f->write(f->user, fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) /* 0: no progress, and no reason */
            return n < 0 ? -errno : -EIO;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

/* Syncs and closes; 0 or -errno of the first that failed.  A file system may deliver the failure
 * of an earlier write at either. */
static int sync_and_close(const struct gpq_files *f, int fd, int ret)
{
    while (!ret && f->fsync(f->user, fd))
        if (errno != EINTR)
            ret = -errno;
    /* Linux closes also where it returns EINTR. */
    if (f->close(f->user, fd) && !ret && errno != EINTR)
        ret = -errno;
    return ret;
}

int gpq_save(const struct gpq_files *f, const char *directory, const char *name, const void *data,
             size_t size)
{
    char path[GPQ_PATH], temporary[GPQ_PATH];
    int ret = gpq_path(path, "%s/%s", directory, name), fd;

    if (!ret)
        ret = gpq_path(temporary, "%s/%s" TEMPORARY, directory, name);
    if (ret)
        return ret;
    fd = f->open(f->user, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    ret = sync_and_close(f, fd, gpq_write_all(f, fd, data, size));
    if (!ret && f->rename(f->user, temporary, path))
        ret = -errno;
    if (ret) {
        (void)f->unlink(f->user, temporary);
        return ret;
    }
    return gpq_sync_directory(f, directory);
}

int gpq_sync_directory(const struct gpq_files *f, const char *path)
{
    int fd = f->open(f->user, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0), ret;

    if (fd < 0)
        return -errno;
    ret = sync_and_close(f, fd, 0);
    return ret == -EINVAL ? 0 : ret;
}

int gpq_sync_file(const struct gpq_files *f, const char *path)
{
    int fd = f->open(f->user, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

    /* A program may write a file that its owner cannot read. */
    if (fd < 0 && errno == EACCES)
        fd = f->open(f->user, path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    return fd < 0 ? -errno : sync_and_close(f, fd, 0);
}

/* Reads to the end; 0 or -errno.  *data is the caller's in either case. */
static int read_all(const struct gpq_files *f, int fd, size_t limit, char **data, size_t *size)
{
    size_t room = 0;

    for (*data = NULL, *size = 0;;) {
        if (*size + 1 >= room) {
            char *more = realloc(*data, room = room ? 2 * room : 4096);
            if (!more)
                return -ENOMEM;
            *data = more;
        }
        ssize_t n = f->read(f->user, fd, *data + *size, room - *size - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        *size += (size_t)n;
        if (*size > limit)
            return -EFBIG;
        if (!n) {
            (*data)[*size] = 0;
            return 0;
        }
    }
}

int gpq_read_whole(const struct gpq_files *f, const char *path, size_t limit, void **ret_data,
                   size_t *ret_size)
{
    int fd = f->open(f->user, path, O_RDONLY | O_NOFOLLOW, 0), ret;
    char *data = NULL;
    size_t size = 0;

    if (fd < 0)
        return -errno;
    ret = read_all(f, fd, limit, &data, &size);
    (void)f->close(f->user, fd);
    if (ret) {
        free(data);
        return ret;
    }
    *ret_data = data;
    *ret_size = size;
    return 0;
}

bool gpq_is_temporary(const char *name)
{
    size_t length = strlen(name), suffix = strlen(TEMPORARY);

    return length > suffix && !strcmp(name + length - suffix, TEMPORARY);
}
