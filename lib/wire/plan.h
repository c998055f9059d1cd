/* SPDX-License-Identifier: MIT */
/*
 * plan.h - the heritage: all that passes over a fork, from gpud_init to the spawner, from
 * the spawner to a keeper, from a keeper to its workers.
 */
#ifndef GPI_WIRE_PLAN_H
#define GPI_WIRE_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpudispatch/worker.h"
#include "wire/page.h"

/* What a worker is born with. */
struct gpi_worker_plan {
    const struct gpud_definition *definition;
    struct gpi_page *page;
    const unsigned char *input; /* mapped read-only */
    const unsigned char *setup; /* the same, for setup data: often the input arena */
    unsigned char *result;
    int orders, looks;          /* fds */
    uint32_t incarnation;
    pid_t keeper;
    bool executed; /* not forked: birth.c */
};

/* Becomes the worker; does not return. */
typedef void(gpi_worker_fn)(const struct gpi_worker_plan *plan);

/* Before the first of the workers that are forked from the caller. */
typedef void(gpi_worker_prepare_fn)(struct gpi_page *page);

/* Becomes the monitor that answers at `socket`; does not return. */
typedef void(gpi_monitor_fn)(int socket);

/* What the spawner is born with. */
struct gpi_spawner_plan {
    const struct gpud_definition *definitions;
    uint32_t n_definitions;
    gpi_worker_prepare_fn *prepare;
    gpi_worker_fn *worker;
    gpi_monitor_fn *monitor;
    int door;  /* its end of the socket of gpud_init */
    pid_t host;
    int host_fd; /* pidfd of the host, or -1: to be opened */
};

#endif
