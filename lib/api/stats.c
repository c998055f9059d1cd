/* SPDX-License-Identifier: MIT */
/* stats.c - walking the counters. */
#include <string.h>

#include "stats/table.h"

int gpud_stats_info(size_t index, struct gpud_stats_info *ret_info)
{
    const struct gpi_counter *c = gpi_counter(index);

    if (!ret_info)
        return GPUD_EINVAL;
    if (!c)
        return GPUD_ENOTFOUND;
    *ret_info = (struct gpud_stats_info){
        .struct_size = (uint32_t)sizeof *ret_info, .kind = c->kind, .name = c->name, .unit = c->unit, .help = c->help,
    };
    return 0;
}

uint64_t gpud_stats_value(const struct gpud_stats *stats, size_t index)
{
    const struct gpi_counter *c = gpi_counter(index);
    uint64_t v;

    if (!stats || !c || c->offset + sizeof v > stats->struct_size)
        return 0;
    memcpy(&v, (const char *)stats + c->offset, sizeof v);
    return v;
}
