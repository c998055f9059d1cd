/* SPDX-License-Identifier: MIT */
/* check.h - what each exported function asks first: whether this process may use the handle.  [C15]
 */
#ifndef GPI_API_CHECK_H
#define GPI_API_CHECK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpudispatch/error.h"
#include "host/dispatcher.h"

/* Why not.  EINVAL for a NULL handle, which is argument `name`; EFORKED; EREENTER in a worker. */
int gpi_check_refuse(bool given, const char *name, struct gpud_error *e);

/* 0 when `d` belongs to this process. */
static inline int gpi_check(const gpud_dispatcher *d, struct gpud_error *e)
{
    if (d && atomic_load_explicit(d->alive, memory_order_relaxed))
        return 0;
    return gpi_check_refuse(d != NULL, "d", e);
}

/* The same, and EINVAL if `d` is not pooled. */
int gpi_check_pooled(const gpud_dispatcher *d, struct gpud_error *e);

/* EREENTER in a worker, else 0: for what makes a host of a process. */
int gpi_check_place(struct gpud_error *e);

#endif
