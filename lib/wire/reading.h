/* SPDX-License-Identifier: MIT */
/*
 * reading.h - the messages between host and monitor on their SEQPACKET socket: one record each,
 * which the receiver checks as a whole.
 *
 *   host -> monitor:  OPEN (first: which provider), ENUMERATE, SAMPLE
 *   monitor -> host:  DRIVER, DEVICE..., DRIVER, ENUMERATED (to OPEN and ENUMERATE), SAMPLED (to
 *                     SAMPLE); unrequested: LISTENS (once, where there are devices), INCIDENT
 *
 * The monitor replies in order, one request at a time.  The host has at most one SAMPLE of each
 * device under way and keeps its time: a missing reply is a reading, too.
 *
 * ENUMERATE searches again where there was no device before, be it for the lack of a driver.  Once
 * there are devices, their places stay for the monitor's whole life: for a machine that has changed
 * the host starts another monitor.
 */
#ifndef GPI_WIRE_READING_H
#define GPI_WIRE_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

#define GPI_SCRIPT_MAX (64u << 10) /* bytes of a script, which OPEN carries */

enum gpi_reading_kind {
    /* provider, n; then, up to the message's end, the script's text, or the PCI addresses of the
     * only GPUs to open */
    GPI_RDG_OPEN = 0x6801,
    GPI_RDG_ENUMERATE,
    GPI_RDG_SAMPLE,        /* device */
    GPI_RDG_DRIVER,        /* u.driver */
    GPI_RDG_DEVICE,        /* device = its place, u.identity */
    GPI_RDG_ENUMERATED,    /* n = number of DEVICE messages before */
    GPI_RDG_SAMPLED,       /* device, u.sample */
    GPI_RDG_INCIDENT,      /* u.incident */
    GPI_RDG_LISTENS /* from now on the monitor receives incidents, of the kinds the driver has */
};

enum gpi_provider_kind { GPI_PROVIDER_NVML = 1, GPI_PROVIDER_FAKE = 2 };

struct gpi_reading_message {
    uint32_t kind;
    uint32_t device;
    uint32_t provider; /* enum gpi_provider_kind */
    uint32_t n;
    uint64_t zero; /* OPEN: the time 0 of a script */
    union {
        struct gpi_driver driver;
        struct gpi_device identity;
        struct gpi_sample sample;
        struct gpi_incident incident;
    } u;
};

/* Bytes of a message of this kind (OPEN: without its script), 0 for no kind. */
size_t gpi_reading_size(uint32_t kind);

/* The beginning of the script in OPEN; only the message's size ends it. */
const char *gpi_reading_script(const struct gpi_reading_message *m);

/* Return whether `size` bytes are a message from a host to a monitor, or from a monitor to a host
 * that knows `devices` devices (0 before ENUMERATED).  A message about a device names a known one.
 * Afterwards all texts end inside their fields and are printable, all enums are known, and numbers
 * without a meaning are GPI_UNKNOWN32.  A message of a host holds no zero in its script. */
bool gpi_reading_for_monitor(const struct gpi_reading_message *m, size_t size);
bool gpi_reading_of_monitor(struct gpi_reading_message *m, size_t size, uint32_t devices);

#endif
