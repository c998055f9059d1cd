/* SPDX-License-Identifier: MIT */
/* surroundings.h - between a keeper's fork and the worker's own code, forked or executed: directory,
 * stdin, stdout and stderr, environment. */
#ifndef GPI_KEEPER_SURROUNDINGS_H
#define GPI_KEEPER_SURROUNDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/launch.h"
#include "wire/page.h"

struct gpi_surroundings {
    const struct gpi_launch *launch;
    struct gpi_page *page; /* where a failure is told */
    int output, errors;    /* what stdout and stderr become, unless the launch says FILE or DISCARD */
    uint32_t slot;
    bool env_ready, stdio_ready; /* what all lives share has been set */
    char life[32];               /* in the environment */
};

/* In the keeper, before each fork: environment and stdio, as far as workers inherit them.  0, or -1
 * with errno. */
int gpi_surroundings_prepare(struct gpi_surroundings *s, uint32_t incarnation);

/* The rest, in a child of the keeper, which has one thread.  What cannot be done is told as a
 * failed setup, with its errno, and the process ends. */
void gpi_surroundings_settle(const struct gpi_surroundings *s);

#endif
