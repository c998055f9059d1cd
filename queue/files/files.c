/* SPDX-License-Identifier: MIT */
/* files.c - the file calls of the system. */
#include "queue/files/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int system_open(void *user, const char *path, int flags, mode_t mode)
{
    (void)user;
    return open(path, flags | O_CLOEXEC, mode);
}

static ssize_t system_read(void *user, int fd, void *data, size_t size)
{
    (void)user;
    return read(fd, data, size);
}

static ssize_t system_write(void *user, int fd, const void *data, size_t size)
{
    (void)user;
    return write(fd, data, size);
}

static int system_fsync(void *user, int fd)
{
    (void)user;
    return fsync(fd);
}

static int system_close(void *user, int fd)
{
    (void)user;
    return close(fd);
}

static int system_rename(void *user, const char *from, const char *to)
{
    (void)user;
    return rename(from, to);
}

static int system_unlink(void *user, const char *path)
{
    (void)user;
    return unlink(path);
}

static int system_mkdir(void *user, const char *path, mode_t mode)
{
    (void)user;
    return mkdir(path, mode);
}

static int system_rmdir(void *user, const char *path)
{
    (void)user;
    return rmdir(path);
}

static int system_chmod(void *user, const char *path, mode_t mode)
{
    (void)user;
    return chmod(path, mode);
}

static int system_allocate(void *user, int fd, off_t size)
{
    (void)user;
    errno = posix_fallocate(fd, 0, size);
    return errno ? -1 : 0;
}

static int system_look(void *user, const char *path, off_t *ret_size)
{
    struct stat st;

    (void)user;
    if (lstat(path, &st))
        return -1;
    *ret_size = st.st_size;
    return S_ISDIR(st.st_mode) ? 1 : S_ISREG(st.st_mode) ? 0 : 2;
}

static int each_entry(DIR *d, int (*fn)(const char *name, void *user_of_fn), void *user_of_fn)
{
    const struct dirent *entry;
    int ret = 0;

    while (!ret && (errno = 0, entry = readdir(d)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            ret = fn(entry->d_name, user_of_fn);
    return ret ? ret : errno ? -1 : 0;
}

static int system_list(void *user, const char *path, int (*fn)(const char *name, void *user_of_fn),
                       void *user_of_fn)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), ret, number;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    (void)user;
    if (fd < 0)
        return -1;
    if (!d) {
        number = errno;
        (void)close(fd);
        errno = number;
        return -1;
    }
    ret = each_entry(d, fn, user_of_fn);
    number = errno;
    (void)closedir(d);
    errno = number;
    return ret;
}

const struct gpq_files gpq_system_files = {
    .open = system_open,
    .read = system_read,
    .write = system_write,
    .fsync = system_fsync,
    .close = system_close,
    .rename = system_rename,
    .unlink = system_unlink,
    .mkdir = system_mkdir,
    .rmdir = system_rmdir,
    .chmod = system_chmod,
    .allocate = system_allocate,
    .look = system_look,
    .list = system_list,
};

int gpq_path(char path[GPQ_PATH], const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(path, GPQ_PATH, format, arguments);
    va_end(arguments);
    return length < 0 || length >= GPQ_PATH ? -ENAMETOOLONG : 0;
}

int gpq_path_absolute(char path[GPQ_PATH], const char *given)
{
    char here[GPQ_PATH];

    if (*given == '/')
        return gpq_path(path, "%s", given);
    if (!getcwd(here, sizeof(here)))
        return -errno;
    return gpq_path(path, "%s/%s", here, given);
}
