/* SPDX-License-Identifier: MIT */
/*
 * place.c - how far ahead tasks are sent, and when those behind a long task return.      [C5]
 */
#include "harness.h"

#include <stdint.h>
#include <string.h>

#include "sched/place.h"

/* 2, up to 64 for the shortest tasks, and never more for a longer one than for a shorter. */
T_CASE(depth)
{
    static const bool pooled[] = { false, true };
    uint32_t last = 64;

    T_EQ(gpi_place_depth(0, false), 2); /* not known yet */
    T_EQ(gpi_place_depth(UINT64_MAX, false), 2);
    T_EQ(gpi_place_depth(0, true), 1);
    T_EQ(gpi_place_depth(99999999, true), 2);
    T_EQ(gpi_place_depth(100000000, true), 1);
    T_EQ(gpi_place_depth(UINT64_MAX, true), 1);
    T_CHECK(gpi_place_fits(1, UINT64_MAX, true) && !gpi_place_fits(2, UINT64_MAX, true));
    for (size_t i = 0; i < T_LENGTH(pooled); i++) {
        T_EQ(gpi_place_depth(1, pooled[i]), 64);
        T_EQ(gpi_place_depth(15625, pooled[i]), 64);
        T_EQ(gpi_place_depth(100000, pooled[i]), 10);
        T_EQ(gpi_place_depth(499999, pooled[i]), 2);
        T_EQ(gpi_place_depth(500000, pooled[i]), 2);
    }
    for (uint64_t run = 1; run < 1000000; run += 7) {
        const bool in_pool = run & 1;
        uint32_t n = gpi_place_depth(run, in_pool);

        T_CMP(n, <=, last);
        T_CMP(n, >=, 2);
        T_CHECK(!gpi_place_fits(n - 1, run, in_pool) &&
                (n == 64 || !gpi_place_fits(n + 1, run, in_pool)));
        T_CHECK(gpi_place_fits(n, run, in_pool));
        last = n;
    }
}

/* Some runs of the usual length without a word, and no less than a millisecond, make a worker
 * stuck; no sum wraps. */
T_CASE(stuck)
{
    static const uint64_t heard[] = { 0, 1, 1000000000, UINT64_MAX / 4 };

    for (size_t i = 0; i < T_LENGTH(heard); i++) {
        uint64_t last = heard[i] + 1000000;

        T_EQ(gpi_place_stuck_at(heard[i], 0), last); /* nothing is known yet */
        T_EQ(gpi_place_stuck_at(heard[i], 1), last);
        for (uint64_t run = 1000; run < UINT64_MAX / 2; run *= 3) {
            uint64_t at = gpi_place_stuck_at(heard[i], run);

            T_CHECK(at >= last);
            T_CHECK(run < 1000000 || run > UINT64_MAX / 8 || at - heard[i] >= 2 * run);
            last = at;
        }
        T_CHECK(gpi_place_stuck_at(heard[i], UINT64_MAX) >= last);
    }
}
