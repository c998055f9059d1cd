/* SPDX-License-Identifier: MIT */
/* driver.h - the meaning of NVML's codes, for one device and for the driver as a whole, and the
 * sentence with the remedy. */
#ifndef GPI_DEVICE_DRIVER_H
#define GPI_DEVICE_DRIVER_H

#include "device/device.h"
#include "gpudispatch/device.h"

/* The codes of NVML that the library distinguishes; all other codes are failures. */
enum gpi_nvml_code {
    GPI_NVML_OK = 0,
    GPI_NVML_NOT_SUPPORTED = 3,
    GPI_NVML_NO_PERMISSION = 4,
    GPI_NVML_INSUFFICIENT_SIZE = 7,
    GPI_NVML_INSUFFICIENT_POWER = 8,
    GPI_NVML_DRIVER_NOT_LOADED = 9,
    GPI_NVML_TIMEOUT = 10,
    GPI_NVML_IRQ_ISSUE = 11,
    GPI_NVML_LIBRARY_NOT_FOUND = 12,
    GPI_NVML_FUNCTION_NOT_FOUND = 13,
    GPI_NVML_GPU_IS_LOST = 15,
    GPI_NVML_RESET_REQUIRED = 16,
    GPI_NVML_OPERATING_SYSTEM = 17,
    GPI_NVML_VERSION_MISMATCH = 18,
    GPI_NVML_ARGUMENT_VERSION_MISMATCH = 25,
    GPI_NVML_NOT_READY = 27,
    GPI_NVML_GPU_NOT_FOUND = 28,
    GPI_NVML_UNKNOWN = 999
};

/* Returns the verdict on a reading that ended with this code. */
enum gpi_reading gpi_reading_of(int code);

/* Returns the driver's state if loading it, or counting GPUs, ended with this code. */
enum gpud_driver gpi_driver_of(int code);

/* Returns the remedy for this code, in place of a state's text; NULL: none is known. */
const char *gpi_nvml_advice(int code);

/* Returns the remedy where there is no driver, or it is not loaded, and this is no common machine:
 * WSL2, Tegra; NULL: it is one.  All paths that it checks are below `root`. */
const char *gpi_driver_elsewhere(const char *root);

/* Sets the state and its text: the remedy, then a detail (may be NULL). */
void gpi_driver_say(struct gpi_driver *d, enum gpud_driver state, const char *what);

/* The GPUs that could not be opened: their number and NVML's code. */
#define GPI_UNOPENED_NAMED 2u /* as many as the text has room for */
struct gpi_unopened {
    uint32_t n, denied;
    uint32_t number[GPI_UNOPENED_NAMED];
    int code[GPI_UNOPENED_NAMED];
};

/* Counts one, here and in the driver's record, which must have the number of GPUs already. */
void gpi_unopened_add(struct gpi_unopened *u, struct gpi_driver *d, uint32_t number, int code);
/* Sets the driver's state and its text, which names the first of them.  Without any, does
 * nothing. */
void gpi_unopened_say(const struct gpi_unopened *u, struct gpi_driver *d);

#endif
