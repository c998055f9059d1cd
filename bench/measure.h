/* SPDX-License-Identifier: MIT */
/* measure.h - clocks, medians and percentiles. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#define B_MS UINT64_C(1000000)
#define B_S UINT64_C(1000000000)

/* Gives CLOCK_MONOTONIC in nanoseconds, the clock of the library's times. */
uint64_t b_now(void);

/* Gives the CPU time all threads of this process have used, in nanoseconds. */
uint64_t b_cpu(void);

/* Gives how often something is measured: `full`, or `quick` once b_effort_quick was called. */
size_t b_effort(size_t full, size_t quick);
void b_effort_quick(void);

/* Sleeps, also when signals come in between. */
void b_sleep(uint64_t ns);

/* Gives the value below which a share `p` (0..1) of the n values lies; sorts them.  NaN for none.
 */
double b_percentile(double *values, size_t n, double p);
double b_median(double *values, size_t n);

/* Where values lie: their median, and the values that a share `edge` of them lies below, and
 * above.  NaN for none. */
struct b_spread {
    double low, middle, high;
};
struct b_spread b_spread(double *values, size_t n, double edge);

/* One round trip of something; 0, or -1 when it failed. */
typedef int(b_trip_fn)(void *user);

/* Makes n trips and gives the median time of one in microseconds; -1 when a trip failed. */
double b_trips(b_trip_fn *trip, void *user, size_t n);

#endif
