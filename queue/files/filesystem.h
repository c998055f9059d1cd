/* SPDX-License-Identifier: MIT */
/*
 * filesystem.h - the kind of a file system, and how much space it has.
 */
#ifndef GPQ_FILES_FILESYSTEM_H
#define GPQ_FILES_FILESYSTEM_H

#include <stdint.h>

/*
 * Returns the name of a network or cluster file system by the number that statfs returns, or NULL.
 *
 * There a lock may not reach other machines, a sync may not reach the disk, and a server that is
 * away stops the queue.  Each FUSE file system counts as one: sshfs has no number of its own.
 */
const char *gpq_network_filesystem(uint64_t magic);

/* The same of the file system of a path; *ret_name is NULL for a local one.  0 or -errno. */
int gpq_filesystem_look(const char *path, const char **ret_name);

/* Space for an unprivileged process.  UINT64_MAX inodes: the file system has no such limit. */
struct gpq_space {
    uint64_t bytes, inodes;
};

/* 0 or -errno. */
int gpq_space_look(const char *path, struct gpq_space *ret);

#endif
