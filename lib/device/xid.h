/* SPDX-License-Identifier: MIT */
/* xid.h - what an XID, the number of a fault that the driver reports, means for us. */
#ifndef GPI_DEVICE_XID_H
#define GPI_DEVICE_XID_H

#include <stdint.h>

#include "gpudispatch/error.h"

enum gpi_xid_class {
    GPI_XID_IGNORE,  /* counted */
    GPI_XID_RESTART, /* the worker is replaced; the device is fine with a canary */
    GPI_XID_RESET,   /* the device takes nothing until it was reset */
    GPI_XID_LOST,    /* it is gone from the bus */
    GPI_XID_UNKNOWN  /* not in the table: counted, and the device is SUSPECT */
};

#define GPI_XID_RULES_MAX 32u

/* What the user says otherwise. */
struct gpi_xid_rules {
    uint32_t n;
    struct { uint32_t xid, class; } rule[GPI_XID_RULES_MAX];
};

/* Reads "79=reset,43=ignore,13=restart"; NULL or "" = none.  0, or GPUD_EINVAL that names entry and position. */
int gpi_xid_rules_read(struct gpi_xid_rules *ret, const char *text, struct gpud_error *e);

enum gpi_xid_class gpi_xid_class(const struct gpi_xid_rules *rules, uint64_t xid);

/* What the catalog calls it, or "". */
const char *gpi_xid_text(uint64_t xid);

#endif
