/* SPDX-License-Identifier: MIT */
/* table.h - the counters, walkable: where each lies in struct gpud_stats, and what it means. */
#ifndef GPI_STATS_TABLE_H
#define GPI_STATS_TABLE_H

#include "gpudispatch/stats.h"

struct gpi_counter {
    const char *name, *unit, *help;
    uint32_t kind;
    uint32_t offset;
};

/* NULL past the last. */
const struct gpi_counter *gpi_counter(size_t index);

#endif
