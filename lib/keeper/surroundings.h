/* SPDX-License-Identifier: MIT */
/* surroundings.h - between a keeper's fork and the worker's own code, forked or executed:
 * directory, stdin, stdout and stderr, environment. */
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
    struct gpi_page *page; /* where a failure is told */
    /* what stdout and stderr become, unless the launch says FILE or DISCARD */
    int output, errors;
    uint32_t slot;
    char ours[GPI_OUR_VARIABLES][GPI_UUIDS_SIZE + 32]; /* "NAME=VALUE" */
};

/* In the keeper, before each fork: sets variables, which workers inherit.  Setting them in each
 * child would cost it page faults. */
void gpi_surroundings_prepare(struct gpi_surroundings *s, uint32_t incarnation);

/* In a child of the keeper, which has one thread: all of them, whatever the child has inherited.
 * What cannot be done is told as a failed setup, with its errno, and the process ends. */
void gpi_surroundings_settle(struct gpi_surroundings *s);

#endif
