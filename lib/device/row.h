/* SPDX-License-Identifier: MIT */
/* row.h - a device as the public record tells it: who it is, how it is, how it is judged. */
#ifndef GPI_DEVICE_ROW_H
#define GPI_DEVICE_ROW_H

#include "device/device.h"
#include "device/health.h"
#include "gpudispatch/device.h"

/* Fills what device, last reading (at == 0: none yet) and judgement tell; ret's own fields of a
 * dispatcher stay zero, and all that uses the device is foreign. */
void gpi_row_fill(struct gpud_device_info *ret, const struct gpi_device *d,
                  const struct gpi_sample *s, const struct gpi_health *h);

#endif
