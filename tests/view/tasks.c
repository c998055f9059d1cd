/* SPDX-License-Identifier: MIT */
/* tasks.c - sets of numbers of tasks, as ranges. */
#include "harness.h"

#include <string.h>

#include "queue/draw.h"

#include "view/night/tasks.h"

static void add(struct gpv_tasks *r, uint32_t owner, uint32_t number)
{
    T_EQ(gpv_tasks_add(r, owner, number), 0);
}

T_CASE(ranges_that_touch_are_one)
{
    struct gpv_tasks r = { 0 };
    uint32_t lowest = 0;

    add(&r, 2, 7);
    add(&r, 1, 5);
    add(&r, 1, 9);
    add(&r, 1, 4);
    add(&r, 1, 6);
    add(&r, 1, 5);
    add(&r, 1, UINT32_MAX);
    add(&r, 1, 0);
    gpv_tasks_join(&r);
    T_EQ(r.n, 5);
    T_EQ(r.row[1].from, 4);
    T_EQ(r.row[1].to, 6);
    T_EQ(r.row[3].from, UINT32_MAX);
    T_EQ(r.row[4].owner, 2);
    T_EQ(gpv_tasks_among(&r, 1, 5, 9, &lowest), 3);
    T_EQ(lowest, 5);
    T_EQ(gpv_tasks_among(&r, 1, 7, 8, &lowest), 0);
    T_EQ(gpv_tasks_among(&r, 1, 10, UINT32_MAX, &lowest), 1);
    T_EQ(lowest, UINT32_MAX);
    T_EQ(gpv_tasks_among(&r, 2, 0, UINT32_MAX, &lowest), 1);
    T_EQ(gpv_tasks_among(&r, 3, 0, UINT32_MAX, &lowest), 0);
    gpv_tasks_free(&r);
    T_EQ(r.n, 0);
}

/* Two owners in turn, so that no number extends the range before it. */
T_CASE(memory_is_for_ranges)
{
    struct gpv_tasks r = { 0 };

    for (uint32_t i = 0; i < 1000000; i++)
        add(&r, i % 2, i / 2);
    T_CMP(r.room, <=, 64);
    gpv_tasks_join(&r);
    T_EQ(r.n, 2);
    gpv_tasks_free(&r);
}

enum { OWNERS = 3, NUMBERS = 200 };

T_CASE(as_a_table_of_bits)
{
    uint64_t seed = 3;

    for (size_t round = t_rounds(2000, 200); round > 0; round--) {
        struct gpv_tasks r = { 0 };
        bool has[OWNERS][NUMBERS];
        uint32_t lowest = 0, first = NUMBERS, owner = draw_below(&seed, OWNERS);
        uint32_t from = draw_below(&seed, NUMBERS), to = from + draw_below(&seed, NUMBERS - from);
        uint64_t count = 0;

        memset(has, 0, sizeof(has));
        for (uint32_t i = draw_below(&seed, 400); i > 0; i--) {
            uint32_t one = draw_below(&seed, OWNERS), number = draw_below(&seed, NUMBERS);
            add(&r, one, number);
            has[one][number] = true;
        }
        for (uint32_t i = to + 1; i-- > from;) {
            count += has[owner][i];
            first = has[owner][i] ? i : first;
        }
        gpv_tasks_join(&r);
        T_EQ(gpv_tasks_among(&r, owner, from, to, &lowest), count);
        T_EQ(count > 0 ? lowest : NUMBERS, first);
        for (size_t i = 1; i < r.n; i++)
            T_CHECK(r.row[i].owner > r.row[i - 1].owner || r.row[i].from > r.row[i - 1].to + 1);
        gpv_tasks_free(&r);
    }
}
