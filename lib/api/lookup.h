/* SPDX-License-Identifier: MIT */
/* lookup.h - where programs and plugins lie: found, and looked at, when the dispatcher is created.
 */
#ifndef GPI_API_LOOKUP_H
#define GPI_API_LOOKUP_H

#include <stddef.h>

#include "gpudispatch/error.h"

#define GPI_PATH_SIZE 4096

/* The absolute path of a program: a name with a slash from the directory of now, any other from
 * PATH.  0; ENOPROGRAM, ENOTEXEC, ESYSTEM; `field` is the option at fault. */
int gpi_lookup_program(char to[GPI_PATH_SIZE], const char *name, const char *field,
                       struct gpud_error *e);

/* The same of a shared object, which must be a readable ELF file that this machine can load; else
 * EPLUGIN. */
int gpi_lookup_plugin(char to[GPI_PATH_SIZE], const char *name, struct gpud_error *e);

/* The bundled worker program: GPUD_WORKER_PROGRAM, beside the library, or where it was installed.
 */
int gpi_lookup_worker(char to[GPI_PATH_SIZE], struct gpud_error *e);

#endif
