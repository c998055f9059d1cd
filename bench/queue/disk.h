/* SPDX-License-Identifier: MIT */
/* disk.h - the directory in which the stores of a benchmark lie, and its file system. */
#ifndef BENCH_QUEUE_DISK_H
#define BENCH_QUEUE_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct bq_disk {
    char folder[512];
    char kind[32];  /* "ext4"; "?" if unknown */
    bool in_memory; /* its syncs cost nothing */
};

/* Makes a directory in `base`: NULL means $TMPDIR, else the current directory.  Returns: 0, or -1
 * after a complaint. */
int bq_disk_open(struct bq_disk *d, const char *base);
void bq_disk_close(struct bq_disk *d);

/* Returns the median time of an append of 4 KiB and its sync, in us; -1 after a complaint. */
double bq_disk_sync(const struct bq_disk *d);

/* Makes folder/name for a store, and removes an older one; ret_path has 600 bytes. */
#define BQ_PATH 600
int bq_disk_store(const struct bq_disk *d, const char *name, char *ret_path);

/* Removes a directory and all below it. */
void bq_disk_remove(const char *path);

/* Writes all files of a directory to disk, and asks the kernel to forget their pages. */
void bq_disk_forget(const char *path);

/* Reads all files of a directory, so that the kernel has their pages. */
void bq_disk_read(const char *path);

/* Returns the bytes of all files in a directory. */
uint64_t bq_disk_bytes(const char *path);

/* Makes a log of SQLite beside its file, as large as a log is before its first checkpoint.  A log
 * that grows makes each sync slower, and a store that writes less grows it for longer.  Returns: 0,
 * or -1 after a complaint. */
int bq_disk_log(const char *file);

/* Copies a file.  Returns: 0, or -1 after a complaint. */
int bq_disk_copy(const char *from, const char *to);

#endif
