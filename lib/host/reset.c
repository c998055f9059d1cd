/* SPDX-License-Identifier: MIT */
/*
 * reset.c - a GPU that waits for a reset is open in no process of this dispatcher: nvidia-smi
 * refuses to reset a GPU that is open anywhere.
 *
 * NVML closes a GPU only when its process ends.  So a GPU that is out of use, waits for a reset and
 * has no worker left gets a monitor of its own.  That monitor runs while a reading is due, at each
 * step of the backoff, and permanently once the GPU does not wait any more.  A GPU that this
 * dispatcher does not use, or no longer uses, is open in no monitor.
 *
 * The other GPUs get an heir: a monitor that opens only them, by PCI address.  The old monitor ends
 * when the heir listens.  An event that both receive counts twice.  An event before the heir
 * listens is lost if the old monitor has not reported it yet.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/slot.h"

#define AGAIN_NS (60 * GPI_S) /* between two tries to part, doubling */
#define AGAIN_MAX_NS (3600 * GPI_S)
#define CLOSED "this dispatcher has closed it, so that it can be reset (nvidia-smi --gpu-reset)"

/* ---- which GPUs ---- */

static bool is_on(const struct gpi_known_device *k, const char *pci)
{
    return k->here && k->gauge != GPI_NO_GAUGE && strcmp(k->id.pci, pci) == 0;
}

static bool has_workers(const gpud_dispatcher *d, uint32_t device)
{
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (gpi_slot_has_worker(d, &d->slot[i]) && d->slot[i].canary != GPI_CANARY_ONLY &&
            gpi_slot_has(&d->slot[i], device))
            return true;
    return false;
}

/* Returns true if no reading of the device is due or under way.  The host does not wait for a
 * shared monitor that hangs.  It leaves a hung monitor of one GPU alone, so that hung ones do not
 * pile up. */
static bool is_settled(const gpud_dispatcher *d, const struct gpi_known_device *k)
{
    const struct gpi_gauge *g = d->dev.gauge[k->gauge];
    bool asked = false;

    if (g->m.fd >= 0 && g->m.enumerated && k->place < g->m.n)
        asked = g->m.asked_at[k->place] && (g->single || !k->silent);
    else if (g->m.fd >= 0)
        asked = g->single && !g->m.enumerated;
    return !asked && k->health.look_at > d->now && k->look_at > d->now;
}

/* Returns true if no process here needs this GPU open.  MIG instances are open with their GPU. */
static bool may_go(const gpud_dispatcher *d, const char *pci)
{
    bool found = false;

    for (uint32_t i = 0; i < d->dev.n; i++) {
        const struct gpi_known_device *k = &d->dev.row[i];
        if (!is_on(k, pci))
            continue;
        if (!gpi_health_waits(&k->health) || !is_settled(d, k) || has_workers(d, i))
            return false;
        found = true;
    }
    return found;
}

bool gpi_reset_waits(const gpud_dispatcher *d, uint32_t gauge)
{
    for (uint32_t i = 0; d->dev.gauge[gauge]->single && i < d->dev.n; i++)
        if (d->dev.row[i].gauge == gauge && d->dev.row[i].here &&
            gpi_health_waits(&d->dev.row[i].health))
            return true;
    return false;
}

/* ---- a monitor of one GPU ---- */

static uint64_t next_reading(const struct gpi_known_device *k)
{
    return gpi_time_min(k->health.look_at, k->look_at);
}

static uint64_t due_at(const gpud_dispatcher *d, uint32_t gauge)
{
    uint64_t at = GPI_NEVER;

    for (uint32_t i = 0; i < d->dev.n; i++)
        if (d->dev.row[i].gauge == gauge && d->dev.row[i].here)
            at = gpi_time_min(at, next_reading(&d->dev.row[i]));
    return at;
}

/* The monitor runs, and could not open its GPU. */
static bool is_blind(const struct gpi_gauge *g)
{
    return g->m.enumerated && g->m.n == 0;
}

static void tell_let_go(gpud_dispatcher *d, uint32_t gauge)
{
    const uint64_t at = due_at(d, gauge);

    for (uint32_t i = 0; i < d->dev.n && !d->dev.gauge[gauge]->told; i++)
        if (d->dev.row[i].gauge == gauge && d->dev.row[i].here)
            gpi_device_tell(d, i, 0, CLOSED "; each %s opens it for a moment (canary_backoff)",
                            at == GPI_NEVER ? "canary" : "reading");
    d->dev.gauge[gauge]->told = true;
}

