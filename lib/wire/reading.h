/* SPDX-License-Identifier: MIT */
/*
 * reading.h - what host and monitor say to each other over their SEQPACKET socket: one record per
 * message, checked as a whole on arrival.
 *
 *   host -> monitor:  OPEN (first: which provider), ENUMERATE, SAMPLE
 *   monitor -> host:  DRIVER, DEVICE..., DRIVER, ENUMERATED (to OPEN and ENUMERATE), SAMPLED (to
 *   SAMPLE),
 *                     LISTENS (once, where there are devices), INCIDENT (both by themselves)
 *
 * The monitor answers in order, one request at a time; the host has at most one SAMPLE of each
 * device under way and keeps its time: no answer is an answer, too.
 *
 * ENUMERATE looks again where there was no device before, be it for the lack of a driver. Where
 * there are some their places stay as they are for the monitor's whole life: for a machine that has
 * changed another monitor is started.
 */
#ifndef GPI_WIRE_READING_H
#define GPI_WIRE_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

#define GPI_SCRIPT_MAX (64u << 10) /* bytes of a script; it travels inside OPEN */

enum gpi_reading_kind {
    /* provider, n; then up to the message's end the script's text, or the PCI addresses of the
     * only GPUs to open */
    GPI_RDG_OPEN = 0x6801,
    GPI_RDG_ENUMERATE,
    GPI_RDG_SAMPLE,        /* device */
    GPI_RDG_DRIVER,        /* u.driver */
    GPI_RDG_DEVICE,        /* device = its place, u.identity */
    GPI_RDG_ENUMERATED,    /* n = how many DEVICE went before */
    GPI_RDG_SAMPLED,       /* device, u.sample */
    GPI_RDG_INCIDENT,      /* u.incident */
    GPI_RDG_LISTENS        /* from now on incidents are heard, as far as any can be */
};

enum gpi_provider_kind { GPI_PROVIDER_NVML = 1, GPI_PROVIDER_FAKE = 2 };

struct gpi_reading_message {
    uint32_t kind;
    uint32_t device;
    uint32_t provider; /* enum gpi_provider_kind */
    uint32_t n;
    uint64_t zero; /* OPEN: the time from which a script counts */
    union {
        struct gpi_driver driver;
        struct gpi_device identity;
        struct gpi_sample sample;
        struct gpi_incident incident;
    } u;
};

/* Bytes of a message of this kind (OPEN: without its script), 0 for no kind. */
size_t gpi_reading_size(uint32_t kind);

/* Where the script in OPEN begins; nothing ends it but the message. */
const char *gpi_reading_script(const struct gpi_reading_message *m);

/* Whether `size` bytes are a message that a host says to a monitor, or a monitor to a host that
 * knows `devices` devices (0 before ENUMERATED). What is said of a device names one that is known;
 * afterwards all texts end inside their fields and are printable, all enums are known, and numbers
 * without a meaning are GPI_UNKNOWN32. A message of a host holds no zero in its script. */
bool gpi_reading_for_monitor(const struct gpi_reading_message *m, size_t size);
bool gpi_reading_of_monitor(struct gpi_reading_message *m, size_t size, uint32_t devices);

#endif
