/* SPDX-License-Identifier: MIT */
/* eviction.h - the evictions in a decision log (lib/log/log.h): which step came when. */
#ifndef BENCH_EVICTION_H
#define BENCH_EVICTION_H

#include <stddef.h>
#include <stdint.h>

/* A task comes whose class has no worker; ns on the clock of the library. */
struct b_eviction {
    uint64_t submit;
    uint64_t order; /* END was sent to the worker in its way */
    uint64_t gone;  /* the dispatcher knows that the worker is gone and its memory is free */
    uint64_t start; /* START of the next worker was sent */
};

/* Reads the log of a dispatcher with one device, in which each task evicted a worker.  Returns how
 * many there are, or -1. */
int b_evictions_read(const char *path, struct b_eviction *list, size_t most);

#endif
