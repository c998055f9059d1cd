/* SPDX-License-Identifier: MIT */
/*
 * maker.h - all that a keeper makes the workers of its slot from, and the fork of one.
 *
 * The slot's memory and pipes are there from the keeper's beginning.  The definition and the way in
 * which workers start are those of a class: gpi_maker_class replaces them.
 */
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
    /* the same memory, mapped for the keeper and for the workers that inherit it */
    struct gpi_page *page, *theirs;
    const unsigned char *input; /* NULL until a class forks its workers */
    unsigned char *result;
    struct gpi_surroundings surroundings; /* must not move: the environment points into it */
    /* of the class */
    struct gpi_launch launch;
    int setup_fd, program_fd; /* program_fd: or -1 */
    const struct gpud_definition *definition; /* from here on only where workers are forked */
    const unsigned char *setup;
    uint64_t setup_size;      /* of a mapping of its own; 0: the setup data are in `input` */
};

/* Maps the page.  Returns false with errno. */
bool gpi_maker_init(struct gpi_maker *m, const struct gpi_keeper_plan *plan);

/* The next workers are of the class that comes with these fds (GPI_CLASS_...), which the maker
 * takes.  Reads its launch record, and maps the memory that workers inherit.  The slot has no
 * worker.  Returns false with errno: then no worker can be made. */
bool gpi_maker_class(struct gpi_maker *m, const int *fds, size_t n);

/* Forks the worker, or the process that becomes the program; then *ret_hello is the pipe for the
 * program's handshake.  Returns the pid, or -1 with errno. */
pid_t gpi_maker_fork(struct gpi_maker *m, uint32_t incarnation, int *ret_hello);

#endif
