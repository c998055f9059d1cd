/* SPDX-License-Identifier: MIT */
/* life.c - queries of a slot's life, as the core has it. */
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/slot.h"

enum gpi_life gpi_slot_life(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return gpi_sched_life(d->core, s->index);
}

bool gpi_slot_has_worker(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    const enum gpi_life life = gpi_slot_life(d, s);

    return life >= GPI_LIFE_BOOT && life <= GPI_LIFE_LOST;
}

bool gpi_slot_is_read(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return s->n_devices && d->dev.row[s->devices[0]].gauge != GPI_NO_GAUGE;
}

bool gpi_slot_has(const struct gpi_slot *s, uint32_t device)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (s->devices[i] == device)
            return true;
    return false;
}

bool gpi_slot_drains(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (gpi_sched_drains(d->core, s->devices[i]))
            return true;
    return s->gone;
}

bool gpi_slot_settled(const struct gpi_slot *s)
{
    return s->state == GPUD_SLOT_STOPPED || gpi_slot_hopeless(s);
}

bool gpi_slot_hopeless(const struct gpi_slot *s)
{
    return s->state == GPUD_SLOT_FAILED || s->state == GPUD_SLOT_QUARANTINED;
}

bool gpi_slot_serves(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return (s->state == GPUD_SLOT_READY || s->state == GPUD_SLOT_BUSY) &&
           gpi_slot_life(d, s) != GPI_LIFE_LEAVE;
}

/* `state` stays READY or BUSY while the worker leaves: no event reports that. */
uint32_t gpi_slot_shown(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    const bool leaves = gpi_sched_leaves_since(d->core, s->index) != 0;

    return leaves ? (uint32_t)GPUD_SLOT_DRAINING : (uint32_t)s->state;
}

uint64_t gpi_slot_done(const struct gpi_slot *s)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < sizeof s->outcomes / sizeof *s->outcomes; i++)
        n += s->outcomes[i];
    return n;
}
