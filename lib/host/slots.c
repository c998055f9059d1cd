/* SPDX-License-Identifier: MIT */
/*
 * slots.c - room for slots.  The host reserves address space for all possible slots when it creates
 * a dispatcher, so the address of a slot stays valid when the user adds slots.  Each slot takes its
 * memory when it is made.
 */
#include <string.h>

#include "base/clock.h"
#include "host/core.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/event.h"
#include "host/slot.h"
#include "os/memory.h"

int gpi_slots_init(gpud_dispatcher *d)
{
    d->slot = gpi_memory_private(GPI_SLOTS_MAX * sizeof *d->slot);
    d->unrung = gpi_memory_private(GPI_SLOTS_MAX * sizeof *d->unrung);
    return d->slot && d->unrung && gpi_heap_init(&d->timers, GPI_TIMERS) == 0 ? 0 : -1;
}

void gpi_slots_fini(gpud_dispatcher *d)
{
    for (uint32_t i = 0; d->slot && i < d->n_slots; i++)
        gpi_channel_fini(d, &d->slot[i]);
    gpi_heap_fini(&d->timers);
    gpi_memory_unmap(d->slot, GPI_SLOTS_MAX * sizeof *d->slot);
    gpi_memory_unmap(d->unrung, GPI_SLOTS_MAX * sizeof *d->unrung);
}

/* ---- adding ---- */

/* Returns a removed slot that had the same devices, and is not yet chosen for reuse. */
static struct gpi_slot *former(gpud_dispatcher *d, const char *names, const uint16_t *taken,
                               uint32_t n)
{
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        bool free_now = gpi_slot_life(d, s) == GPI_LIFE_REMOVED && strcmp(s->device, names) == 0;
        for (uint32_t k = 0; free_now && k < n; k++)
            free_now = taken[k] != i;
        if (free_now)
            return s;
    }
    return NULL;
}

static int learn_devices(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_selection *chosen,
                         uint32_t number)
{
    for (s->n_devices = 0; s->n_devices < chosen->per_worker; s->n_devices++) {
        uint32_t i =
            gpi_device_learn(d, &chosen->device[chosen->slot[number].device[s->n_devices]].device);
        if (i == GPI_NO_DEVICE)
            return GPUD_EFULL;
        s->devices[s->n_devices] = (uint16_t)i;
    }
    return 0;
}

static void begin(struct gpi_slot *s, uint32_t i)
{
    *s = (struct gpi_slot){ .index = i };
    s->ch = (struct gpi_channel){
        .page_fd = -1, .result_fd = -1, .orders = -1, .orders_kept = -1,
        .looks = -1, .output = -1, .errors = -1, .keeper = -1, .worker = -1, .class = GPI_NONE,
    };
    s->peek_at = s->call_at = s->keeper_at = s->vacant_by = s->timer = GPI_NEVER;
    s->state = GPUD_SLOT_STOPPED;
    s->room = GPI_CELLS;
}

/* Makes a new slot behind the existing ones.  No thread sees it yet. */
static int make(gpud_dispatcher *d, uint32_t i, const struct gpi_selection *chosen, uint32_t number)
{
    struct gpi_slot *s = &d->slot[i];
    int r;

    begin(s, i);
    gpi_selection_names(chosen, number, s->device);
    r = learn_devices(d, s, chosen, number);
    return r ? r : gpi_channel_init(d, s) ? GPUD_ESYSTEM : 0;
}

static void commit(gpud_dispatcher *d, struct gpi_slot *s, uint32_t i)
{
    if (i >= d->n_slots) {
        d->n_slots = i + 1;
        gpi_core_slot_add(d, i, 0, s->devices, s->n_devices);
    } else { /* reused */
        s->gone = false;
        d->n_gone--;
    }
    s->done_before = gpi_slot_done(s); /* the device begins anew */
    for (uint32_t k = 0; k < s->n_devices; k++)
        d->dev.row[s->devices[k]].slots++;
}

static int make_all(gpud_dispatcher *d, const struct gpi_selection *chosen, uint16_t *ret_slot,
                    uint32_t *ret_fresh)
{
    char names[GPI_DEVICE_NAMES];
    int r = 0;

    for (uint32_t i = 0; i < chosen->n_slots && r == 0; i++) {
        const struct gpi_slot *s;
        gpi_selection_names(chosen, i, names);
        s = former(d, names, ret_slot, i);
        ret_slot[i] = (uint16_t)(s ? s->index : d->n_slots + *ret_fresh);
        if (s)
            continue;
        if (ret_slot[i] == GPI_SLOTS_MAX)
            return GPUD_EFULL;
        r = make(d, ret_slot[i], chosen, i);
        ++*ret_fresh;
    }
    return r == 0 && gpi_events_grow(d, *ret_fresh) ? GPUD_ENOMEM : r;
}

int gpi_slots_add_seats(gpud_dispatcher *d, uint32_t n)
{
    while (d->n_slots < n) {
        struct gpi_slot *s = &d->slot[d->n_slots];
        begin(s, d->n_slots);
        gpi_slot_unseat(d, s);
        d->n_slots++; /* gpi_slots_fini frees it */
        if (gpi_channel_init(d, s))
            return GPUD_ESYSTEM;
        gpi_core_slot_add(d, s->index, 0, NULL, 0);
    }
    return gpi_events_grow(d, n) ? GPUD_ENOMEM : 0;
}

/* The seats of a pooled dispatcher are there already. */
static int add_devices(gpud_dispatcher *d, const struct gpi_selection *chosen, uint32_t gauge)
{
    const uint32_t before = d->dev.n;

    for (uint32_t i = 0; i < chosen->n; i++)
        if (gpi_device_learn(d, &chosen->device[i].device) == GPI_NO_DEVICE) {
            d->dev.n = before;
            return GPUD_EFULL;
        }
    for (uint32_t i = 0; i < chosen->n; i++)
        gpi_device_bind(d, &chosen->device[i], gauge);
    return 0;
}

int gpi_slots_add(gpud_dispatcher *d, const struct gpi_selection *chosen, uint32_t gauge,
                  uint16_t *ret_slot)
{
    const uint32_t devices = d->dev.n;
    uint32_t fresh = 0;
    int r;

    if (d->set.pooled)
        return add_devices(d, chosen, gauge);
    r = make_all(d, chosen, ret_slot, &fresh);
    if (r) {
        for (uint32_t i = 0; i < fresh; i++)
            gpi_channel_fini(d, &d->slot[d->n_slots + i]);
        d->dev.n = devices;
        return r;
    }
    for (uint32_t i = 0; i < chosen->n; i++)
        gpi_device_bind(d, &chosen->device[i], gauge);
    for (uint32_t i = 0; i < chosen->n_slots; i++)
        commit(d, &d->slot[ret_slot[i]], ret_slot[i]);
    return 0;
}
