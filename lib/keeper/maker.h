/* SPDX-License-Identifier: MIT */
/* maker.h - all that the workers of a slot are made from, and the fork of one. */
#ifndef GPI_KEEPER_MAKER_H
#define GPI_KEEPER_MAKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper/keeper.h"
#include "keeper/surroundings.h"
#include "wire/launch.h"
#include "wire/page.h"

struct gpi_maker {
    const struct gpi_keeper_plan *plan;
    struct gpi_launch launch;
    /* the same memory: the keeper's, and what its workers inherit */
    struct gpi_page *page, *theirs;
    struct gpi_surroundings surroundings; /* at one address: the environment points into them */
    const struct gpud_definition *definition; /* from here on only where workers are forked */
    const unsigned char *input, *setup;
    unsigned char *result;
};

/* Reads the host's record and maps what workers inherit, once.  False with errno. */
bool gpi_maker_init(struct gpi_maker *m, const struct gpi_keeper_plan *plan);

/* Whether workers are executed, not only forked. */
bool gpi_maker_executes(const struct gpi_maker *m);

/* Forks the worker, or the process that becomes the program; of that *ret_hello is the pipe through
 * which it answers.  Its pid, or -1 with errno. */
pid_t gpi_maker_fork(struct gpi_maker *m, uint32_t incarnation, int *ret_hello);

#endif