/* Returns when the monitor must be checked again. */
static uint64_t keep_single(gpud_dispatcher *d, uint32_t gauge)
{
    struct gpi_gauge *g = d->dev.gauge[gauge];

    if (may_go(d, g->script)) {
        gpi_gauge_hang_up(d, g);
        tell_let_go(d, gauge);
        return due_at(d, gauge);
    }
    g->told &= gpi_reset_waits(d, gauge);
    if (g->m.fd >= 0 && is_blind(g) && due_at(d, gauge) <= d->now)
        gpi_gauge_hang_up(d, g);
    if (g->m.fd >= 0)
        return is_blind(g) ? due_at(d, gauge) : GPI_NEVER;
    if (g->again_at != GPI_NEVER && g->again_at > d->now)
        return g->again_at;
    gpi_gauge_again(d, gauge);
    return g->again_at;
}

static uint32_t find_single(const gpud_dispatcher *d, const char *pci)
{
    for (uint32_t i = 0; i < d->dev.n_gauges; i++)
        if (d->dev.gauge[i] && d->dev.gauge[i]->single && strcmp(d->dev.gauge[i]->script, pci) == 0)
            return i;
    return GPI_NO_GAUGE;
}

/* Makes the monitor of this GPU alone, not running yet.  Returns GPI_NO_GAUGE if there is no
 * room. */
static uint32_t make_single(gpud_dispatcher *d, const char *pci)
{
    uint32_t at = find_single(d, pci);
    char *only = at == GPI_NO_GAUGE ? strdup(pci) : NULL;
    struct gpi_gauge *g = only ? gpi_gauge_new(GPI_PROVIDER_NVML, 0) : NULL;

    if (!g) {
        free(only);
        return at;
    }
    g->script = only;
    g->single = g->m.gone = true;
    if (gpi_gauge_adopt(d, g, &at) == 0)
        return at;
    gpi_gauge_free(g);
    return GPI_NO_GAUGE;
}

/* ---- parting ---- */

static uint32_t place_in(const struct gpi_gauge *heir, const char *uuid)
{
    uint32_t place = 0;

    while (heir && place < heir->m.n && strcmp(heir->m.device[place].uuid, uuid) != 0)
        place++;
    return heir && place < heir->m.n ? place : GPI_UNKNOWN32;
}

/* Returns true if each device that the heir lacks has a monitor of its own now. */
static bool singles_are_made(gpud_dispatcher *d, uint32_t gauge, const struct gpi_gauge *heir)
{
    for (uint32_t i = 0; i < d->dev.n; i++) {
        const struct gpi_known_device *k = &d->dev.row[i];
        if (k->gauge == gauge && k->here && place_in(heir, k->id.uuid) == GPI_UNKNOWN32 &&
            make_single(d, k->id.pci) == GPI_NO_GAUGE)
            return false;
    }
    return true;
}

void gpi_reset_part(gpud_dispatcher *d, uint32_t gauge, uint32_t heir)
{
    const struct gpi_gauge *h = heir == GPI_NO_GAUGE ? NULL : d->dev.gauge[heir];

    if (!singles_are_made(d, gauge, h))
        return; /* the next step tries again */
    for (uint32_t i = 0; i < d->dev.n; i++) {
        struct gpi_known_device *k = &d->dev.row[i];
        const uint32_t place = place_in(h, k->id.uuid);
        if (k->gauge != gauge || !k->here)
            continue;
        k->gauge = place == GPI_UNKNOWN32 ? find_single(d, k->id.pci) : heir;
        k->place = place == GPI_UNKNOWN32 ? 0 : place;
        k->silent = false;
        k->health.deaf = false;     /* the next monitor reports it */
        if (place != GPI_UNKNOWN32) /* a reading under way ends with the old monitor */
            k->look_at = d->now;
    }
}

/* Returns true if this gauge reads the GPU, and the GPU must stay open. */
static bool needs(const gpud_dispatcher *d, uint32_t gauge, const char *pci)
{
    for (uint32_t i = 0; i < d->dev.n; i++)
        if (d->dev.row[i].gauge == gauge && is_on(&d->dev.row[i], pci))
            return !may_go(d, pci);
    return false;
}

