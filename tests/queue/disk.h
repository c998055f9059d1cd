/* SPDX-License-Identifier: MIT */
/*
 * disk.h - a disk in memory whose power can be cut, and whose calls can fail.
 *
 * A disk is a tree of directories and files.  Its calls are those of POSIX: -1 and errno on
 * failure.  A process sees each change at once.  The disk has it for certain only after a sync:
 *   - the sync of a file makes its bytes and its size durable (content.h), but not its name;
 *   - the sync of a directory makes its entries durable: the names made, renamed and removed there.
 * A power cut keeps or drops each other entry that was made, renamed or removed for itself.  A
 * rename is atomic: both of its names change, or none.
 *
 * Calls that change the disk are counted from 1.  The power can be cut in the middle of the nth:
 * it may be kept or dropped as if it was not synced, and from then on every call fails with EIO.
 */
#ifndef T_DISK_H
#define T_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct disk;

/* ---- The disk and its power ---- */

/* Makes an empty disk.  The seed decides which bytes failed syncs leave. */
struct disk *disk_make(uint64_t seed);
void disk_free(struct disk *d);
/* Returns a new disk, as a power cut now would leave this one.  This one stays as it is. */
struct disk *disk_cut(const struct disk *d, uint64_t seed);
/* Cuts the power in the middle of the nth change; 0 = never. */
void disk_cut_at(struct disk *d, uint64_t nth);
/* The same, in the first change of these kinds that is the nth or a later one. */
void disk_cut_in(struct disk *d, uint64_t nth, uint32_t kinds);
uint64_t disk_changes(const struct disk *d);
/* The power was cut, and every call fails. */
bool disk_dead(const struct disk *d);

/* ---- Faults ---- */

enum disk_kind {
    DISK_OPEN = 1,
    DISK_READ = 2,
    DISK_WRITE = 4,
    DISK_TRUNCATE = 8,
    DISK_SYNC = 16, /* of a file */
    DISK_SYNC_DIRECTORY = 32,
    DISK_RENAME = 64,
    DISK_UNLINK = 128,
    DISK_MKDIR = 256,
    DISK_RMDIR = 512,
    DISK_ANY = 1023,
};

struct disk_fault {
    uint32_t kinds; /* mask */
    uint64_t nth;   /* call of these kinds from now on, from 1 */
    int error;      /* errno; 0: a write writes half of its bytes, and other calls succeed */
    bool forever;   /* the calls of these kinds after it, too */
};

/* The fault replaces the one before; NULL = none. */
void disk_fail(struct disk *d, const struct disk_fault *f);
/* How many calls the present fault has met. */
uint64_t disk_failed(const struct disk *d);
/* Writes fail with ENOSPC, or are short, where all files together would exceed this; 0 = never. */
void disk_limit(struct disk *d, uint64_t bytes);
/* How many bytes all files have together. */
uint64_t disk_used(const struct disk *d);
/* How many calls of these kinds there were. */
uint64_t disk_calls(const struct disk *d, uint32_t kinds);

/* ---- Calls ---- */

/* O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY and the access modes are known. */
int disk_open(struct disk *d, const char *path, int flags);
int disk_close(struct disk *d, int fd);
ssize_t disk_read(struct disk *d, int fd, void *data, size_t size);
ssize_t disk_write(struct disk *d, int fd, const void *data, size_t size);
ssize_t disk_read_at(struct disk *d, int fd, void *data, size_t size, size_t offset);
ssize_t disk_write_at(struct disk *d, int fd, const void *data, size_t size, size_t offset);
int disk_truncate(struct disk *d, int fd, size_t size);
int disk_sync(struct disk *d, int fd);
int disk_rename(struct disk *d, const char *from, const char *to);
int disk_unlink(struct disk *d, const char *path);
int disk_mkdir(struct disk *d, const char *path);
int disk_rmdir(struct disk *d, const char *path);
/* 1: a directory; 0: a file, which *ret_size is the size of; -1: ENOENT and others. */
int disk_look(struct disk *d, const char *path, size_t *ret_size);
/* A number that no other file of the disk has. */
uint64_t disk_identity(const struct disk *d, int fd);
bool disk_is_directory(const struct disk *d, int fd);
size_t disk_size(const struct disk *d, int fd);
/* Calls fn for each name in a directory until it returns another value than 0, and returns that. */
int disk_list(struct disk *d, const char *path, int (*fn)(const char *name, void *user),
              void *user);

#endif
