/* SPDX-License-Identifier: MIT */
/* maker.h - all that a keeper makes the workers of its slot from, and the fork of one. */
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
    /* the same memory, mapped for the keeper and for the workers that inherit it */
    struct gpi_page *page, *theirs;
    struct gpi_surroundings surroundings; /* must not move: the environment points into it */
    const struct gpud_definition *definition; /* from here on only where workers are forked */
    const unsigned char *input, *setup;
    unsigned char *result;
};

/* Reads the host's record and maps the memory that workers inherit, once.  Returns false with
 * errno. */
bool gpi_maker_init(struct gpi_maker *m, const struct gpi_keeper_plan *plan);

/* Returns whether workers are executed, not only forked. */
bool gpi_maker_executes(const struct gpi_maker *m);

/* Forks the worker, or the process that becomes the program; then *ret_hello is the pipe for the
 * program's handshake.  Returns the pid, or -1 with errno. */
pid_t gpi_maker_fork(struct gpi_maker *m, uint32_t incarnation, int *ret_hello);

#endif
