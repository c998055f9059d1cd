/* SPDX-License-Identifier: MIT */
/*
 * visible.h - the devices that the host's CUDA_VISIBLE_DEVICES allows, by CUDA's rules.  Unset
 * allows all; an empty or a negative entry ends the list.  Numbers count GPUs in the order of PCI
 * addresses; "GPU-..." and "MIG-..." are UUIDs or beginnings of one that fit one device.  Blanks
 * around an entry are skipped.
 *
 * It is stricter than CUDA, which ends the list there in silence: an entry that fits no device, or
 * one that an earlier entry has, is an error.
 */
#ifndef GPI_DEVICE_VISIBLE_H
#define GPI_DEVICE_VISIBLE_H

#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include "gpudispatch/error.h"

struct gpi_visible {
    uint32_t n;
    /* rows: GPUs, and MIG instances that an entry names; a GPU in MIG mode stands for its
     * instances */
    uint32_t place[GPI_GPUS_MAX];
};

/* text: NULL = unset.  Returns 0, or GPUD_EDEVICE, field "CUDA_VISIBLE_DEVICES", with entry and
 * position. */
int gpi_visible_read(struct gpi_visible *ret, const char *text, const struct gpi_device *row,
                     uint32_t n, struct gpud_error *e);

/* Finds the rows whose UUID begins with this, in any case; if it is a whole UUID, that row alone.
 * Fills places[0..max), returns the number of rows. */
uint32_t gpi_uuid_find(const char *beginning, size_t length, const struct gpi_device *row,
                       uint32_t n, uint32_t *places, uint32_t max);

#endif
