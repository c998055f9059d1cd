/* SPDX-License-Identifier: MIT */
/* process.h - what gpud_init leaves behind in the host: the one static in lib/. */
#ifndef GPI_API_PROCESS_H
#define GPI_API_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpudispatch/dispatch.h"
#include "os/process.h"

struct gpi_process {
    _Atomic uint32_t *alive; /* a page that reads zero in a forked child; NULL = never initialised */
    struct gpud_definition *definition; /* with their names, in one block */
    uint32_t n_definitions;
    int door;                /* socket to the spawner */
    pid_t spawner;
    int spawner_pidfd;
    struct gpi_credentials credentials;
    _Atomic uint32_t dispatchers; /* alive now */
};

/* The state of this process, or NULL when gpud_init was not called in it (a forked child: not). */
struct gpi_process *gpi_process(void);

/* Whether it was called in a process that this one was forked from. */
bool gpi_process_forked(void);

#endif
