/* SPDX-License-Identifier: MIT */
/*
 * timers.c - the times of the host's own mechanisms, in one heap.  The core has the times of a
 * slot's life.
 */
#include "base/clock.h"
#include "host/dispatcher.h"
#include "host/slot.h"

static uint64_t next_time(const struct gpi_slot *s)
{
    return gpi_time_min(gpi_time_min(s->peek_at, s->call_at),
                        gpi_time_min(s->keeper_at, s->vacant_by));
}

/* Puts the earliest of the slot's times into the heap, unless the entry there is early enough. */
void gpi_slot_timer(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t at = next_time(s);

    if (at >= s->timer)
        return;
    s->timer = at;
    gpi_heap_set(&d->timers, s->index, at);
}

bool gpi_slot_retime(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (!s->inflight)
        s->call_at = GPI_NEVER; /* all sent tasks have ended */
    if (next_time(s) <= s->timer)
        return false;
    gpi_heap_remove(&d->timers, s->index);
    s->timer = GPI_NEVER;
    gpi_slot_timer(d, s);
    return true;
}

void gpi_devices_rouse(gpud_dispatcher *d)
{
    if (!d->dev.n_gauges)
        return;
    gpi_heap_set(&d->timers, GPI_TIMER_DEVICES, d->now);
}
