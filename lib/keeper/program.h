/* SPDX-License-Identifier: MIT */
/* program.h - between a keeper's fork and a program's first instruction: EXEC. */
#ifndef GPI_KEEPER_PROGRAM_H
#define GPI_KEEPER_PROGRAM_H

#include <stddef.h>
#include <sys/types.h>

#include "keeper/surroundings.h"
#include "wire/hello.h"
#include "wire/launch.h"

struct gpi_program {
    const struct gpi_launch *launch;
    int fd;               /* of the program, or -1: launch->program */
    struct gpi_surroundings *surroundings;
    struct gpi_call call; /* all but the pid */
};

/* These files of the keeper, which executes nothing itself, pass the exec of its children. */
void gpi_program_inherit(const int *fds, size_t n);

/* In a child of the keeper: executes the program; does not return.  What fails is said through
 * the pipe `hello`. */
_Noreturn void gpi_program_run(const struct gpi_program *p);

#endif
