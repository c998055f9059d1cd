/* SPDX-License-Identifier: MIT */
/* definitions.h - reading what the user registers. */
#ifndef GPI_API_DEFINITIONS_H
#define GPI_API_DEFINITIONS_H

#include <stddef.h>
#include <stdint.h>

#include "gpudispatch/error.h"
#include "gpudispatch/worker.h"

/* Checks an array, whose records may be those of an older header, and copies it and the names into
 * one block, ended with free.  0, or a code with the place and the name of what is wrong. */
int gpi_definitions_copy(struct gpud_definition **ret, const struct gpud_definition *from, size_t n,
                         struct gpud_error *e);

#endif
