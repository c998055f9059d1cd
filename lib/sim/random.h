/* SPDX-License-Identifier: MIT */
/*
 * random.h - numbers from a seed, for random worlds.  The same seed yields the same numbers on
 * every machine.  The generator is Vigna's splitmix64: its state is one word, and close seeds yield
 * unrelated sequences.
 */
#ifndef GPI_SIM_RANDOM_H
#define GPI_SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct gpi_random {
    uint64_t state;
};

static inline uint64_t gpi_random_next(struct gpi_random *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Returns a number below n.  n is not 0.  The bias of % does not matter here. */
static inline uint64_t gpi_random_below(struct gpi_random *r, uint64_t n)
{
    return gpi_random_next(r) % n;
}

/* Returns a number from `from` to `to`, both included. */
static inline uint64_t gpi_random_from(struct gpi_random *r, uint64_t from, uint64_t to)
{
    return from + gpi_random_below(r, to - from + 1);
}

static inline bool gpi_random_chance(struct gpi_random *r, uint32_t of_a_million)
{
    return gpi_random_below(r, 1000000) < of_a_million;
}

/* Returns a number on a logarithmic scale: 1 to 10 is as likely as 10 to 100.  `from` is not 0. */
static inline uint64_t gpi_random_scale(struct gpi_random *r, uint64_t from, uint64_t to)
{
    uint32_t doublings = 0;
    uint64_t low;

    while (from << doublings < to && doublings < 62)
        doublings++;
    low = from << gpi_random_below(r, doublings + 1u);
    if (low >= to)
        return to;
    return gpi_random_from(r, low, low > to / 2 ? to : low * 2);
}

#endif
