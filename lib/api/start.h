/* SPDX-License-Identifier: MIT */
/* start.h - how the workers of a new dispatcher are to be started: options start, argv, plugin. */
#ifndef GPI_API_START_H
#define GPI_API_START_H

#include <stdbool.h>

#include "api/lookup.h"
#include "api/process.h"
#include "gpudispatch/dispatch.h"
#include "wire/launch.h"

struct gpi_start {
    struct gpi_launch launch;
    int program_fd;      /* borrowed from the process, or -1 */
    bool own_spawner;    /* the one of gpud_init cannot serve, or there is none */
    uint32_t definition; /* index given to gpud_init, when forked */
    const char *name;    /* of the definition; "" = the only one of that program */
    char program[GPI_PATH_SIZE], plugin[GPI_PATH_SIZE];
    const char *argv[3]; /* of the bundled worker program */
    uint32_t remark_level; /* of a line for the log; 0 = there is none */
    char remark[200];
};

/* Whether this process may have dispatchers.  `p` is NULL when gpud_init was not called.
 * An error has this field.  Returns 0, GPUD_EFORKED or GPUD_EPROTOCOL. */
int gpi_start_allowed(const struct gpi_process *p, const char *field, struct gpud_error *e);
/* Whether the spawner of gpud_init cannot serve a dispatcher that is created now. */
bool gpi_start_needs_own(const struct gpi_process *p);

/* Decides.  `p` is NULL when gpud_init was not called.  0, or a code with field and value. */
int gpi_start_choose(struct gpi_start *ret, const struct gpud_options *o,
                     const struct gpi_process *p, struct gpud_error *e);

#endif
