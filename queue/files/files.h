/* SPDX-License-Identifier: MIT */
/*
 * files.h - the file calls through which the queue writes files that a power cut must not tear.
 *
 * Files outside the store's own (results, outputs, the reserve) go through this table, so that
 * tests can put a simulated disk below them, cut its power, and let any call fail.  The runner
 * calls POSIX for its record and its log.  Each call
 * behaves as the POSIX call of its name: -1 and errno on failure.
 */
#ifndef GPQ_FILES_H
#define GPQ_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct gpq_files {
    void *user;
    int (*open)(void *user, const char *path, int flags, mode_t mode); /* O_CLOEXEC is added */
    ssize_t (*read)(void *user, int fd, void *data, size_t size);
    ssize_t (*write)(void *user, int fd, const void *data, size_t size);
    int (*fsync)(void *user, int fd);
    int (*close)(void *user, int fd);
    int (*rename)(void *user, const char *from, const char *to);
    int (*unlink)(void *user, const char *path);
    int (*mkdir)(void *user, const char *path, mode_t mode);
    int (*rmdir)(void *user, const char *path);
    int (*chmod)(void *user, const char *path, mode_t mode);
    /* posix_fallocate from byte 0 on. */
    int (*allocate)(void *user, int fd, off_t size);
    /* 1: a directory, 0: a regular file, 2: any other file, such as a symbolic link, which look
     * does not follow; -1 and errno.  *ret_size is the size of a file. */
    int (*look)(void *user, const char *path, off_t *ret_size);
    /* Calls fn for each entry but . and .., in any order, until it returns another value than 0,
     * which list then returns. */
    int (*list)(void *user, const char *path, int (*fn)(const char *name, void *user_of_fn),
                void *user_of_fn);
};

/* Those of the system. */
extern const struct gpq_files gpq_system_files;

/* Room for each path that the queue makes. */
#define GPQ_PATH 4096

/* Writes a path; 0, or -ENAMETOOLONG. */
int gpq_path(char path[GPQ_PATH], const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes a path as seen from the present directory; 0, or -errno. */
int gpq_path_absolute(char path[GPQ_PATH], const char *given);

#endif
