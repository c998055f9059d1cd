/* SPDX-License-Identifier: MIT */
/* measures.c - lengths of time as a histogram, and their median. */
#include "view/now/measures.h"

#include <string.h>

#define SECOND INT64_C(1000000000)

void gpv_histogram_add(struct gpv_histogram *h, int64_t ns)
{
    int64_t most = SECOND / 8;
    h->count++;
    h->sum += (double)ns / (double)SECOND;
    for (int i = 0; i < GPV_BUCKETS; i++, most *= 2)
        if (ns <= most) {
            h->bucket[i]++;
            return;
        }
}

void gpv_lengths_add(struct gpv_lengths *l, int64_t ns)
{
    l->ns[l->n++ % GPV_LENGTHS] = ns;
}

int64_t gpv_lengths_p50(const struct gpv_lengths *l)
{
    uint32_t n = l->n < GPV_LENGTHS ? (uint32_t)l->n : GPV_LENGTHS;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t less = 0, equal = 0;
        for (uint32_t k = 0; k < n; k++) {
            less += l->ns[k] < l->ns[i];
            equal += l->ns[k] == l->ns[i];
        }
        if (less <= (n - 1) / 2 && (n - 1) / 2 < less + equal)
            return l->ns[i];
    }
    return -1;
}
