/* SPDX-License-Identifier: MIT */
#include "sched/retry.h"

#include "base/clock.h"
#include "gpudispatch/types.h"

static uint32_t cause_of(uint32_t outcome)
{
    switch (outcome) {
    case GPUD_OUTCOME_CRASHED:
        return GPUD_RETRY_CRASH;
    case GPUD_OUTCOME_ERROR:
        return GPUD_RETRY_ERROR;
    case GPUD_OUTCOME_TIMEOUT:
        return GPUD_RETRY_TIMEOUT;
    default:
        return 0; /* nothing else is ever tried again */
    }
}

bool gpi_retry_allowed(uint32_t causes, uint32_t outcome, uint32_t attempts, uint32_t max_attempts)
{
    return attempts < max_attempts && (causes & cause_of(outcome));
}

bool gpi_retry_after_device(uint32_t causes, uint32_t attempts, uint32_t max_attempts)
{
    return attempts < max_attempts && (causes & GPUD_RETRY_DEVICE);
}

uint64_t gpi_retry_wait(const struct gpi_retry_policy *p, uint32_t attempts)
{
    return gpi_time_doubled(p->backoff, attempts ? attempts - 1 : 0, p->cap);
}
