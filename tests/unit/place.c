/* SPDX-License-Identifier: MIT */
/*
 * place.c - who gets the next task, how far ahead tasks are sent, who gives one back.   [C5]
 */
#include "harness.h"

#include <stdint.h>
#include <string.h>

#include "sched/place.h"

enum { MOST = 24 };

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

T_CASE(nobody)
{
    struct gpi_placer p;

    gpi_placer_begin(&p, NULL, 0);
    for (int i = 0; i < 3; i++)
        T_EQ(gpi_placer_next(&p), GPI_PLACER_FULL);
}

/* Every idle worker gets one before any gets a second, in their order. */
T_CASE(level_by_level)
{
    struct gpi_load load[3] = { { 10, 0, 3 }, { 20, 0, 3 }, { 30, 0, 3 } };
    static const uint32_t wanted[] = { 10, 20, 30, 10, 20, 30, 10, 20, 30, GPI_PLACER_FULL };
    struct gpi_placer p;

    gpi_placer_begin(&p, load, 3);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        T_EQ(gpi_placer_next(&p), wanted[i]);
}

/* Those that hold less catch up first. */
T_CASE(uneven)
{
    struct gpi_load load[3] = { { 0, 5, 10 }, { 1, 2, 2 }, { 2, 3, 10 } };
    static const uint32_t wanted[] = { 1, 1, 2, 2, 0, 2, 0, 2 };
    struct gpi_placer p;

    gpi_placer_begin(&p, load, 3);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        T_EQ(gpi_placer_next(&p), wanted[i]);
}

/* Whatever the loads: the next task goes to one that holds least among those with room; in the
 * end each has got exactly its room. */
T_CASE(random_loads)
{
    uint64_t seed = 0x9e3779b97f4a7c15U;

    for (unsigned round = 0; round < 30000; round++) {
        uint32_t n = 1 + (uint32_t)(draw(&seed) % MOST), total = 0, sent[MOST], room[MOST];
        struct gpi_load load[MOST];
        struct gpi_placer p;

        for (uint32_t i = 0; i < n; i++) {
            sent[i] = (uint32_t)(draw(&seed) % (round % 2 ? 4 : 64));
            room[i] = 1 + (uint32_t)(draw(&seed) % 8);
            total += room[i];
            load[i] = (struct gpi_load){ .slot = i, .sent = sent[i], .room = room[i] };
        }
        gpi_placer_begin(&p, load, n);
        for (uint32_t given = 0; given < total; given++) {
            uint32_t slot = gpi_placer_next(&p);

            T_CMP(slot, <, n);
            T_CMP(room[slot], >, 0);
            for (uint32_t i = 0; i < n; i++)
                if (room[i])
                    T_CMP(sent[slot], <=, sent[i]);
            sent[slot]++;
            room[slot]--;
        }
        T_EQ(gpi_placer_next(&p), GPI_PLACER_FULL);
        T_EQ(gpi_placer_next(&p), GPI_PLACER_FULL);
    }
}

/* 2, up to 64 for the shortest tasks, and never more for a longer one than for a shorter. */
T_CASE(depth)
{
    uint32_t last = 64;

    T_EQ(gpi_place_depth(0), 2); /* not known yet */
    T_EQ(gpi_place_depth(1), 64);
    T_EQ(gpi_place_depth(15625), 64);
    T_EQ(gpi_place_depth(100000), 10);
    T_EQ(gpi_place_depth(499999), 2);
    T_EQ(gpi_place_depth(500000), 2);
    T_EQ(gpi_place_depth(UINT64_MAX), 2);
    for (uint64_t run = 1; run < 1000000; run += 7) {
        uint32_t n = gpi_place_depth(run);

        T_CMP(n, <=, last);
        T_CMP(n, >=, 2);
        last = n;
    }
}

/* Only what waits behind a task that runs long is taken back. */
T_CASE(recall)
{
    T_EQ(gpi_place_recall(0, UINT64_MAX), 0);
    T_EQ(gpi_place_recall(1, UINT64_MAX), 0);
    T_EQ(gpi_place_recall(2, 0), 0);
    T_EQ(gpi_place_recall(2, 999999), 0);
    T_EQ(gpi_place_recall(2, 1000000), 1);
    T_EQ(gpi_place_recall(64, UINT64_MAX), 1);
}

/* Some runs of the usual length without a word, and no less than a millisecond, make a worker
 * stuck; no sum wraps. */
T_CASE(stuck)
{
    static const uint64_t heard[] = { 0, 1, 1000000000, UINT64_MAX / 4 };

    for (size_t i = 0; i < sizeof(heard) / sizeof(heard[0]); i++) {
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
