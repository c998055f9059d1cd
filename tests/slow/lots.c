/* SPDX-License-Identifier: MIT */
#include "lots.h"

#include <time.h>

uint64_t lot(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t below(uint64_t *state, uint64_t n)
{
    return lot(state) % n;
}

int once_in(uint64_t *state, uint64_t n)
{
    return below(state, n) == 0;
}

void nap(uint64_t ns)
{
    struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

    (void)nanosleep(&t, NULL);
}
