/* SPDX-License-Identifier: MIT */
/* device.c - whether the devices of a slot let it have a worker. */
#include "sched/core.h"

void gpi_device_touch(struct gpi_sched *c, uint32_t device)
{
    for (uint32_t i = 0; i < c->n_slots; i++)
        if (gpi_device_has(&c->slot[i], device))
            gpi_ring_touch(c, &c->slot[i]);
}

void gpi_device_set(struct gpi_sched *c, uint32_t device, enum gpi_may may)
{
    struct gpi_sched_device *v = &c->device[device];

    v->may = (uint8_t)may;
    v->try_due &= may == GPI_MAY_OUT;
}

void gpi_device_wish(struct gpi_sched *c, uint32_t device, uint32_t event)
{
    struct gpi_sched_device *v = &c->device[device];
    const bool drains = event == GPI_EV_DRAIN;

    if (v->removing)
        return;
    v->paused = event == GPI_EV_PAUSE || (v->paused && event != GPI_EV_RETURN);
    if (event == GPI_EV_PAUSE || (event != GPI_EV_REMOVE && v->draining == drains))
        return;
    v->removing = event == GPI_EV_REMOVE;
    v->draining = drains || v->removing;
    v->noted = false;
}

void gpi_device_due(struct gpi_sched *c, uint32_t device)
{
    struct gpi_sched_device *v = &c->device[device];

    v->try_due = v->may == GPI_MAY_OUT && !v->trying;
}

bool gpi_device_wants_try(const struct gpi_sched *c, uint32_t device)
{
    const struct gpi_sched_device *v = &c->device[device];

    return v->try_due && !v->trying && !v->draining;
}

/* ---- a slot's devices ---- */

bool gpi_devices_watched(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    return s->n_devices && c->device[s->device[0]].watched;
}

uint64_t gpi_devices_kill_limit(const struct gpi_sched *c, const uint16_t *device, uint32_t n)
{
    return n ? c->device[device[0]].kill_limit : c->set.kill_limit;
}

uint64_t gpi_devices_longest_kill(const struct gpi_sched *c)
{
    uint64_t longest = c->set.kill_limit;

    for (uint32_t i = 0; i < c->n_devices; i++)
        longest = c->device[i].kill_limit > longest ? c->device[i].kill_limit : longest;
    return longest;
}

bool gpi_devices_are(const struct gpi_sched *c, const struct gpi_sched_slot *s, enum gpi_may may)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (c->device[s->device[i]].may == may)
            return true;
    return false;
}

bool gpi_devices_removed(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (c->device[s->device[i]].removing)
            return true;
    return false;
}

bool gpi_devices_drain(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (c->device[s->device[i]].draining)
            return true;
    return false;
}

bool gpi_devices_pause(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (c->device[s->device[i]].paused)
            return true;
    return false;
}

bool gpi_devices_bar(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    const bool out = (gpi_devices_are(c, s, GPI_MAY_OUT) || gpi_devices_pause(c, s)) && !s->only;

    return out || gpi_devices_are(c, s, GPI_MAY_DEAD) || gpi_devices_drain(c, s);
}

bool gpi_devices_well(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    return !gpi_devices_are(c, s, GPI_MAY_DOUBT) && !gpi_devices_are(c, s, GPI_MAY_OUT) &&
           !gpi_devices_are(c, s, GPI_MAY_DEAD) && !gpi_devices_drain(c, s);
}

/* ---- canaries for devices that are out of use ---- */

bool gpi_devices_try(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    bool due = false;

    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct gpi_sched_device *v = &c->device[s->device[i]];
        if (v->trying || v->may == GPI_MAY_DEAD || (v->may == GPI_MAY_OUT && !v->try_due))
            return false;
        due |= v->try_due;
    }
    return due && !gpi_devices_drain(c, s);
}

void gpi_devices_set_trying(struct gpi_sched *c, const struct gpi_sched_slot *s, bool trying)
{
    for (uint32_t i = 0; i < s->n_devices; i++) {
        c->device[s->device[i]].trying = trying;
        c->device[s->device[i]].try_due = false;
        if (!trying) /* another set with this device may wait for its own canary */
            gpi_device_touch(c, s->device[i]);
    }
}

/* ---- the last slot, the last worker ---- */

/* The slot has left its devices for good. */
static bool has_left(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    return s->life == GPI_LIFE_REMOVED || s->life == GPI_LIFE_STUCK ||
           (c->plan && (s->life == GPI_LIFE_OFF || s->life == GPI_LIFE_STOPPED));
}

static bool has_slot(const struct gpi_sched *c, uint32_t device, bool with_worker)
{
    for (uint32_t i = 0; i < c->n_slots; i++) {
        const struct gpi_sched_slot *s = &c->slot[i];
        const bool is = with_worker ? gpi_slot_has_worker(s) : !has_left(c, s);
        if (is && gpi_device_has(s, device))
            return true;
    }
    return false;
}

/* External work that may still end is on the device. */
static bool has_lease(const struct gpi_sched *c, uint32_t device)
{
    for (uint32_t i = 0; i < c->external.n_leases; i++) {
        const struct gpi_lease *l = &c->external.lease[i];
        if ((l->state == GPI_LEASE_GRANTED || l->state == GPI_LEASE_STARTED) &&
            gpi_lease_has(l, device))
            return true;
    }
    return false;
}

/* If a device of a set goes, the whole set goes.  Each device that is in no other set goes, too. */
void gpi_devices_left(struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (!has_slot(c, s->device[i], false))
            gpi_device_wish(c, s->device[i], GPI_EV_REMOVE);
}

static void note(struct gpi_sched *c, uint32_t device, enum gpi_sched_note how)
{
    c->device[device].noted = true;
    gpi_ring_add(c, (struct gpi_sched_action){ .kind = GPI_ACT_NOTE,
                                               .slot = GPI_NOWHERE,
                                               .device = device,
                                               .how = how });
}

void gpi_device_note_end(struct gpi_sched *c, uint32_t device)
{
    const struct gpi_sched_device *v = &c->device[device];

    if (!v->noted && v->draining && !has_slot(c, device, !v->removing) && !has_lease(c, device))
        note(c, device, v->removing ? GPI_NOTE_REMOVED : GPI_NOTE_DRAINED);
}

void gpi_devices_note(struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        gpi_device_note_end(c, s->device[i]);
}
