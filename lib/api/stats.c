/* SPDX-License-Identifier: MIT */
/* stats.c - walking the counters. */
#include <string.h>

#include "stats/table.h"

int gpud_stats_info(size_t index, struct gpud_stats_info *ret_info)
{
    const struct gpi_counter *c = gpi_counter(index);

    struct gpud_stats_info info;
    uint32_t size;

    if (!ret_info)
        return GPUD_EINVAL;
    if (ret_info->struct_size < offsetof(struct gpud_stats_info, unit))
        return GPUD_ESTRUCT;
    if (!c)
        return GPUD_ENOTFOUND;
    size = ret_info->struct_size < sizeof info ? ret_info->struct_size : (uint32_t)sizeof info;
    info = (struct gpud_stats_info){
        .struct_size = size, .kind = c->kind, .name = c->name, .unit = c->unit, .help = c->help
    };
    memcpy(ret_info, &info, size);
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
