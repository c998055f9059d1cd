/* SPDX-License-Identifier: MIT */
/* program.h - EXEC: from a keeper's fork to a program's first instruction. */
#ifndef GPI_KEEPER_PROGRAM_H
#define GPI_KEEPER_PROGRAM_H

#include <sys/types.h>

#include "keeper/surroundings.h"
#include "wire/hello.h"
#include "wire/launch.h"

struct gpi_program {
    const struct gpi_launch *launch;
    int fd;               /* of the program, or -1: execute launch->program */
    struct gpi_surroundings *surroundings;
    struct gpi_call call; /* complete but for the pid */
};

/* Runs in a child of the keeper: executes the program; does not return.  It reports a failure
 * through the pipe `hello`. */
_Noreturn void gpi_program_run(const struct gpi_program *p);

#endif
