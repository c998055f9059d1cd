/* SPDX-License-Identifier: MIT */
/* left.c - time left of batches that are easy to foresee, and of reports without sense.  [V8] */
#include "harness.h"

#include <string.h>

#include "view/night/left.h"

#define S INT64_C(1000000000)

struct range {
    int64_t least, most;
};

static struct range left(const struct gpv_left *l, int64_t now, uint32_t waiting)
{
    struct range r;

    gpv_left(l, now, waiting, false, &r.least, &r.most);
    return r;
}

/* Rounds of tasks of 100 s; the last round runs still. */
static void rounds(struct gpv_left *l, int n, int places)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; i > 0 && k < places; k++)
            gpv_left_end(l, (i - 1) * 100 * S, i * 100 * S);
        for (int k = 0; k < places; k++)
            gpv_left_start(l, i * 100 * S);
    }
}

/* A range that has the truth in it, and is not wide. */
static void check(struct range r, int64_t truth)
{
    T_CMP(r.least, <=, truth * S);
    T_CMP(r.most, >=, truth * S);
    T_CMP(r.least * 16, >=, r.most * 10);
}

T_CASE(unknown)
{
    struct gpv_left l = { 0 };

    T_EQ(left(&l, 5 * S, 7).least, -1);
    T_EQ(left(&l, 5 * S, 7).most, -1);
    rounds(&l, 1, 8);
    T_EQ(left(&l, 5 * S, 7).most, -1);
    for (int i = 0; i < 3; i++)
        gpv_left_end(&l, 0, 100 * S);
    T_EQ(left(&l, 100 * S, 7).most, -1);
    gpv_left_end(&l, 0, 100 * S);
    T_CMP(left(&l, 100 * S, 7).least, >, 0);
}

T_CASE(over)
{
    struct gpv_left l = { 0 };

    T_EQ(left(&l, 5 * S, 0).least, 0);
    T_EQ(left(&l, 5 * S, 0).most, 0);
}

T_CASE(steady)
{
    for (int places = 1; places <= 200; places = places * 3 + 1) {
        struct gpv_left l = { 0 };

        rounds(&l, 10, places);
        check(left(&l, 900 * S, (uint32_t)places * 9), 1000);
        check(left(&l, 960 * S, (uint32_t)places * 9), 940);
        check(left(&l, 900 * S, (uint32_t)places * 9999), 1000000);
        check(left(&l, 900 * S, 1), 200);
    }
}

T_CASE(the_last_ones_run)
{
    struct gpv_left l = { 0 };

    rounds(&l, 10, 2);
    check(left(&l, 960 * S, 0), 40);
}

/* As long as since the middle of the batch, when 8 at once became 1. */
T_CASE(fewer_at_once)
{
    struct gpv_left l = { 0 };

    rounds(&l, 10, 8);
    for (int i = 0; i < 8; i++)
        gpv_left_end(&l, 900 * S, 1000 * S);
    for (int i = 10; i < 100; i++) {
        gpv_left_start(&l, i * 100 * S);
        gpv_left_end(&l, i * 100 * S, (i + 1) * 100 * S);
    }
    gpv_left_start(&l, 10000 * S);
    struct range r = left(&l, 10000 * S, 99);
    T_CMP(r.least, <=, 10000 * S);
    T_CMP(r.most, >=, 10000 * S);
    T_CMP(r.least, >=, 5000 * S);
}

T_CASE(held_or_open)
{
    struct gpv_left l = { 0 };
    int64_t least, most;

    gpv_left(&l, 0, 0, true, &least, &most);
    T_EQ(least, -1);
    rounds(&l, 10, 8);
    gpv_left(&l, 900 * S, 72, true, &least, &most);
    T_CMP(least, >, 800 * S);
    T_EQ(most, -1);
}

/* It does not run while others do, or while the queue pauses. */
T_CASE(stands)
{
    struct gpv_left l = { 0 };

    rounds(&l, 10, 1);
    gpv_left_end(&l, 900 * S, 1000 * S);
    check(left(&l, 1001 * S, 10), 1000);
    T_EQ(left(&l, 1200 * S, 10).least, -1);
    T_EQ(left(&l, 1200 * S, 10).most, -1);
    gpv_left_start(&l, 1200 * S);
    T_CMP(left(&l, 1200 * S, 9).most, >, 0);
}

T_CASE(clock_set_back)
{
    struct gpv_left l = { 0 };

    rounds(&l, 10, 8);
    check(left(&l, -5000 * S, 72), 1000);
    gpv_left_end(&l, 900 * S, -5000 * S);
    gpv_left_start(&l, -5000 * S);
    T_CMP(left(&l, -5000 * S, 72).least, >, 0);
}

T_CASE(same_again)
{
    struct gpv_left l = { 0 };

    rounds(&l, 10, 8);
    struct range a = left(&l, 950 * S, 72), b = left(&l, 950 * S, 72);
    T_EQ(a.least, b.least);
    T_EQ(a.most, b.most);
}

T_CASE(any_reports)
{
    uint64_t seed = 15;

    for (int round = 0; round < 300; round++) {
        struct gpv_left l = { 0 };

        for (int i = 0; i < 400; i++) {
            int shift = (int)(seed >> 58);
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            int64_t time = (int64_t)(seed >> shift), other = (int64_t)(seed * 7 >> shift);
            if (seed >> 40 & 1)
                gpv_left_start(&l, time);
            else
                gpv_left_end(&l, other, time);
            if (i % 16 != 0)
                continue;
            struct range r = left(&l, other, (uint32_t)(time >> (seed >> 60)));
            T_CMP(r.least, >=, -1);
            T_CMP(r.most, >=, r.least);
            T_CHECK((r.least == -1) == (r.most == -1));
        }
    }
}

T_CASE(several)
{
    int64_t least = 0, most = 0;

    gpv_left_join(&least, &most, 5, 9);
    gpv_left_join(&least, &most, 6, 7);
    T_EQ(least, 6);
    T_EQ(most, 9);
    gpv_left_join(&least, &most, -1, -1);
    T_EQ(least, 6); /* it takes as long at least */
    T_EQ(most, -1);
    gpv_left_join(&least, &most, 8, 8);
    T_EQ(least, 8);
    T_EQ(most, -1);
}
