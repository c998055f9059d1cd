/* SPDX-License-Identifier: MIT */
/* use.h - whether processes use a device, and which: entries "free" of option devices.     [R4] */
#ifndef GPI_DEVICE_USE_H
#define GPI_DEVICE_USE_H

#include <stdbool.h>
#include <stddef.h>

#include "device/device.h"

/* The most that processes may have of a device that counts as free. */
struct gpi_quiet {
    uint64_t memory; /* bytes */
    uint32_t load;   /* 1/10000; 0: any */
};

/* Returns true if the device has been read, and is free. */
bool gpi_sample_is_free(const struct gpi_sample *x, const struct gpi_quiet *most);

/* Writes the use of a device that is not free: "12000 MiB (pid 4711)", "use 70 %", "no reading".
 * Returns `to`. */
const char *gpi_sample_use(const struct gpi_sample *x, const struct gpi_quiet *most, char *to,
                           size_t size);

#endif
