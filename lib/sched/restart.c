/* SPDX-License-Identifier: MIT */
#include "sched/restart.h"

#define TASK_DEATHS_SUSPECT 8 /* in a row on one slot, while others succeed */

static uint64_t doubled(uint32_t times, const struct gpi_restart_policy *p)
{
    uint64_t wait = p->backoff;

    while (times-- > 0 && wait < p->cap)
        wait *= 2;
    return wait < p->cap ? wait : p->cap;
}

uint64_t gpi_restart_slot_failure(struct gpi_restart *r, const struct gpi_restart_policy *p)
{
    r->slot_failures++;
    if (r->slot_failures >= p->failures_in_a_row)
        return GPI_RESTART_GIVE_UP;
    return doubled(r->slot_failures - 1, p);
}

uint64_t gpi_restart_task_death(struct gpi_restart *r, const struct gpi_restart_policy *p, uint64_t successes)
{
    if (r->task_deaths++ == 0)
        r->others_before = successes;
    if (r->task_deaths < TASK_DEATHS_SUSPECT || successes == r->others_before)
        return 0;
    return doubled(r->task_deaths - TASK_DEATHS_SUSPECT, p);
}

void gpi_restart_good(struct gpi_restart *r)
{
    r->slot_failures = 0;
    r->task_deaths = 0;
}
