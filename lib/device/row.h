/* SPDX-License-Identifier: MIT */
/* row.h - a device in the public record: identity, state and judgement. */
#ifndef GPI_DEVICE_ROW_H
#define GPI_DEVICE_ROW_H

#include "device/device.h"
#include "device/health.h"
#include "gpudispatch/device.h"

/* Fills in device, last reading (at == 0: none yet) and judgement.  The record's fields about a
 * dispatcher stay zero, and every process on the device counts as foreign. */
void gpi_row_fill(struct gpud_device_info *ret, const struct gpi_device *d,
                  const struct gpi_sample *s, const struct gpi_health *h);

#endif
