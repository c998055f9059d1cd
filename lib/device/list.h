/* SPDX-License-Identifier: MIT */
/*
 * list.h - the options "devices" and devices_per_worker: "cpu:4", "cpu:2/3" (three workers per
 * device), comma-separated; of the whole list so many neighbours each make a worker's set.
 */
#ifndef GPI_DEVICE_LIST_H
#define GPI_DEVICE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "gpudispatch/error.h"

#define GPI_DEVICE_NAME 32 /* of one device, with the terminating zero */
#define GPI_DEVICE_SET 16  /* devices of one worker, at most */
#define GPI_DEVICE_NAMES (GPI_DEVICE_NAME * GPI_DEVICE_SET) /* of a set, comma-separated */

/* Fills sets[0..max) with the device names of one slot each, in order: "cpu:0" or "cpu:0,cpu:1".
 * `per_worker` is at most GPI_DEVICE_SET.
 * Returns how many slots there are; GPUD_EDEVICE, with the entry and its position or, when the list
 * cannot be cut into sets, with the numbers. */
int gpi_device_list(const char *text, uint32_t per_worker, char (*sets)[GPI_DEVICE_NAMES], uint32_t max, struct gpud_error *reterr);

#endif
