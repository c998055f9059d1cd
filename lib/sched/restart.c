/* SPDX-License-Identifier: MIT */
#include "sched/restart.h"

#include "base/clock.h"

#define TASK_DEATHS_SUSPECT 8 /* in a row on one slot, while other slots have successes */

uint64_t gpi_restart_slot_failure(struct gpi_restart *r, const struct gpi_restart_policy *p)
{
    r->slot_failures++;
    if (r->slot_failures >= p->failures_in_a_row)
        return GPI_RESTART_GIVE_UP;
    return gpi_time_doubled(p->backoff, r->slot_failures - 1, p->cap);
}

uint64_t gpi_restart_task_death(struct gpi_restart *r, const struct gpi_restart_policy *p,
                                uint64_t successes)
{
    if (r->task_deaths++ == 0)
        r->others_before = successes;
    if (r->task_deaths < TASK_DEATHS_SUSPECT || successes == r->others_before)
        return 0;
    return gpi_time_doubled(p->backoff, r->task_deaths - TASK_DEATHS_SUSPECT, p->cap);
}

void gpi_restart_forget(struct gpi_restart *r)
{
    *r = (struct gpi_restart){ 0 };
}

void gpi_restart_lived_long(struct gpi_restart *r)
{
    r->slot_failures = 0;
}
