/* SPDX-License-Identifier: MIT */
/*
 * xid.h - what an XID, the number of a fault that the driver reports, means for us.
 *
 * The built-in table follows NVIDIA's catalog (its "immediate action"), which is newer than the
 * lists that common health checks have: 63, 92 and 94 do not make a GPU unhealthy, and 109 asks for
 * a reset. The driver's own recovery action goes before all of it: see health.h.
 */
#ifndef GPI_DEVICE_XID_H
#define GPI_DEVICE_XID_H

#include <stdint.h>

#include "gpudispatch/error.h"

enum gpi_xid_class {
    GPI_XID_IGNORE,  /* counted */
    GPI_XID_RESTART, /* what runs there is replaced; the device is fine with a canary */
    /* the device takes nothing until it was reset, or canaries show that it needs none */
    GPI_XID_RESET,
    GPI_XID_LOST,    /* it is gone from the bus */
    GPI_XID_UNKNOWN, /* not in the table: counted, and the device is SUSPECT */
    /* a program's own fault: that worker sees it as a CUDA error, charged to its task, and is
     * replaced; others go on */
    GPI_XID_TASK,
    GPI_XID_CLASSES
};

#define GPI_XID_RULES_MAX 32u
#define GPI_XID_MOST 999u /* 999: the driver does not say which */

/* What the user says otherwise. */
struct gpi_xid_rules {
    uint32_t n;
    struct { uint32_t xid, class; } rule[GPI_XID_RULES_MAX];
};

/* Reads "79=reset,43=ignore,13=restart" (the words: ignore, restart, reset, lost, suspect for
 * UNKNOWN, task); NULL or "" = none. 0, or GPUD_EINVAL, field "xid_rules", that names entry and
 * position; *ret is unchanged then. */
int gpi_xid_rules_read(struct gpi_xid_rules *ret, const char *text, struct gpud_error *e);

/* rules: NULL = none */
enum gpi_xid_class gpi_xid_class(const struct gpi_xid_rules *rules, uint64_t xid);

/* What it is, in a few words, or "". */
const char *gpi_xid_text(uint64_t xid);

#endif
