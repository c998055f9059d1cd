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

/* A memfd of `size` bytes that only the mapping in *ret_map can ever write: taken from the system
 * now, on the calling thread, sealed in size and against later writers.  The mapping does not pass
 * a fork.  A read-only fd, or -1 with errno (ENOMEM, ENOSPC: there is not so much). */
int gpi_memory_publish(const char *name, uint64_t size, void **ret_map);

/* Whether two fds are of the same memory. */
bool gpi_memory_same(int a, int b);

/* Maps all of it.  NULL with errno. */
void *gpi_memory_map(int fd, uint64_t size, bool writable);
void gpi_memory_unmap(void *base, uint64_t size);

/* Touches the pages for writing now, on the calling thread.  Best effort. */
void gpi_memory_populate(void *at, uint64_t size);

/* Gives the memory of a part of a memfd back to the system; it reads as zeros from then on. */
void gpi_memory_punch(int fd, uint64_t off, uint64_t size);

/* How many bytes of a shared memory the system holds; 0 when that cannot be told. */
uint64_t gpi_memory_taken(int fd);

/* Private zeroed memory, taken from the system when touched.  NULL with errno. */
void *gpi_memory_private(uint64_t size);

/* Processes that are forked from this one do not have these pages. */
void gpi_memory_not_inherited(void *at, uint64_t size);

/* Makes whole pages read-only in this process. */
void gpi_memory_protect(void *at, uint64_t size);

/* One page that reads as zero in a forked child.  NULL with errno. */
void *gpi_memory_wipeonfork(void);

/* Bytes of memory this process has now; 0 when it cannot be told. */
uint64_t gpi_memory_resident(void);

/* The largest file the process may make. */
uint64_t gpi_memory_file_limit(void);

#endif
