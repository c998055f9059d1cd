/* SPDX-License-Identifier: MIT */
/*
 * learn.c - what a plan learns from runs, against numbers of 128 bits and sorted copies.
 */
#include "harness.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sched/plan_parts.h"

enum { RANDOM_OPS = 200000, ENOUGH = 4 };

__extension__ typedef unsigned __int128 wide;

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* A time of any magnitude, up to the largest that is not GPI_NEVER. */
static uint64_t draw_time(uint64_t *seed)
{
    return draw(seed) >> draw(seed) % 64 & ~1ull;
}

/* run / limit in 1/65536, rounded down; below one. */
static uint64_t model_ratio(uint64_t run, uint64_t limit)
{
    return run >= limit ? 65535 : (uint64_t)((wide)run * 65536 / limit);
}

static uint64_t model_plausible(uint64_t begun, uint64_t limit, uint64_t ratio)
{
    const wide end = begun + (wide)limit * ratio / 65536;

    return end > GPI_NEVER ? GPI_NEVER : (uint64_t)end;
}

/* Learns the same run often enough, so that it is the only one. */
static struct gpi_learned learn_one(uint64_t run, uint64_t limit)
{
    struct gpi_learned l = { 0 };

    for (uint32_t i = 0; i < ENOUGH; i++)
        gpi_learn_run(&l, run, limit);
    return l;
}

T_CASE(ratios)
{
    static const struct {
        uint64_t run, limit, ratio;
    } known[] = {
        { 0, 1, 0 },     { 1, 2, 32768 },         { 1, 1, 65535 },
        { 2, 1, 65535 }, { 999, 1000, 65470 },    { 1, 65536, 1 },
        { 1, 65537, 0 }, { GPI_NEVER, 1, 65535 }, { GPI_NEVER, GPI_NEVER - 1, 65535 },
    };

    for (size_t i = 0; i < T_LENGTH(known); i++)
        T_EQ(learn_one(known[i].run, known[i].limit).least, known[i].ratio);
}

/* Exact below 2^48 ns, which are three days; never too large, and one too small at most. */
T_CASE(random_ratios)
{
    uint64_t seed = 0x9e3779b97f4a7c15U;

    for (uint32_t i = 0; i < t_rounds(RANDOM_OPS, RANDOM_OPS); i++) {
        const uint64_t run = draw_time(&seed), limit = draw_time(&seed);
        const struct gpi_learned l = learn_one(run, limit);
        const uint64_t model = limit ? model_ratio(run, limit) : 0;
        if (limit == 0) {
            T_EQ(l.n, 0);
            continue;
        }
        T_CMP(l.least, <=, model);
        T_CMP(l.least + (run >> 48 ? 1u : 0u), >=, model);
    }
}

T_CASE(plausible_ends)
{
    uint64_t seed = 88172645463325252U;

    for (uint32_t i = 0; i < t_rounds(RANDOM_OPS, RANDOM_OPS); i++) {
        const uint64_t run = draw_time(&seed) >> 17, begun = draw_time(&seed);
        const uint64_t limit = draw_time(&seed);
        const struct gpi_learned l = learn_one(run, 1ull << 46);
        T_CHECK(gpi_learn_plausible(&l, begun, limit) ==
                model_plausible(begun, limit, model_ratio(run, 1ull << 46)));
    }
}

/* A limit without end in practice: an end that no clock reaches is none. */
T_CASE(plausible_never)
{
    const struct gpi_learned l = learn_one(1, 1);

    T_CHECK(gpi_learn_plausible(&l, GPI_S, GPI_NEVER - 1) ==
            model_plausible(GPI_S, GPI_NEVER - 1, 65535));
    T_CHECK(gpi_learn_plausible(&l, 1ull << 63, GPI_NEVER - 1) == GPI_NEVER);
    T_CHECK(gpi_learn_plausible(&l, GPI_NEVER - 1, 100 * GPI_S) == GPI_NEVER);
}

/* Nothing follows from few runs, or from runs without a limit. */
T_CASE(too_few)
{
    struct gpi_learned l = { 0 };

    for (uint32_t i = 0; i < ENOUGH; i++) {
        T_EQ(gpi_learn_plausible(&l, 100, 1000), 100);
        gpi_learn_run(&l, 700, GPI_NEVER);
        gpi_learn_run(&l, 500, 1000);
    }
    T_EQ(l.n, ENOUGH);
    T_EQ(gpi_learn_plausible(&l, 100, 1000), 600);
    T_EQ(gpi_learn_plausible(&l, 100, GPI_NEVER), 100);
}

/* The least of the last 32 counts: an older one is forgotten. */
T_CASE(least_of_the_last)
{
    struct gpi_learned l = { 0 };
    uint64_t ratio[1000], seed = 7;

    for (uint32_t i = 0; i < T_LENGTH(ratio); i++) {
        const uint64_t run = draw(&seed) % 1000;
        uint64_t least = 65535;
        ratio[i] = model_ratio(run, 1000);
        gpi_learn_run(&l, run, 1000);
        for (uint32_t k = i >= 31 ? i - 31 : 0; k <= i; k++)
            least = ratio[k] < least ? ratio[k] : least;
        T_EQ(l.least, least);
    }
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The lower one of the two in the middle of the last 32. */
T_CASE(p50)
{
    struct gpi_spell s = { 0 };
    uint64_t all[1000], sorted[32], seed = 9;

    for (uint32_t i = 0; i < T_LENGTH(all); i++) {
        const uint32_t n = i < 31 ? i + 1 : 32;
        all[i] = draw(&seed) % 5 ? draw(&seed) % 10 : draw(&seed);
        gpi_learn_spell(&s, all[i]);
        memcpy(sorted, &all[i + 1 - n], n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, compare);
        T_CHECK(s.p50 == sorted[(n - 1) / 2]);
    }
}
