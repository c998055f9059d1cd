/* SPDX-License-Identifier: MIT */
/*
 * left_feed.c - time left (view/night/left.h) of batches whose events are lines, for left.py.
 *
 *     + BATCH TIME            a task starts
 *     - BATCH STARTED TIME    it ends
 *     ? BATCH TIME WAITING    a question
 *     =                       prints LEAST MOST of the batches asked for since the last such line
 *
 * Times are ns.
 */
#include <inttypes.h>
#include <stdio.h>

#include "view/night/left.h"

enum { BATCHES = 256 };
static struct gpv_left lefts[BATCHES];

int main(void)
{
    char line[256], kind;
    int64_t all_least = 0, all_most = 0;
    while (fgets(line, sizeof(line), stdin)) {
        uint32_t batch;
        int64_t a = 0, b = 0, least, most;
        if (line[0] == '=') {
            printf("%" PRId64 " %" PRId64 "\n", all_least, all_most);
            all_least = all_most = 0;
            continue;
        }
        int n = sscanf(line, "%c %" SCNu32 " %" SCNd64 " %" SCNd64, &kind, &batch, &a, &b);
        if (n < 3 || batch >= BATCHES) {
            (void)fprintf(stderr, "left_feed: no event: %s", line);
            return 1;
        }
        if (kind == '+')
            gpv_left_start(&lefts[batch], a);
        else if (kind == '-')
            gpv_left_end(&lefts[batch], a, b);
        else {
            gpv_left(&lefts[batch], a, (uint32_t)b, false, &least, &most);
            gpv_left_join(&all_least, &all_most, least, most);
        }
    }
    return 0;
}
