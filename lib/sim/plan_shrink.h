/* SPDX-License-Identifier: MIT */
/*
 * plan_shrink.h - finds fewer facts to which the slow model still objects with the same id.
 *
 * Each attempt runs in a process of its own, since a plan may abort, or not end.  Each of these is
 * an id, too.
 */
#ifndef GPI_SIM_PLAN_SHRINK_H
#define GPI_SIM_PLAN_SHRINK_H

#include <stddef.h>
#include <stdint.h>

#include "log/fact.h"

#define GPI_PLAN_ID_SIZE 16u

struct gpi_plan_facts {
    struct gpi_fact *at;
    size_t n;
};

/* Sets `ret_id` to the id of the first objection, such as "S7"; to "abort", "no end" or "". */
void gpi_plan_judge(const struct gpi_plan_facts *facts, char ret_id[GPI_PLAN_ID_SIZE]);
/* Takes facts out while the id stays.  Returns the number of attempts. */
uint32_t gpi_plan_shrink(struct gpi_plan_facts *facts);

#endif
