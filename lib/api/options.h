/* SPDX-License-Identifier: MIT */
/* options.h - from struct gpud_options to settings with every default filled in.  The options of a
 * pooled dispatcher and of its classes are in two records: option_kinds.h. */
#ifndef GPI_API_OPTIONS_H
#define GPI_API_OPTIONS_H

#include <stdbool.h>

#include "gpudispatch/dispatch.h"
#include "host/settings.h"

/* Checks and completes.  0, or a code with *reterr telling field and value. */
int gpi_options_read(struct gpi_settings *ret, const struct gpud_options *o,
                     struct gpud_error *reterr);

/* The same for a class of a pooled dispatcher: ret->class is of use.  An option of the dispatcher
 * must be zero. */
int gpi_options_read_class(struct gpi_settings *ret, const struct gpud_options *o,
                           struct gpud_error *reterr);

/* The same for a class without workers: an option about these must be zero. */
int gpi_options_read_external(struct gpi_settings *ret, const struct gpud_options *o,
                              struct gpud_error *reterr);

/* Refuses a time that was meant in another unit, and one that is a negative number.  `record` is
 * "class." or "".  `waits`: it may be GPUD_AT_ONCE.  Returns 0 or GPUD_EINVAL. */
int gpi_options_time(const char *record, const char *field, uint64_t time, bool waits,
                     struct gpud_error *reterr);

/* Pooled: fills in the defaults that follow from the machine and from the number of devices. */
void gpi_options_pool(struct gpi_pool_set *set, uint32_t n_devices);

/* Shares the payload budget out once the number of slots is known. */
int gpi_options_share(struct gpi_pool_set *set, uint32_t n_slots, struct gpud_error *reterr);

#endif
