/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * B_S + (uint64_t)t.tv_nsec;
}

uint64_t b_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t b_cpu(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static int quick;

void b_effort_quick(void)
{
    quick = 1;
}

size_t b_effort(size_t full, size_t few)
{
    return quick ? few : full;
}

void b_sleep(uint64_t ns)
{
    struct timespec t = { .tv_sec = (time_t)(ns / B_S), .tv_nsec = (long)(ns % B_S) };

    while (nanosleep(&t, &t) && errno == EINTR)
        ;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double b_percentile(double *values, size_t n, double p)
{
    size_t rank;

    if (n == 0)
        return NAN;
    qsort(values, n, sizeof(*values), compare);
    rank = (size_t)ceil(p * (double)n);
    if (rank > 0)
        rank--;
    return values[rank < n ? rank : n - 1];
}

double b_median(double *values, size_t n)
{
    return b_percentile(values, n, 0.5);
}

struct b_spread b_spread(double *values, size_t n, double edge)
{
    return (struct b_spread){ .low = b_percentile(values, n, edge),
                              .middle = b_median(values, n),
                              .high = b_percentile(values, n, 1 - edge) };
}

double b_trips(b_trip_fn *trip, void *user, size_t n)
{
    double *took = malloc(n * sizeof(*took));
    double middle = -1;
    uint64_t before, after;
    size_t i;

    if (!took)
        return -1;
    before = b_now();
    for (i = 0; i < n; i++) {
        if (trip(user))
            goto out;
        after = b_now();
        took[i] = (double)(after - before) / 1e3;
        before = after;
    }
    middle = b_median(took, n);
out:
    free(took);
    return middle;
}
