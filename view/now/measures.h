/* SPDX-License-Identifier: MIT */
/* measures.h - lengths of time as a histogram, and their median. */
#ifndef GPV_MEASURES_H
#define GPV_MEASURES_H

#include <stdint.h>

enum { GPV_BUCKETS = 20 }; /* up to 2^-3 s, 2^-2 s, ... 2^16 s; longer ones are in `count` alone */
struct gpv_histogram {
    uint64_t bucket[GPV_BUCKETS]; /* not cumulative */
    uint64_t count;
    double sum; /* s */
};
void gpv_histogram_add(struct gpv_histogram *h, int64_t ns);

/* The last lengths. */
enum { GPV_LENGTHS = 64 };
struct gpv_lengths {
    int64_t ns[GPV_LENGTHS];
    uint64_t n; /* that were ever added */
};
void gpv_lengths_add(struct gpv_lengths *l, int64_t ns);
/* The lowest one that half of them do not exceed; -1: there is none. */
int64_t gpv_lengths_p50(const struct gpv_lengths *l);

#endif
