/* SPDX-License-Identifier: MIT */
/* script.h - "script=FILE" of fake devices: read in the host, where its faults can be told. */
#ifndef GPI_API_SCRIPT_H
#define GPI_API_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "gpudispatch/error.h"

/* Reads and checks the script in the file whose name is `name` of `length` bytes, for so many
 * fakes. *ret is a text of its own, to be freed. 0; EDEVICE (no regular file, unreadable, too long,
 * or what is wrong in it, with line and column), ENOMEM. */
int gpi_script_load(char **ret, const char *name, size_t length, uint32_t devices,
                    struct gpud_error *e);

#endif
