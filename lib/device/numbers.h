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

/* Where the driver lists its GPUs: a folder for each, named by its PCI address.  An object of its
 * own, which a test program that links the static library can replace (tests/directory.c). */
extern const char *const gpi_numbers_directory;

/* The number of the GPU of row `place`, which may be a GPU in MIG mode, but no instance. */
uint32_t gpi_number_of(const struct gpi_device *row, uint32_t n, uint32_t place);

/* Whether no sign speaks for another count of CUDA: NVML's index of this GPU is its number, and so
 * is its place by PCI address among those that `directory` lists.  What lies behind it does not
 * matter.  Reads names alone, so the driver itself is not asked, and cannot hang this call. */
bool gpi_number_is_certain(const struct gpi_device *gpu, uint32_t number, const char *directory);

#endif
