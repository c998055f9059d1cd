/* SPDX-License-Identifier: MIT */
/*
 * numbers.h - a GPU's number: its place by PCI address among the GPUs that a process can open.
 * CUDA counts like this with CUDA_DEVICE_ORDER=PCI_BUS_ID.  NVML's index is the same in most cases,
 * but it counts GPUs that cannot be opened, too, and NVML promises no order.
 */
#ifndef GPI_DEVICE_NUMBERS_H
#define GPI_DEVICE_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

/* The folder where the driver lists its GPUs: a folder for each, named by its PCI address.  An
 * object of its own, so that a test program with the static library can replace it
 * (tests/directory.c). */
extern const char *const gpi_numbers_directory;

/* Returns the number of the GPU of row `place`, which may be a GPU in MIG mode, but no instance. */
uint32_t gpi_number_of(const struct gpi_device *row, uint32_t n, uint32_t place);

/* Returns whether no sign suggests another count of CUDA.  NVML's index of this GPU must be its
 * number, and so must its place by PCI address among those in `directory`.  GPUs behind it do not
 * matter.  Reads only names, so a hung driver cannot hang this call. */
bool gpi_number_is_certain(const struct gpi_device *gpu, uint32_t number, const char *directory);

#endif
