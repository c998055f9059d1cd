/* SPDX-License-Identifier: MIT */
/* surroundings.h - the options env, cwd, stdio and stdio_path, checked. */
#ifndef GPI_API_SURROUNDINGS_H
#define GPI_API_SURROUNDINGS_H

#include "gpudispatch/dispatch.h"
#include "wire/launch.h"

/* Fills what the launch says about them; it borrows the strings.  0 or GPUD_EINVAL. */
int gpi_surroundings_read(struct gpi_launch *l, const struct gpud_options *o, struct gpud_error *e);

/* For a dispatcher with GPUs or fakes. 0, or GPUD_EINVAL when env names what their workers are told
 * by us. */
int gpi_surroundings_on_gpus(const char *const *env, struct gpud_error *e);

#endif
