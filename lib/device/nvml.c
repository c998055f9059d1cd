/* SPDX-License-Identifier: MIT */
/* nvml.c - a stand-in until the provider lands: a machine without a driver. */
#include <stdio.h>
#include <string.h>

#include "device/provider.h"
#include "gpudispatch/device.h"

static void *nvml_open(uint32_t n, const char *script, uint64_t zero, struct gpi_driver *ret_driver)
{
    (void)n, (void)script, (void)zero;
    memset(ret_driver, 0, sizeof *ret_driver);
    ret_driver->state = GPUD_DRIVER_NONE;
    snprintf(ret_driver->text, sizeof ret_driver->text, "libnvidia-ml.so.1 is not there: install the NVIDIA driver");
    return NULL;
}

const struct gpi_provider gpi_provider_nvml = { .open = nvml_open };
