/* SPDX-License-Identifier: MIT */
#include "stats/table.h"

static const struct gpi_counter table[] = {
#define X(field, unit_, kind_, help_) \
    { .name = #field, .unit = unit_, .help = help_, .kind = GPUD_STATS_##kind_, .offset = offsetof(struct gpud_stats, field) },
    GPUD_STATS_MAP(X)
#undef X
};

const struct gpi_counter *gpi_counter(size_t index)
{
    return index < sizeof table / sizeof *table ? &table[index] : NULL;
}
