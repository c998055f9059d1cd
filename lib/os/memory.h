/* SPDX-License-Identifier: MIT */
/* memory.h - shared and special mappings: sealed memfds, a page that a fork wipes. */
#ifndef GPI_OS_MEMORY_H
#define GPI_OS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A sparse memfd of `size` bytes, sealed against shrinking, growing and further sealing at
 * birth.  -1 with errno; EFBIG when RLIMIT_FSIZE forbids the size (asked before ftruncate,
 * which would raise SIGXFSZ). */
int gpi_memory_create(const char *name, uint64_t size);

/* The same memory through a read-only fd, or a plain duplicate where /proc is missing. */
int gpi_memory_readonly(int fd);

/* Maps all of it.  NULL with errno. */
void *gpi_memory_map(int fd, uint64_t size, bool writable);
void gpi_memory_unmap(void *base, uint64_t size);

/* Touches the pages for writing now, on the calling thread.  Best effort. */
void gpi_memory_populate(void *at, uint64_t size);

/* Private zeroed memory, taken from the system when touched.  NULL with errno. */
void *gpi_memory_private(uint64_t size);

/* Makes whole pages read-only in this process. */
void gpi_memory_protect(void *at, uint64_t size);

/* One page that reads as zero in a forked child.  NULL with errno. */
void *gpi_memory_wipeonfork(void);

/* Bytes that machine and memory cgroups (with ancestors) have left. */
uint64_t gpi_memory_headroom(void);

/* The largest file the process may make. */
uint64_t gpi_memory_file_limit(void);

#endif
