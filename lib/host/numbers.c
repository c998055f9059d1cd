/* SPDX-License-Identifier: MIT */
/*
 * numbers.c - whether a worker finds its GPUs by number or by UUID in CUDA_VISIBLE_DEVICES
 * (option visible).
 *
 * Under AUTO the host decides at each start of a worker, since numbers move when a GPU falls off the
 * bus.  A wrong decision costs one start: a worker that finds another GPU by its number fails before
 * setup and notes it in its page, and from then on the workers on GPUs of that enumeration get UUIDs.
 */
#include "device/numbers.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/slot.h"

void gpi_number_note(struct gpi_known_device *k, const struct gpi_monitor *m)
{
    k->number = gpi_number_of(m->device, m->n, k->place);
    k->beside_mig = false;
    for (uint32_t i = 0; i < m->n; i++)
        k->beside_mig |= m->device[i].mig_parts || m->device[i].kind == GPUD_DEVICE_MIG;
}

/* CUDA leaves out a GPU that is lost, and counts those behind it otherwise. */
static bool has_lost_one(const gpud_dispatcher *d, uint32_t gauge)
{
    for (uint32_t i = 0; i < d->dev.n; i++) {
        const struct gpi_known_device *k = &d->dev.row[i];
        if (k->gauge == gauge && !k->removed && k->health.state == GPUD_HEALTH_LOST)
            return true;
    }
    return false;
}

static bool are_certain(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    const uint32_t gauge = d->dev.row[s->devices[0]].gauge; /* of all: they were added together */
    const struct gpi_gauge *g = d->dev.gauge[gauge];

    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct gpi_known_device *k = &d->dev.row[s->devices[i]];
        if (k->beside_mig || k->place >= g->m.n) /* NVML does not list it any more, or nothing yet */
            return false;
        if (!gpi_number_is_certain(&g->m.device[k->place], k->number, gpi_numbers_directory))
            return false;
    }
    return !g->miscounts && !has_lost_one(d, gauge);
}

void gpi_numbers_order(gpud_dispatcher *d, struct gpi_slot *s)
{
    struct gpi_page *p = s->ch.page;

    p->visible = GPUD_VISIBLE_UUID;
    if (!s->watched)
        return;
    if (atomic_load(&p->miscounted))
        d->dev.gauge[d->dev.row[s->devices[0]].gauge]->miscounts = true;
    if (d->set.visible != GPUD_VISIBLE_AUTO || are_certain(d, s))
        p->visible = d->set.visible;
    for (uint32_t i = 0; i < s->n_devices; i++)
        p->number[i] = d->dev.row[s->devices[i]].number;
}
