/* SPDX-License-Identifier: MIT */
/* draw.h - random numbers that a seed decides (splitmix64). */
#ifndef T_DRAW_H
#define T_DRAW_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t draw(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/* Returns a number below n, which is at least 1. */
static inline uint32_t draw_below(uint64_t *seed, uint32_t n)
{
    return (uint32_t)(draw(seed) % n);
}

static inline bool draw_chance(uint64_t *seed, uint32_t percent)
{
    return draw_below(seed, 100) < percent;
}

#endif
