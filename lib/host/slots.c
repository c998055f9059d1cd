/* SPDX-License-Identifier: MIT */
/*
 * slots.c - room for slots.  The address space for all there can ever be is reserved at birth, so that
 * whoever looks at one keeps its address while others are added; memory is taken as they come.
 */
#include <string.h>

#include "host/dispatcher.h"
#include "os/memory.h"

int gpi_slots_init(gpud_dispatcher *d)
{
    d->slot = gpi_memory_private(GPI_SLOTS_MAX * sizeof *d->slot);
    d->loads = gpi_memory_private(GPI_SLOTS_MAX * sizeof *d->loads);
    return d->slot && d->loads && gpi_heap_init(&d->timers, GPI_TIMERS) == 0 ? 0 : -1;
}

void gpi_slots_fini(gpud_dispatcher *d)
{
    for (uint32_t i = 0; d->slot && i < d->n_slots; i++)
        gpi_channel_fini(d, &d->slot[i]);
    gpi_heap_fini(&d->timers);
    gpi_memory_unmap(d->slot, GPI_SLOTS_MAX * sizeof *d->slot);
    gpi_memory_unmap(d->loads, GPI_SLOTS_MAX * sizeof *d->loads);
}

/* ---- adding ---- */

/* One that was removed and had the same devices, and is not to be used again twice. */
static struct gpi_slot *former(gpud_dispatcher *d, const char *names, const uint16_t *taken, uint32_t n)
{
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        bool free_now = s->removed && !s->survivor && strcmp(s->device, names) == 0;
        for (uint32_t k = 0; free_now && k < n; k++)
            free_now = taken[k] != i;
        if (free_now)
            return s;
    }
    return NULL;
}

static int learn_devices(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_device *found, uint32_t n_found)
{
    char all[GPI_DEVICE_SIZE], *at = all, *name;

    memcpy(all, s->device, sizeof all);
    for (s->n_devices = 0; (name = strsep(&at, ",")) != NULL; s->n_devices++) {
        uint32_t i = gpi_device_learn(d, name, found, n_found);
        if (i == GPI_NO_DEVICE)
            return GPUD_EFULL;
        s->devices[s->n_devices] = (uint16_t)i;
    }
    return 0;
}

/* A fresh one behind those there are; nobody sees it yet. */
static int make(gpud_dispatcher *d, uint32_t i, const char *names, const struct gpi_device *found, uint32_t n_found)
{
    struct gpi_slot *s = &d->slot[i];
    int r;

    *s = (struct gpi_slot){ .index = i };
    s->ch = (struct gpi_channel){ .page_fd = -1, .result_fd = -1, .orders = -1, .orders_kept = -1, .looks = -1, .output = -1, .keeper = -1 };
    s->state_deadline = s->check_at = s->peek_at = s->timer = GPI_NEVER;
    memcpy(s->device, names, sizeof s->device);
    r = learn_devices(d, s, found, n_found);
    return r ? r : gpi_channel_init(d, s) ? GPUD_ESYSTEM : 0;
}

static void commit(gpud_dispatcher *d, struct gpi_slot *s, uint32_t i)
{
    if (i >= d->n_slots) {
        d->n_slots = i + 1;
    } else { /* used again */
        s->removed = false;
        s->restart = (struct gpi_restart){ 0 };
        d->n_removed--;
        gpi_slot_useful(d, s);
    }
    for (uint32_t k = 0; k < s->n_devices; k++) {
        struct gpi_known_device *dev = &d->dev.row[s->devices[k]];
        dev->slots++;
        dev->told &= !dev->removed;
        dev->draining = dev->drained = dev->removing = dev->removed = false;
    }
}

int gpi_slots_add(gpud_dispatcher *d, char (*names)[GPI_DEVICE_SIZE], uint32_t n, const struct gpi_device *found, uint32_t n_found, uint16_t *ret_slot)
{
    const uint32_t devices = d->dev.n;
    uint32_t fresh = 0;
    int r = 0;

    for (uint32_t i = 0; i < n && r == 0; i++) {
        struct gpi_slot *s = former(d, names[i], ret_slot, i);
        if (s) {
            ret_slot[i] = (uint16_t)s->index;
            continue;
        }
        if (d->n_slots + fresh == GPI_SLOTS_MAX)
            r = GPUD_EFULL;
        else
            r = make(d, d->n_slots + fresh, names[i], found, n_found);
        ret_slot[i] = (uint16_t)(d->n_slots + fresh);
        fresh += r != GPUD_EFULL;
    }
    if (r == 0 && gpi_events_grow(d, fresh))
        r = GPUD_ENOMEM;
    if (r) {
        for (uint32_t i = 0; i < fresh; i++)
            gpi_channel_fini(d, &d->slot[d->n_slots + i]);
        d->dev.n = devices;
        return r;
    }
    for (uint32_t i = 0; i < n; i++)
        commit(d, &d->slot[ret_slot[i]], ret_slot[i]);
    return 0;
}
