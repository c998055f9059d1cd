/* SPDX-License-Identifier: MIT */
/* kin.h - the devices of one physical GPU, and the devices that an incident concerns. */
#ifndef GPI_DEVICE_KIN_H
#define GPI_DEVICE_KIN_H

#include <stdbool.h>

#include "device/device.h"
#include "device/xid.h"

/* Returns whether it is a MIG instance; fakes have some, too. */
bool gpi_device_is_instance(const struct gpi_device *d);

/* Returns whether it is an instance of this GPU. */
bool gpi_device_is_part_of(const struct gpi_device *d, const struct gpi_device *gpu);

/* Returns whether an incident at `at` (NULL: no known place) concerns `d`, too.  It does if `d` is
 * the same device.  It also does if `d` is on the same physical GPU and all of that is meant: the
 * GPU is lost, must be reset, or the driver reported the incident of the whole GPU. */
bool gpi_incident_concerns(const struct gpi_incident *i, const struct gpi_xid_rules *rules,
                           const struct gpi_device *at, const struct gpi_device *d);

#endif
