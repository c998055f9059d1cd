/* SPDX-License-Identifier: MIT */
/*
 * verdict.h - how an attempt ended, judged from its end record.                      [C7]
 *
 * The end time against the deadline decides, never a flag: a task that ended in time is never
 * TIMEOUT, also when the host was late, and one past its limit is never SUCCESS.
 */
#ifndef GPI_SCHED_VERDICT_H
#define GPI_SCHED_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "gpudispatch/types.h"

struct gpi_attempt {
    uint64_t started_at, ended_at;
    uint64_t stopped;      /* time the worker was seen stopped; moves the deadline */
    uint64_t limit;        /* NEVER = none */
    uint64_t stalled_at;   /* when it had made no progress for its stall limit, 0 = it had */
    uint64_t cancelled_at; /* when the host cancelled it, NEVER = it did not */
    bool failed;           /* process returned an error, or the task called fail */
    bool expired;          /* the alarm flag; kept to show that it does not decide */
};

/* Returns an enum gpud_outcome.  Inline: one for each task. */
static inline uint32_t gpi_verdict(const struct gpi_attempt *a)
{
    uint64_t deadline = gpi_time_add(gpi_time_add(a->started_at, a->limit), a->stopped);

    if (a->stalled_at)
        deadline = gpi_time_min(deadline, a->stalled_at);
    if (a->cancelled_at <= a->ended_at && a->cancelled_at < deadline)
        return GPUD_OUTCOME_CANCELLED;
    if (a->ended_at >= deadline)
        return GPUD_OUTCOME_TIMEOUT;
    return a->failed ? GPUD_OUTCOME_ERROR : GPUD_OUTCOME_SUCCESS;
}

#endif
