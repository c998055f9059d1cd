/* SPDX-License-Identifier: MIT */
#include "sched/verdict.h"

#include "base/clock.h"
#include "gpudispatch/types.h"

uint32_t gpi_verdict(const struct gpi_attempt *a)
{
    uint64_t deadline = gpi_time_add(gpi_time_add(a->started_at, a->limit), a->stopped);

    if (a->cancelled_at <= a->ended_at && a->cancelled_at < deadline)
        return GPUD_OUTCOME_CANCELLED;
    if (a->ended_at >= deadline)
        return GPUD_OUTCOME_TIMEOUT;
    return a->failed ? GPUD_OUTCOME_ERROR : GPUD_OUTCOME_SUCCESS;
}
