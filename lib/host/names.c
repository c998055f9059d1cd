/* SPDX-License-Identifier: MIT */
/*
 * names.c - the names of the devices of an event.
 *
 * An event may be read when its slot has other devices, or its task has none any more.  So it keeps
 * the places of its devices, which name the same devices as long as the dispatcher lives.  Its
 * texts are made when the user reads it.
 */
#include <stdio.h>
#include <string.h>

#include "host/device.h"
#include "host/dispatcher.h"

void gpi_set_take(struct gpi_device_set *to, const uint16_t *device, uint32_t n)
{
    to->n = (uint16_t)n;
    memcpy(to->device, device, n * sizeof *device);
}

static const char *name_of(const gpud_dispatcher *d, uint32_t device, bool uuid)
{
    const struct gpi_device *id = &d->dev.row[device].id;

    return uuid ? id->uuid : id->name;
}

static const char *join(const gpud_dispatcher *d, const struct gpi_device_set *set, bool uuids,
                        char *room, size_t size)
{
    size_t at = 0;

    if (set->n == 0)
        return "";
    if (set->n == 1)
        return name_of(d, set->device[0], uuids);
    for (uint32_t i = 0; i < set->n && at < size; i++)
        at += (size_t)snprintf(room + at, size - at, "%s%s", i ? "," : "",
                               name_of(d, set->device[i], uuids));
    return room;
}

const char *gpi_set_names(const gpud_dispatcher *d, const struct gpi_device_set *set,
                          struct gpi_names_room *room)
{
    return join(d, set, false, room->names, sizeof room->names);
}

const char *gpi_set_uuids(const gpud_dispatcher *d, const struct gpi_device_set *set,
                          struct gpi_names_room *room)
{
    return join(d, set, true, room->uuids, sizeof room->uuids);
}
