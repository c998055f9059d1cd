/* SPDX-License-Identifier: MIT */
/* client_left.c - the time that is left for a batch. */
#include "harness.h"

#include "queue/client/left.h"

#define SECOND UINT64_C(1000000000)

T_CASE(few_ends_say_nothing)
{
    uint64_t ended[GPQ_LEFT_LEAST] = { 1, 2, 3, 4, 5 }, least = 7, most = 7;
    T_CHECK(!gpq_left(ended, GPQ_LEFT_LEAST - 1, 4, 0, 10, 100, &least, &most));
    T_EQ(least, 7);
    T_CHECK(gpq_left(ended, GPQ_LEFT_LEAST, 5, 0, 10, 100, &least, &most));
}

T_CASE(a_steady_rate_is_exact)
{
    uint64_t ended[1000], least, most;
    for (uint64_t i = 0; i < 1000; i++)
        ended[i] = (i + 1) * SECOND;
    T_CHECK(gpq_left(ended, 1000, 1000, 0, 1000 * SECOND, 500, &least, &most));
    T_EQ(least, 500 * SECOND);
    T_EQ(most, 500 * SECOND);
    T_CHECK(gpq_left(ended, 1000, 1000, 0, 1000 * SECOND, 0, &least, &most));
    T_EQ(most, 0);
}

/* The newest ends are those of the last 1,000 s: 9,000 others took 10 times as long each. */
T_CASE(the_newest_ends_are_no_more_than_a_part)
{
    uint64_t ended[1000], least, most, from = 0, now = 91000 * SECOND;
    for (uint64_t i = 0; i < 1000; i++)
        ended[i] = (90000 + i + 1) * SECOND;
    T_CHECK(gpq_left(ended, 1000, 10000, from, now, 1000, &least, &most));
    T_EQ(least, 1000 * SECOND);
    T_EQ(most, 9100 * SECOND);
}

/* Nothing has ended for a while: the estimate grows. */
T_CASE(a_standstill_counts)
{
    uint64_t ended[8], least, most;
    for (uint64_t i = 0; i < 8; i++)
        ended[i] = (i + 1) * SECOND;
    T_CHECK(gpq_left(ended, 8, 8, 0, 100 * SECOND, 8, &least, &most));
    T_EQ(least, 100 * SECOND);
    T_EQ(most, 8 * 94 * SECOND / 2);
}

T_CASE(odd_clocks_and_many_tasks)
{
    uint64_t ended[5] = { 50, 50, 50, 50, 50 }, least, most;
    T_CHECK(gpq_left(ended, 5, 5, 100, 10, UINT64_MAX, &least, &most)); /* the clock went back */
    T_CMP(most, <=, UINT64_C(1000000000000000000));
    T_CMP(least, <=, most);
}
