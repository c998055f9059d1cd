/* SPDX-License-Identifier: MIT */
/*
 * fence.c - what a device does to its slots.
 *
 * A slot whose device is not to be used any more *leaves*: it takes no task, gives back what its worker
 * has not claimed, and its worker goes when it has ended what it runs; or that is killed, where the
 * device has failed under it, and its task is charged to the device.  Without a worker the slot *parks*:
 *
 *   STOPPED      by the user's wish, until the device is returned
 *   BACKOFF      until canaries bring the device back
 *   QUARANTINED  only a reset, or another's deed, can bring the device back: a reading must say so first
 *
 * While some slot is in one of the first two, tasks wait.  A slot with several devices needs all of them.
 */
#include <stdio.h>

#include "base/clock.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/slot.h"
#include "wire/control.h"

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

bool gpi_slot_drains(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (device_of(d, s, i)->draining || device_of(d, s, i)->removing)
            return true;
    return s->removed;
}

bool gpi_slot_barred(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (!s->trying && !gpi_health_starts(&device_of(d, s, i)->health))
            return true;
    return gpi_slot_drains(d, s);
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
        gpi_device_tell(d, device, 0, "removed: its last slot has ended");
    } else if (k->draining && !k->removing && !k->drained && !has_workers(d, device)) {
        k->drained = true;
        gpi_device_tell(d, device, 0, "drained: its last worker has ended");
    }
}

/* Its keeper goes too. */
static void remove_slot(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (s->removed)
        return;
    s->removed = true;
    d->n_removed++;
    atomic_fetch_sub(d->places, 1);
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

/* The first of its devices that is so, or NULL. */
typedef bool(device_is_fn)(const struct gpi_known_device *k);

static const struct gpi_known_device *first_that(const gpud_dispatcher *d, const struct gpi_slot *s, device_is_fn *is)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (is(device_of(d, s, i)))
            return device_of(d, s, i);
    return NULL;
}

static bool is_removed(const struct gpi_known_device *k)
{
    return k->removing;
}

static bool is_draining(const struct gpi_known_device *k)
{
    return k->draining;
}

/* It comes back only when a reading says otherwise first. */
static bool is_hopeless(const struct gpi_known_device *k)
{
    return !gpi_health_starts(&k->health) && !gpi_health_hopes(&k->health);
}

static void enter(gpud_dispatcher *d, struct gpi_slot *s, enum gpud_slot_state state)
{
    gpi_slot_useful(d, s);
    gpi_slot_enter(d, s, state);
}

static void give_up(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_known_device *k)
{
    char why[GPI_FAIL_TEXT_SIZE];

    snprintf(why, sizeof why, "%s is %s: %s", k->id.name, gpud_health_name(k->health.state), k->health.evidence);
    gpi_slot_useless(d, s, GPUD_SLOT_QUARANTINED, why);
}

void gpi_slot_park(gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_known_device *hopeless = first_that(d, s, is_hopeless);

    gpi_slot_stays(d, s);
    if (first_that(d, s, is_removed)) {
        remove_slot(d, s);
    } else if (s->state != GPUD_SLOT_FAILED && !s->survivor) { /* what is given up stays so */
        s->parked = true;
        s->state_deadline = s->check_at = s->peek_at = GPI_NEVER;
        if (hopeless)
            give_up(d, s, hopeless);
        else
            enter(d, s, first_that(d, s, is_draining) ? GPUD_SLOT_STOPPED : GPUD_SLOT_BACKOFF);
    }
    for (uint32_t i = 0; i < s->n_devices; i++)
        tell_drained(d, s->devices[i]);
    gpi_devices_rouse(d);
}

/* ---- leaving, and coming back ---- */

void gpi_slot_stays(gpud_dispatcher *d, struct gpi_slot *s)
{
    d->dev.leaving -= s->leaving;
    s->leaving = false;
}

/* No new task; when it has none its worker goes. */
static void leave(gpud_dispatcher *d, struct gpi_slot *s)
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

static bool is_doubted(const struct gpi_known_device *k)
{
    return k->draining || k->removing || k->health.canary_due || !gpi_health_starts(&k->health) || k->health.state == GPUD_HEALTH_SUSPECT;
}

void gpi_fence_lift(gpud_dispatcher *d, uint32_t device)
{
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (s->leaving && s->state == GPUD_SLOT_BUSY && gpi_slot_has(s, device) && !first_that(d, s, is_doubted))
            gpi_slot_stays(d, s);
    }
}

void gpi_fence_leave(gpud_dispatcher *d, uint32_t device)
{
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (!d->slot[i].removed && !d->slot[i].trying && gpi_slot_has(&d->slot[i], device))
            leave(d, &d->slot[i]);
}

void gpi_fence_kill(gpud_dispatcher *d, uint32_t device)
{
    const struct gpi_known_device *k = &d->dev.row[device];

    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (!s->started || s->survivor || !gpi_slot_has(s, device))
            continue;
        if (s->kill == GPI_KILL_HARD)
            leave(d, s); /* it may be spared */
        if (s->kill != GPI_KILL_NO)
            continue;
        snprintf(s->blame, sizeof s->blame, "%s failed: %s", k->id.name, k->health.evidence);
        gpi_collect(d, s); /* what has ended is not charged */
        d->count.returned += gpi_recall_all(d, s);
        gpi_slot_kill(d, s, GPI_KILL_DEVICE);
    }
}

void gpi_slots_come_back(gpud_dispatcher *d, uint32_t device)
{
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (!gpi_slot_has(s, device) || s->survivor || s->removed)
            continue;
        if (gpi_slot_barred(d, s)) {
            if (s->parked || (!s->started && s->state != GPUD_SLOT_FAILED))
                gpi_slot_park(d, s); /* for another reason, maybe */
            continue;
        }
        if (s->parked) {
            s->parked = false;
            gpi_slot_useful(d, s);
            gpi_slot_again(d, s);
        }
    }
}
