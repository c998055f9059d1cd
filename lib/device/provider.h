/* SPDX-License-Identifier: MIT */
/*
 * provider.h - the source of readings: NVML, or a script.  It runs only in the monitor process: any
 * call may hang indefinitely, and then only the monitor hangs.
 *
 * One thread calls open, then enumerate until that has found devices, and sample from then on.
 * After the last enumerate a second thread calls listen and then await, which blocks until an
 * incident.  The provider reports an incident of a GPU once; kin.h decides which of its instances
 * it concerns.  There is no close: the process ends.
 */
#ifndef GPI_DEVICE_PROVIDER_H
#define GPI_DEVICE_PROVIDER_H

#include "device/device.h"

struct gpi_provider {
    /* Loads the driver and reads its state.  For fakes: their number, the text of a script that was
     * checked before, and its start in CLOCK_MONOTONIC.  For NVML: 0, the PCI addresses of the only
     * GPUs to open, with blanks between them (NULL or empty: all), 0.  Always fills *ret_driver.
     * Returns the state for the other calls, or NULL when the driver's state is not OK. */
    void *(*open)(uint32_t n, const char *script, uint64_t zero, struct gpi_driver *ret_driver);
    /* Fills rows[0..max) in NVML's order, the instances of a MIG GPU behind it, and returns their
     * number.  Leaves out a GPU that cannot be opened, and counts it in ret_driver->unreadable. */
    uint32_t (*enumerate)(void *state, struct gpi_device *rows, uint32_t max,
                          struct gpi_driver *ret_driver);
    /* Reads device number i of the enumeration. */
    void (*sample)(void *state, uint32_t i, struct gpi_sample *ret);
    /* From its return on incidents arrive, of the kinds that the driver has.  NULL: from open
     * on. */
    void (*listen)(void *state);
    /* Blocks until an incident.  Returns false if none will ever arrive (after one
     * GPI_INCIDENT_DEAF). */
    bool (*await)(void *state, struct gpi_incident *ret);
};

extern const struct gpi_provider gpi_provider_nvml, gpi_provider_fake;

#endif
