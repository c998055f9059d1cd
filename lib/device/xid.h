/* SPDX-License-Identifier: MIT */
/*
 * xid.h - the consequence of an XID, the number of a fault that the driver reports.
 *
 * The built-in table follows NVIDIA's catalog (its "immediate action"), which is newer than the
 * lists of common health checks.  So 63, 92 and 94 do not make a GPU unhealthy, and 109 requires a
 * reset.  The driver's own recovery action overrides all of it: see health.h.
 */
#ifndef GPI_DEVICE_XID_H
#define GPI_DEVICE_XID_H

#include <stdint.h>

#include "gpudispatch/error.h"

enum gpi_xid_class {
    GPI_XID_IGNORE,  /* only counted */
    GPI_XID_RESTART, /* its workers are replaced; the device is fine with a canary */
    /* the device takes no task until it was reset, or canaries show that it needs no reset */
    GPI_XID_RESET,
    GPI_XID_LOST,    /* it is gone from the bus */
    GPI_XID_UNKNOWN, /* not in the table: counted, and the device is SUSPECT */
    /* a program's own fault: its worker gets a CUDA error, which is charged to its task, and is
     * replaced; other workers continue */
    GPI_XID_TASK,
    GPI_XID_CLASSES
};

#define GPI_XID_RULES_MAX 32u
#define GPI_XID_MOST 999u /* 999: the driver does not report which */

/* The user's rules, which override the table. */
struct gpi_xid_rules {
    uint32_t n;
    struct { uint32_t xid, class; } rule[GPI_XID_RULES_MAX];
};

/* Reads "79=reset,43=ignore,13=restart" (the words: ignore, restart, reset, lost, suspect for
 * UNKNOWN, task); NULL or "" = none.  Returns 0, or GPUD_EINVAL, field "xid_rules", that names
 * entry and position; *ret is unchanged then. */
int gpi_xid_rules_read(struct gpi_xid_rules *ret, const char *text, struct gpud_error *e);

/* rules: NULL = none */
enum gpi_xid_class gpi_xid_class(const struct gpi_xid_rules *rules, uint64_t xid);

/* Returns a few words on the fault, or "". */
const char *gpi_xid_text(uint64_t xid);

#endif
