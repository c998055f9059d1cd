/* SPDX-License-Identifier: MIT */
/* list.h - the option "devices": "cpu:4", "cpu:2/3" (three workers per device), comma-separated. */
#ifndef GPI_DEVICE_LIST_H
#define GPI_DEVICE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "gpudispatch/error.h"

#define GPI_DEVICE_NAME 32

/* Fills names[0..max) with one device name per slot, in order.
 * Returns how many slots there are; GPUD_EDEVICE or GPUD_ENOTSUP, with the entry and its position. */
int gpi_device_list(const char *text, char (*names)[GPI_DEVICE_NAME], uint32_t max, struct gpud_error *reterr);

#endif
