/* SPDX-License-Identifier: MIT */
/*
 * fence.c - what a device does to its slots.
 *
 * A slot whose device is not to be used any more *leaves*: it takes no task, gives back what its worker
 * has not claimed, and its worker goes when it has ended what it runs.  Without a worker it *parks*:
 * STOPPED where the user wished it, until it comes back.  A slot with several devices needs all of them.
 */
#include "host/dispatcher.h"

bool gpi_slot_has(const struct gpi_slot *s, uint32_t device)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (s->devices[i] == device)
            return true;
    return false;
}

static const struct gpi_known_device *device_of(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t i)
{
    return &d->dev.row[s->devices[i]];
}

bool gpi_slot_barred(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (device_of(d, s, i)->draining || device_of(d, s, i)->removing)
            return true;
    return s->removed;
}

/* ---- no worker is left ---- */

static bool has_workers(const gpud_dispatcher *d, uint32_t device)
{
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slot[i].started && !d->slot[i].survivor && gpi_slot_has(&d->slot[i], device))
            return true;
    return false;
}

static void tell_drained(gpud_dispatcher *d, uint32_t device)
{
    struct gpi_known_device *k = &d->dev.row[device];

    if (k->removing && !k->removed && k->slots == 0) {
        k->removed = true;
        gpi_device_tell(d, device, 0, "removed: none of its slots is left");
    } else if (k->draining && !k->removing && !k->drained && !has_workers(d, device)) {
        k->drained = true;
        gpi_device_tell(d, device, 0, "drained: none of its workers is left");
    }
}

/* Its keeper goes too. */
static void remove_slot(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (s->removed)
        return;
    s->removed = true;
    d->n_removed++;
    for (uint32_t i = 0; i < s->n_devices; i++) {
        struct gpi_known_device *k = &d->dev.row[s->devices[i]];
        k->removing |= --k->slots == 0; /* it was in this set only */
    }
    gpi_slot_useless(d, s, s->survivor ? GPUD_SLOT_QUARANTINED : GPUD_SLOT_STOPPED, "its device was removed");
    if (s->keeper_pid && !s->keeper_lost && !s->survivor) {
        (void)gpi_channel_tell(s, GPI_CTL_END, true);
        s->keeper_lost = true; /* nothing more can be asked of it */
    }
}

static bool is_removed(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (device_of(d, s, i)->removing)
            return true;
    return false;
}

void gpi_slot_park(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_slot_stays(d, s);
    s->parked = true;
    s->state_deadline = s->check_at = s->peek_at = GPI_NEVER;
    if (is_removed(d, s))
        remove_slot(d, s);
    else if (!s->useless) /* what is given up stays so */
        gpi_slot_enter(d, s, GPUD_SLOT_STOPPED);
    for (uint32_t i = 0; i < s->n_devices; i++)
        tell_drained(d, s->devices[i]);
}

/* ---- leaving, and coming back ---- */

void gpi_slot_stays(gpud_dispatcher *d, struct gpi_slot *s)
{
    d->dev.leaving -= s->leaving;
    s->leaving = false;
}

void gpi_slot_leave(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (!s->started || s->survivor) {
        gpi_slot_park(d, s);
        return;
    }
    if (s->leaving)
        return;
    s->leaving = true;
    d->dev.leaving++;
    d->count.returned += gpi_recall_all(d, s);
    if (s->state == GPUD_SLOT_STARTING)
        gpi_slot_wind_down(d, s);
}

/* Those that have ended what they ran. */
void gpi_fence_step(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (s->leaving && s->state == GPUD_SLOT_READY)
            gpi_slot_wind_down(d, s);
    }
}

void gpi_slots_come_back(gpud_dispatcher *d, uint32_t device)
{
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (!gpi_slot_has(s, device) || gpi_slot_barred(d, s) || s->survivor)
            continue;
        if (s->parked) {
            s->parked = false;
            gpi_slot_useful(d, s);
            gpi_slot_again(d, s);
        } else if (s->leaving && s->state != GPUD_SLOT_DRAINING) {
            gpi_slot_stays(d, s);
        }
    }
}
