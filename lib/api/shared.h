/* SPDX-License-Identifier: MIT */
/* shared.h - the host's side of memory that workers map for their setup. */
#ifndef GPI_API_SHARED_H
#define GPI_API_SHARED_H

#include <sys/types.h>

#include "gpudispatch/shared.h"

struct gpud_shared {
    void *data;
    uint64_t size;
    pid_t owner; /* who made it: forked children have no mapping of it */
    int fd;      /* read-only, and nobody else can write there either: sealed */
};

/* Whether this process made it. */
int gpi_shared_ours(const gpud_shared *s);

#endif
