/* SPDX-License-Identifier: MIT */
/*
 * provider.h - where devices are read from: NVML, or a script. Runs in the monitor process only;
 * any call may hang for ever, and then only the monitor hangs.
 *
 * One thread calls open, then enumerate until it has found some, and sample from then on; a second
 * one of its own calls listen and then await, once enumerate is called no more; await blocks until
 * something happens. What befalls a GPU is told once: kin.h says which of its instances that
 * concerns. There is no close: the process ends.
 */
#ifndef GPI_DEVICE_PROVIDER_H
#define GPI_DEVICE_PROVIDER_H

#include "device/device.h"

struct gpi_provider {
    /* Loads and asks what there is.  For fakes: how many, the text of a script, checked before, and
     * the time of CLOCK_MONOTONIC from which it counts.  For NVML: 0, the PCI addresses of the only
     * GPUs that are ever opened, with blanks between them (NULL or empty: all), 0.  Fills
     * *ret_driver always.
     * Returns the state for the other calls, NULL when driver state is not OK. */
    void *(*open)(uint32_t n, const char *script, uint64_t zero, struct gpi_driver *ret_driver);
    /* Fills rows[0..max) in NVML's order, the instances of a MIG GPU behind it.  Returns how many.
     * A GPU that cannot be opened is left out and counted in ret_driver->unreadable. */
    uint32_t (*enumerate)(void *state, struct gpi_device *rows, uint32_t max,
                          struct gpi_driver *ret_driver);
    /* Reads device number i of the enumeration. */
    void (*sample)(void *state, uint32_t i, struct gpi_sample *ret);
    /* What happens from its return on is heard, as far as anything can be.  NULL: from open on. */
    void (*listen)(void *state);
    /* Blocks until something happens. False: nothing will ever be heard (DEAF is given once
     * before). */
    bool (*await)(void *state, struct gpi_incident *ret);
};

extern const struct gpi_provider gpi_provider_nvml, gpi_provider_fake;

#endif
