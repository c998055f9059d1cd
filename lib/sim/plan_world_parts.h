/* SPDX-License-Identifier: MIT */
/* plan_world_parts.h - the numbers of a world.  Private to plan_world.c and plan_world_make.c. */
#ifndef GPI_SIM_PLAN_WORLD_PARTS_H
#define GPI_SIM_PLAN_WORLD_PARTS_H

#include "sim/plan_world.h"

#define GIB (1ull << 30)
#define GRACE 2000u /* units */

/* Returns a number below n, which is not 0. */
uint64_t gpi_plan_below(struct gpi_plan_world *w, uint64_t n);

static inline bool gpi_plan_chance(struct gpi_plan_world *w, uint32_t percent)
{
    return gpi_plan_below(w, 100) < percent;
}

static inline uint64_t gpi_plan_units(struct gpi_plan_world *w, uint64_t n)
{
    return gpi_plan_below(w, n) * w->unit;
}

static inline bool gpi_plan_has(const struct gpi_plan_world *w, enum gpi_plan_part part)
{
    return w->parts >> part & 1;
}

/* Returns true in some of the cases of a world that has the part. */
static inline bool gpi_plan_in_part(struct gpi_plan_world *w, enum gpi_plan_part part,
                                    uint32_t percent)
{
    return gpi_plan_has(w, part) && gpi_plan_chance(w, percent);
}

/* Makes the next fact of the set-up.  Returns false behind the last one. */
bool gpi_plan_world_set_up(struct gpi_plan_world *w, struct gpi_fact *f);

#endif
