/* SPDX-License-Identifier: MIT */
/* driver.h - what NVML's codes mean, for one device and for the driver as a whole, and the sentence
 * that says what to do. */
#ifndef GPI_DEVICE_DRIVER_H
#define GPI_DEVICE_DRIVER_H

#include "device/device.h"
#include "gpudispatch/device.h"

/* NVML's codes, as far as they differ for us; all others are a failure. */
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

/* What a device's reading is worth that ended with this code. */
enum gpi_reading gpi_reading_of(int code);

/* What the driver's state is when loading it or counting GPUs ended with this code. */
enum gpud_driver gpi_driver_of(int code);

/* What is to be done about this code, in place of a state's text; NULL: nothing is known of it. */
const char *gpi_nvml_advice(int code);

/* What is to be done where there is no driver, or it is not loaded, and this is no common machine:
 * WSL2, Tegra; NULL: it is one.  `root` is put before the paths that are looked at. */
const char *gpi_driver_elsewhere(const char *root);

/* Sets the state, and the text: what is to be done, with `what` (may be NULL: a detail) behind it.
 */
void gpi_driver_say(struct gpi_driver *d, enum gpud_driver state, const char *what);

/* GPUs that could not be opened, and why: their number and NVML's code. */
#define GPI_UNOPENED_NAMED 2u /* as many as the text has room for */
struct gpi_unopened {
    uint32_t n, denied;
    uint32_t number[GPI_UNOPENED_NAMED];
    int code[GPI_UNOPENED_NAMED];
};

/* Counts one, here and in the driver's record, which knows by now how many GPUs there are. */
void gpi_unopened_add(struct gpi_unopened *u, struct gpi_driver *d, uint32_t number, int code);
/* Sets the driver's state and its text, which names the first of them.  Nothing without any. */
void gpi_unopened_say(const struct gpi_unopened *u, struct gpi_driver *d);

#endif
