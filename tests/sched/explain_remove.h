/* SPDX-License-Identifier: MIT */
/* explain_remove.h - takes away one reason why a task of a plan waits. */
#ifndef T_EXPLAIN_REMOVE_H
#define T_EXPLAIN_REMOVE_H

#include "sched/plan.h"

extern const char *const t_reason_name[];

/* The plan is to decide from now on until a time. */
struct t_times {
    uint64_t now, until;
};

/* Removes what the row says, by facts where there is one, else in the plan's settings.  Returns
 * false if the reason can never go. */
bool t_reason_remove(struct gpi_plan *p, const struct gpi_plan_reason *r, struct t_times *ret);

#endif
