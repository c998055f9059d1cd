/* SPDX-License-Identifier: MIT */
/* clock.c - the time of verbs. */
#include "queue/client/clock.h"

#include <time.h>

#define MS UINT64_C(1000000)

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t gpq_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t gpq_now_wall(void)
{
    return clock_ns(CLOCK_REALTIME);
}

int gpq_ms_until(uint64_t deadline)
{
    if (deadline == 0)
        return -1;
    uint64_t now = gpq_now();
    if (now >= deadline)
        return 0;
    uint64_t ms = (deadline - now + MS - 1) / MS;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}
