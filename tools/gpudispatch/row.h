/* SPDX-License-Identifier: MIT */
/* row.h - what is worth saying of a device besides its health: heat, memory errors, remaps. */
#ifndef ROW_H
#define ROW_H

#include <stdbool.h>
#include <stddef.h>

#include <gpudispatch/gpudispatch.h>

enum fact { FACT_HEAT, FACT_ERRORS, FACT_REMAP_PENDING, FACT_REMAP_FAILED, FACT_COUNT };

/* Whether this is so; in `text` the words for it. */
bool row_fact(const struct gpud_device_info *r, enum fact which, char *text, size_t size);

bool row_is_out(const struct gpud_device_info *r); /* it takes no tasks: lost, or quarantined */

#endif
