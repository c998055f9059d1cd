/* SPDX-License-Identifier: MIT */
/* bits.h - the compiler's extensions that the library uses, in one place (gcc and clang). */
#ifndef GPI_BASE_BITS_H
#define GPI_BASE_BITS_H

#include <stdint.h>

/* Index of the lowest set bit; `word` is not 0. */
static inline uint32_t gpi_lowest_bit(uint64_t word)
{
    return (uint32_t)__builtin_ctzll(word);
}

/* Index of the highest set bit; `word` is not 0. */
static inline uint32_t gpi_highest_bit(uint64_t word)
{
    return 63u - (uint32_t)__builtin_clzll(word);
}

/* Begins to load the cache line at `at`: in loops over records that other CPUs wrote, or that
 * are spread over more memory than the first cache holds. */
static inline void gpi_prefetch(const void *at)
{
    __builtin_prefetch(at);
}

/* A condition that is seldom true, on a path that every task takes. */
#define GPI_SELDOM(condition) __builtin_expect(!!(condition), 0)

/* For a function that seldom runs, on a path that every task takes: the path saves no registers
 * for it. */
#define GPI_RARE __attribute__((noinline, cold))

#endif
