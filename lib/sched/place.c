/* SPDX-License-Identifier: MIT */
#include "sched/place.h"

#include "base/clock.h"

#define DEPTH_MIN 2u
#define DEPTH_MAX 64u
#define SHORT_RUN_NS 500000u   /* below this, a worker gets more than 2 tasks ahead */
#define AHEAD_NS 1000000u      /* tasks for about this time */
#define LONG_RUN_NS 100000000u /* from it on, a worker of a pool gets no task ahead */
#define STUCK_RUNS 4u          /* after 4 mean runs in silence, a task is not like the rest */

uint32_t gpi_place_depth(uint64_t mean_run, bool pooled)
{
    uint64_t depth;

    if (pooled && (mean_run == 0 || mean_run >= LONG_RUN_NS))
        return 1;
    if (mean_run == 0 || mean_run >= SHORT_RUN_NS)
        return DEPTH_MIN;
    depth = AHEAD_NS / mean_run;
    return depth < DEPTH_MIN ? DEPTH_MIN : depth > DEPTH_MAX ? DEPTH_MAX : (uint32_t)depth;
}

bool gpi_place_fits(uint32_t depth, uint64_t mean_run, bool pooled)
{
    if (mean_run >= SHORT_RUN_NS)
        return depth == gpi_place_depth(mean_run, pooled);
    return depth * mean_run <= AHEAD_NS &&
           (depth == DEPTH_MAX || (depth + 1) * mean_run > AHEAD_NS);
}

uint64_t gpi_place_stuck_at(uint64_t since, uint64_t mean_run)
{
    const uint64_t patience = mean_run > UINT64_MAX / 8 ? UINT64_MAX / 2 : mean_run * STUCK_RUNS;

    return gpi_time_add(since, patience > GPI_PLACE_QUIET_NS ? patience : GPI_PLACE_QUIET_NS);
}
