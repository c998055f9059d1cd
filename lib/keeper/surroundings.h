/* SPDX-License-Identifier: MIT */
/* surroundings.h - from a keeper's fork to the worker's own code, forked or executed: directory,
 * stdin, stdout and stderr, environment. */
#ifndef GPI_KEEPER_SURROUNDINGS_H
#define GPI_KEEPER_SURROUNDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/launch.h"
#include "wire/page.h"

#define GPI_OUR_VARIABLES 4u
#define GPI_UUIDS_SIZE (GPI_DEVICES * GPI_DEVICE_UUID_SIZE)

struct gpi_surroundings {
    const struct gpi_launch *launch;
    struct gpi_page *page; /* here a failure is recorded */
    /* the new stdout and stderr, unless the launch record has FILE or DISCARD */
    int output, errors;
    bool owns_files;          /* these are the class's, and not the slot's */
    uint32_t slot;
    char **first, **reset;    /* the keeper's first environment, and the last copy of it */
    char ours[GPI_OUR_VARIABLES][GPI_UUIDS_SIZE + 32]; /* "NAME=VALUE" */
};

/* Keeps a copy of the environment.  Returns false with errno. */
bool gpi_surroundings_init(struct gpi_surroundings *s, const struct gpi_launch *launch,
                           uint32_t slot);

/* The environment is the keeper's first one again: the variables of a class are gone.  Returns
 * false with errno. */
bool gpi_surroundings_reset(struct gpi_surroundings *s);

/* Runs in the keeper, before each fork: sets variables, which workers inherit.  Setting them in
 * each child would cost it page faults. */
void gpi_surroundings_prepare(struct gpi_surroundings *s, uint32_t incarnation);

/* Runs in a child of the keeper, which has one thread: sets all of them, no matter which ones
 * the child has inherited.  It records a failure as a failed setup, with errno, and ends the
 * process. */
void gpi_surroundings_settle(struct gpi_surroundings *s);

#endif
