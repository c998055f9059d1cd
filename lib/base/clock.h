/* SPDX-License-Identifier: MIT */
/* clock.h - house time: nanoseconds of CLOCK_MONOTONIC. */
#ifndef GPI_BASE_CLOCK_H
#define GPI_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define GPI_US 1000ull
#define GPI_MS 1000000ull
#define GPI_S 1000000000ull
#define GPI_NEVER UINT64_MAX

static inline uint64_t gpi_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * GPI_S + (uint64_t)t.tv_nsec;
}

/* The same clock as of the kernel's last tick: some milliseconds old, a quarter of the cost. */
static inline uint64_t gpi_tick(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * GPI_S + (uint64_t)t.tv_nsec;
}

/* a + b, where NEVER stays NEVER and a sum too large becomes it. */
static inline uint64_t gpi_time_add(uint64_t a, uint64_t b)
{
    return a > GPI_NEVER - b ? GPI_NEVER : a + b;
}

static inline uint64_t gpi_time_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A wait that was doubled so many times, `cap` at most. */
static inline uint64_t gpi_time_doubled(uint64_t wait, uint32_t times, uint64_t cap)
{
    for (; times && wait && wait < cap; times--)
        wait = wait > cap / 2 ? cap : wait * 2;
    return wait < cap ? wait : cap;
}

#endif