static bool has_heir(const gpud_dispatcher *d, uint32_t gauge)
{
    for (uint32_t i = 0; i < d->dev.n_gauges; i++)
        if (d->dev.gauge[i] && d->dev.gauge[i]->takes_over == gauge)
            return true;
    return false;
}

/* Returns the GPU's address: a monitor that opened it while it was lost may not know that. */
static const char *address_of(const gpud_dispatcher *d, const struct gpi_device *x)
{
    for (uint32_t i = 0; i < d->dev.n && !x->pci[0]; i++)
        if (d->dev.row[i].here && strcmp(d->dev.row[i].id.uuid, x->uuid) == 0)
            return d->dev.row[i].id.pci;
    return x->pci;
}

/* Returns true if the gauge's monitor has a GPU open that it should not. */
static bool is_to_part(const gpud_dispatcher *d, uint32_t gauge)
{
    const struct gpi_gauge *g = d->dev.gauge[gauge];
    const struct gpi_monitor *m = &g->m;

    if (g->provider != GPI_PROVIDER_NVML || g->single || g->takes_over != GPI_NO_GAUGE ||
        has_heir(d, gauge))
        return false;
    for (uint32_t x = 0; x < m->n; x++) {
        const char *pci = address_of(d, &m->device[x]);
        if (*pci && !needs(d, gauge, pci))
            return true;
    }
    return false;
}

/* Returns the PCI addresses of its devices that stay, with blanks between them; NULL if malloc
 * fails, or one address is not known. */
static char *those_that_stay(const gpud_dispatcher *d, uint32_t gauge)
{
    const size_t room = d->dev.n * (sizeof d->dev.row->id.pci + 1) + 1;
    char *list = calloc(1, room);

    for (uint32_t i = 0; list && i < d->dev.n; i++) {
        const struct gpi_known_device *k = &d->dev.row[i];
        const size_t n = strlen(list);
        if (k->gauge != gauge || !k->here)
            continue;
        if (!k->id.pci[0]) {
            free(list);
            return NULL;
        }
        if (!strstr(list, k->id.pci) && !may_go(d, k->id.pci))
            snprintf(list + n, room - n, "%s%s", n ? " " : "", k->id.pci);
    }
    return list;
}

static bool start_heir(gpud_dispatcher *d, uint32_t gauge, char *only)
{
    struct gpi_gauge *h = NULL;
    uint32_t heir;

    if (gpi_gauge_open(&h, d->spawner.fd, GPI_PROVIDER_NVML, 0, only, NULL)) {
        free(only);
        return false;
    }
    h->takes_over = gauge;
    if (gpi_gauge_adopt(d, h, &heir) == 0)
        return true;
    gpi_monitor_dismiss(&h->m);
    gpi_gauge_free(h);
    return false;
}

static void begin_to_part(gpud_dispatcher *d, uint32_t gauge)
{
    struct gpi_gauge *g = d->dev.gauge[gauge];
    char *only = those_that_stay(d, gauge);
    bool begun = only != NULL;

    g->parts_at = gpi_time_add(d->now, gpi_time_doubled(AGAIN_NS, g->partings++, AGAIN_MAX_NS));
    if (begun && *only)
        begun = start_heir(d, gauge, only);
    else
        free(only);
    if (begun && !has_heir(d, gauge))
        gpi_reset_part(d, gauge, GPI_NO_GAUGE);
}

uint64_t gpi_resets_step(gpud_dispatcher *d)
{
    uint64_t at = GPI_NEVER;

    if (d->spawner.gone)
        return at; /* no monitor can be started any more */
    for (uint32_t i = 0; i < d->dev.n_gauges; i++) {
        if (!d->dev.gauge[i] || !is_to_part(d, i))
            continue;
        if (d->dev.gauge[i]->parts_at <= d->now)
            begin_to_part(d, i);
        else
            at = gpi_time_min(at, d->dev.gauge[i]->parts_at);
    }
    gpi_gauges_release(d); /* gauges that have parted with all devices */
    for (uint32_t i = 0; i < d->dev.n_gauges; i++)
        if (d->dev.gauge[i] && d->dev.gauge[i]->single)
            at = gpi_time_min(at, keep_single(d, i));
    return at;
}
