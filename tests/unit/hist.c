/* SPDX-License-Identifier: MIT */
/*
 * hist.c - quantiles of the histogram against those of the sorted values.
 */
#include "harness.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/hist.h"

enum { VALUES = 1000000 };

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

T_CASE(empty)
{
    struct gpi_hist h = {0};
    T_CHECK(sizeof h <= 2048);
    T_CHECK(gpi_hist_quantile(&h, 0.5) == 0);
    T_CHECK(gpi_hist_quantile(&h, 1.0) == 0);
}

/* One value is found again: exactly, whatever q. */
T_CASE(one_value)
{
    for (uint32_t top = 0; top < 64; top++) {
        for (uint64_t near = 0; near < 3; near++) {
            struct gpi_hist h = {0};
            uint64_t value = ((uint64_t)1 << top) + near - 1;
            gpi_hist_add(&h, value);
            T_CHECK(gpi_hist_quantile(&h, 0.0) == value);
            T_CHECK(gpi_hist_quantile(&h, 0.5) == value);
            T_CHECK(gpi_hist_quantile(&h, 1.0) == value);
        }
    }
}

/* With a larger value above it the answer is the edge of the step: 0 to 1/8 too large. */
T_CASE(edge_is_close)
{
    uint64_t seed = 88172645463325252U;
    for (uint32_t i = 0; i < VALUES / 10; i++) {
        struct gpi_hist h = {0};
        uint64_t value = draw(&seed) >> draw(&seed) % 64;
        gpi_hist_add(&h, value);
        gpi_hist_add(&h, UINT64_MAX);
        uint64_t got = gpi_hist_quantile(&h, 0.5);
        T_CHECK(got >= value && got - value <= value / 8);
    }
}

T_CASE(against_sorted)
{
    static const double qs[] = {0.0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0};
    struct gpi_hist h = {0};
    uint64_t seed = 0x2545f4914f6cdd1dU;
    uint64_t *v = malloc(VALUES * sizeof *v);
    T_CHECK(v != NULL);
    for (uint32_t i = 0; i < VALUES; i++) {
        v[i] = draw(&seed) >> (24 + draw(&seed) % 40);
        gpi_hist_add(&h, v[i]);
    }
    qsort(v, VALUES, sizeof *v, by_value);
    for (uint32_t i = 0; i < sizeof qs / sizeof *qs; i++) {
        uint32_t rank = (uint32_t)(qs[i] * VALUES + 0.5);
        uint64_t want = v[rank > 0 ? rank - 1 : 0];
        uint64_t got = gpi_hist_quantile(&h, qs[i]);
        T_CHECK(got >= want && got - want <= want / 8);
    }
    T_CHECK(gpi_hist_quantile(&h, 1.0) == v[VALUES - 1]);
    free(v);
}

/* The rank is rounded up, and no answer exceeds the largest value. */
T_CASE(rank_and_max)
{
    struct gpi_hist ten = {0}, two = {0};
    for (uint64_t i = 0; i < 10; i++)
        gpi_hist_add(&ten, i);
    T_CHECK(gpi_hist_quantile(&ten, 0.2) == 1);
    T_CHECK(gpi_hist_quantile(&ten, 0.25) == 2);
    T_CHECK(gpi_hist_quantile(&ten, 0.91) == 9);
    gpi_hist_add(&two, 1000);
    gpi_hist_add(&two, 1001);
    T_CHECK(gpi_hist_quantile(&two, 0.5) == 1001);
}

/* A full step halves them all, which keeps the shape. */
T_CASE(full_step)
{
    struct gpi_hist h = {0};
    gpi_hist_add(&h, 3);
    gpi_hist_add(&h, 5);
    gpi_hist_add(&h, 1000);
    h.step[3] = UINT32_MAX;
    h.step[5] = UINT32_MAX - 1;
    gpi_hist_add(&h, 3);
    T_CHECK(h.step[3] == ((uint32_t)1 << 31) + 1);
    T_CHECK(gpi_hist_quantile(&h, 0.49) == 3);
    T_CHECK(gpi_hist_quantile(&h, 0.51) == 5);
    T_CHECK(gpi_hist_quantile(&h, 1.0) == 1000);
}
