/* SPDX-License-Identifier: MIT */
#include "device/kin.h"

#include <string.h>

#include "gpudispatch/device.h"

bool gpi_device_is_instance(const struct gpi_device *d)
{
    return d->kind == GPUD_DEVICE_MIG ||
           (d->kind == GPUD_DEVICE_FAKE && d->mig_index != GPI_UNKNOWN32);
}

static bool is_on_a_gpu(const struct gpi_device *d)
{
    return d->kind != GPUD_DEVICE_CPU;
}

static bool are_on_one_gpu(const struct gpi_device *a, const struct gpi_device *b)
{
    return is_on_a_gpu(a) && is_on_a_gpu(b) &&
           (a->kind == GPUD_DEVICE_FAKE) == (b->kind == GPUD_DEVICE_FAKE) && a->index == b->index;
}

bool gpi_device_is_part_of(const struct gpi_device *d, const struct gpi_device *gpu)
{
    return gpi_device_is_instance(d) && !gpi_device_is_instance(gpu) && are_on_one_gpu(d, gpu);
}

bool gpi_incident_concerns(const struct gpi_incident *i, const struct gpi_xid_rules *rules,
                           const struct gpi_device *at, const struct gpi_device *d)
{
    enum gpi_xid_class class;

    if (!is_on_a_gpu(d))
        return false;
    if (!at || strcmp(at->uuid, d->uuid) == 0)
        return true;
    if (!are_on_one_gpu(at, d))
        return false;
    if (!gpi_device_is_instance(at) || i->kind != GPI_INCIDENT_XID)
        return true;
    class = gpi_xid_class(rules, i->number);
    return class == GPI_XID_LOST || class == GPI_XID_RESET;
}
