/* SPDX-License-Identifier: MIT */
/* kin.h - which devices lie on one physical GPU, and whom an incident there concerns. */
#ifndef GPI_DEVICE_KIN_H
#define GPI_DEVICE_KIN_H

#include <stdbool.h>

#include "device/device.h"
#include "device/xid.h"

/* Whether it is a MIG instance; fakes have some, too. */
bool gpi_device_is_instance(const struct gpi_device *d);

/* Whether it is an instance of this GPU. */
bool gpi_device_is_part_of(const struct gpi_device *d, const struct gpi_device *gpu);

/* Whether what happened at `at` (NULL: it cannot be said where) concerns `d` too: the same device;
 * another on the same physical GPU, when all of that is meant (it is lost, must be reset, or the
 * incident was told of the whole GPU). */
bool gpi_incident_concerns(const struct gpi_incident *i, const struct gpi_xid_rules *rules,
                           const struct gpi_device *at, const struct gpi_device *d);

#endif
