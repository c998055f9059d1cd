/* SPDX-License-Identifier: MIT */
/*
 * plan.h - the state that crosses a fork: from gpud_init to the spawner, from the spawner to a
 * keeper, from a keeper to its workers.
 */
#ifndef GPI_WIRE_PLAN_H
#define GPI_WIRE_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpudispatch/worker.h"
#include "wire/page.h"

/* The state that a worker inherits. */
struct gpi_worker_plan {
    const struct gpud_definition *definition;
    struct gpi_page *page;
    const unsigned char *input; /* mapped read-only */
    const unsigned char *setup; /* the same, for setup data: often the input arena */
    unsigned char *result;
    int orders, looks;          /* fds */
    uint32_t incarnation;
    pid_t keeper;
    bool executed; /* not forked: worker/birth.c */
};

/* Becomes the worker; does not return. */
typedef void(gpi_worker_fn)(const struct gpi_worker_plan *plan);

/* Runs in the keeper, before it forks the first worker. */
typedef void(gpi_worker_prepare_fn)(struct gpi_page *page);

/* Becomes the monitor that replies at `socket`; does not return. */
typedef void(gpi_monitor_fn)(int socket);

/* The state that the spawner inherits. */
struct gpi_spawner_plan {
    const struct gpud_definition *definitions;
    uint32_t n_definitions;
    gpi_worker_prepare_fn *prepare;
    gpi_worker_fn *worker;
    gpi_monitor_fn *monitor;
    int door;  /* the spawner's end of the socket of gpud_init */
    pid_t host;
    int host_fd; /* pidfd of the host, or -1: the spawner opens one */
};

#endif
