/* SPDX-License-Identifier: MIT */
/*
 * files.h - the file calls through which the queue writes what a power cut must not tear.
 *
 * Files outside the store's own (results, outputs, records of runs) go through this table, so that
 * tests can put a simulated disk below them, cut its power, and let any call fail.  Each call
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
    /* 1: a directory, 0: another file, which *ret_size is the size of; -1 and errno. */
    int (*look)(void *user, const char *path, off_t *ret_size);
    /* Calls fn for each entry but . and .., in any order, until it returns another value than 0,
     * which list then returns. */
    int (*list)(void *user, const char *path, int (*fn)(const char *name, void *user_of_fn),
                void *user_of_fn);
};

/* Those of the system. */
extern const struct gpq_files gpq_system_files;

#endif
