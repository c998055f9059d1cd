/* SPDX-License-Identifier: MIT */
/* diskfiles.c - the file calls of the queue (queue/files/files.h) over a disk in memory. */
#include "diskfiles.h"

static struct disk *disk_of(void *user)
{
    return ((struct diskfiles *)user)->disk;
}

static int files_open(void *user, const char *path, int flags, mode_t mode)
{
    (void)mode;
    return disk_open(disk_of(user), path, flags);
}

static ssize_t files_read(void *user, int fd, void *data, size_t size)
{
    return disk_read(disk_of(user), fd, data, size);
}

static ssize_t files_write(void *user, int fd, const void *data, size_t size)
{
    return disk_write(disk_of(user), fd, data, size);
}

static int files_fsync(void *user, int fd)
{
    const struct diskfiles *f = user;

    if (disk_is_directory(f->disk, fd) ? f->no_directory_sync : f->no_file_sync)
        return 0;
    return disk_sync(f->disk, fd);
}

static int files_close(void *user, int fd)
{
    return disk_close(disk_of(user), fd);
}

static int files_rename(void *user, const char *from, const char *to)
{
    return disk_rename(disk_of(user), from, to);
}

static int files_unlink(void *user, const char *path)
{
    return disk_unlink(disk_of(user), path);
}

static int files_mkdir(void *user, const char *path, mode_t mode)
{
    (void)mode;
    return disk_mkdir(disk_of(user), path);
}

static int files_rmdir(void *user, const char *path)
{
    return disk_rmdir(disk_of(user), path);
}

static int files_chmod(void *user, const char *path, mode_t mode)
{
    size_t size;

    (void)mode; /* a disk has no modes */
    return disk_look(disk_of(user), path, &size) < 0 ? -1 : 0;
}

static int files_allocate(void *user, int fd, off_t size)
{
    static const char zeros[4096];

    for (off_t at = 0; at < size;) {
        const size_t part = size - at < 4096 ? (size_t)(size - at) : sizeof(zeros);
        ssize_t n = disk_write_at(disk_of(user), fd, zeros, part, (size_t)at);
        if (n < 0)
            return -1;
        at += n;
    }
    return 0;
}

static int files_look(void *user, const char *path, off_t *ret_size)
{
    size_t size = 0;
    int what = disk_look(disk_of(user), path, &size);

    if (what == 0 && ret_size)
        *ret_size = (off_t)size;
    return what;
}

static int files_list(void *user, const char *path, int (*fn)(const char *name, void *user_of_fn),
                      void *user_of_fn)
{
    return disk_list(disk_of(user), path, fn, user_of_fn);
}

struct gpq_files diskfiles(struct diskfiles *f)
{
    return (struct gpq_files){ .user = f,
                               .open = files_open,
                               .read = files_read,
                               .write = files_write,
                               .fsync = files_fsync,
                               .close = files_close,
                               .rename = files_rename,
                               .unlink = files_unlink,
                               .mkdir = files_mkdir,
                               .rmdir = files_rmdir,
                               .chmod = files_chmod,
                               .allocate = files_allocate,
                               .look = files_look,
                               .list = files_list };
}
