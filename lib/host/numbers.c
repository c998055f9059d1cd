/* SPDX-License-Identifier: MIT */
/*
 * numbers.c - whether a worker finds its GPUs by number or by UUID in CUDA_VISIBLE_DEVICES (option
 * visible).
 *
 * With AUTO the host decides at each start of a worker, since numbers change when a GPU falls off
 * the bus.  A wrong decision costs one start: a worker that finds another GPU by its number fails
 * before setup and notes it in its page.  From then on all workers get UUIDs, until a monitor lists
 * all GPUs anew.
 */
#include "device/numbers.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/slot.h"

void gpi_number_note(struct gpi_known_device *k, const struct gpi_monitor *m)
{
    k->number = gpi_number_of(m->device, m->n, k->place);
    k->doubted = k->beside_mig = false;
    for (uint32_t i = 0; i < m->n; i++)
        k->beside_mig |= m->device[i].mig_parts || m->device[i].kind == GPUD_DEVICE_MIG;
}

/* CUDA leaves out a lost GPU, and numbers the GPUs behind it differently. */
static bool has_lost_one(const gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->dev.n; i++) {
        const struct gpi_known_device *k = &d->dev.row[i];
        if (k->here && k->health.state == GPUD_HEALTH_LOST)
            return true;
    }
    return false;
}

/* If one number is in doubt, all are. */
static void doubt_all(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->dev.n; i++)
        d->dev.row[i].doubted = true;
}

static bool are_certain(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct gpi_known_device *k = &d->dev.row[s->devices[i]];
        const struct gpi_gauge *g = d->dev.gauge[k->gauge];
        if (k->doubted || k->beside_mig || k->place >= g->m.n) /* NVML lost it, or not read yet */
            return false;
        if (!gpi_number_is_certain(&g->m.device[k->place], k->number, gpi_numbers_directory))
            return false;
    }
    return !has_lost_one(d);
}

void gpi_numbers_order(gpud_dispatcher *d, struct gpi_slot *s)
{
    struct gpi_page *p = s->ch.page;

    p->visible = GPUD_VISIBLE_UUID;
    if (!gpi_slot_is_read(d, s))
        return;
    if (atomic_load(&p->miscounted))
        doubt_all(d);
    if (s->canary == GPI_CANARY_ONLY) /* no code that reads the variable runs in it */
        return;
    if (gpi_slot_class(d, s)->set.visible != GPUD_VISIBLE_AUTO || are_certain(d, s))
        p->visible = gpi_slot_class(d, s)->set.visible;
    for (uint32_t i = 0; i < s->n_devices; i++)
        p->number[i] = d->dev.row[s->devices[i]].number;
}
