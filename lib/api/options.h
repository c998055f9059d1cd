/* SPDX-License-Identifier: MIT */
/* options.h - from struct gpud_options to settings with every default filled in. */
#ifndef GPI_API_OPTIONS_H
#define GPI_API_OPTIONS_H

#include "gpudispatch/dispatch.h"
#include "host/settings.h"

/* Checks and completes.  0, or a code with *reterr telling field and value. */
int gpi_options_read(struct gpi_settings *ret, const struct gpud_options *o,
                     struct gpud_error *reterr);

/* Shares the payload budget out once the number of slots is known. */
int gpi_options_share(struct gpi_pool_set *set, uint32_t n_slots, struct gpud_error *reterr);

#endif
