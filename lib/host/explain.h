/* SPDX-License-Identifier: MIT */
/* explain.h - why a task does not start, and whether a submit would accept it. */
#ifndef GPI_HOST_EXPLAIN_H
#define GPI_HOST_EXPLAIN_H

#include <stddef.h>
#include <stdint.h>

#include "gpudispatch/dispatch.h"

struct gpud_reason;

/* Rows of the caller, `stride` bytes apart; and how many reasons there are. */
struct gpi_reason_rows {
    struct gpud_reason *rows;
    size_t n, count;
    uint32_t stride;
};

/* Pooled.  `id` is a task that has not ended; or `desc` is one that is not submitted, and was read.
 * Returns 0, or a code: GPUD_ENOTFOUND, GPUD_ENOMEM, or as a submit. */
int gpi_explain(gpud_dispatcher *d, uint64_t id, const struct gpud_task_desc *desc,
                struct gpi_reason_rows *ret, struct gpud_error *e);
/* Makes the checks of a submit.  `desc` was read.  Takes nothing. */
int gpi_task_check(gpud_dispatcher *d, const struct gpud_task_desc *desc, struct gpud_error *e);

#endif
