/* SPDX-License-Identifier: MIT */
/*
 * tasks.h - sets of numbers of tasks, as ranges.
 *
 * Each set has an owner, such as a batch or a finding.  The ranges of all of them are one list,
 * whose memory grows with the number of ranges, not with that of the added numbers.
 */
#ifndef GPV_TASKS_H
#define GPV_TASKS_H

#include "view/records.h"

struct gpv_task_range {
    uint32_t owner, from, to;
};

struct gpv_tasks {
    GPV_LIST(struct gpv_task_range);
};

/* 0, or -1 without memory.  A number that is there already changes nothing. */
int gpv_tasks_add(struct gpv_tasks *r, uint32_t owner, uint32_t number);
int gpv_tasks_add_range(struct gpv_tasks *r, uint32_t owner, uint32_t from, uint32_t to);
/* Sorts the ranges by owner and number, and joins those that touch: now no two do. */
void gpv_tasks_join(struct gpv_tasks *r);
/* After the join: how many of the numbers from `from` to `to` the set of the owner has, and the
 * lowest one of them if there is one. */
uint64_t gpv_tasks_among(const struct gpv_tasks *r, uint32_t owner, uint32_t from, uint32_t to,
                          uint32_t *ret_lowest);
void gpv_tasks_free(struct gpv_tasks *r);

#endif
