/* SPDX-License-Identifier: MIT */
/*
 * judge.c - readings, incidents and canaries of a device go into its health (device/health.h).  The
 * host reports each change to the core, which decides the consequences for the device's slots.
 */
#include <stdio.h>

#include "device/kin.h"
#include "host/act.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/event.h"
#include "host/slot.h"

static void count_fault(gpud_dispatcher *d, enum gpi_measure measure)
{
    d->stats.count.device_faults += measure == GPI_MEASURE_RESTART ||
                                    measure == GPI_MEASURE_DRAIN || measure == GPI_MEASURE_FENCE;
}

static enum gpi_use use_of(enum gpi_measure measure)
{
    if (measure == GPI_MEASURE_RESTART || measure == GPI_MEASURE_FENCE)
        return GPI_USE_KILL;
    return measure == GPI_MEASURE_DRAIN ? GPI_USE_LEAVE : GPI_USE_NONE;
}

/* Notes the reason that the outcomes of the killed workers' tasks carry. */
static void blame(gpud_dispatcher *d, uint32_t device)
{
    const struct gpi_known_device *k = &d->dev.row[device];

    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        const enum gpi_life life = gpi_slot_life(d, s);
        if (life >= GPI_LIFE_BOOT && life <= GPI_LIFE_END && gpi_slot_has(s, device))
            snprintf(s->blame, sizeof s->blame, "%s failed: %s", k->id.name, k->health.evidence);
    }
}

static void tell_core(gpud_dispatcher *d, uint32_t device, enum gpi_use use)
{
    struct gpi_known_device *k = &d->dev.row[device];

    if (use == GPI_USE_KILL)
        blame(d, device);
    if (k->may != gpi_judge_may(k))
        k->unused_since = d->now;
    k->may = gpi_judge_may(k);
    gpi_hear(d, (struct gpi_sched_event){
                    .kind = GPI_EV_DEVICE, .device = device, .how = k->may, .what = use });
    gpi_slot_barred(d, device);
}

/* Reports a change of health to the user and to the core, and sets the timer for readings. */
static void follow(gpud_dispatcher *d, uint32_t device, const struct gpi_health *before,
                   enum gpi_measure measure, uint32_t xid)
{
    struct gpi_known_device *k = &d->dev.row[device];

    count_fault(d, measure);
    if (before->state != k->health.state || measure != GPI_MEASURE_NONE)
        gpi_device_tell(d, device, xid, "%s", k->health.evidence);
    if (before->state != k->health.state || measure != GPI_MEASURE_NONE ||
        k->may != gpi_judge_may(k))
        tell_core(d, device, use_of(measure));
    gpi_devices_rouse(d);
}

/* ---- by the monitor ---- */

void gpi_judge_sample(gpud_dispatcher *d, uint32_t device)
{
    struct gpi_known_device *k = &d->dev.row[device];
    const struct gpi_health before = k->health;

    follow(d, device, &before, gpi_health_sample(&k->health, &d->set.health, &k->sample, d->now),
           0);
}

void gpi_judge_silence(gpud_dispatcher *d, uint32_t device, uint64_t asked_at)
{
    struct gpi_known_device *k = &d->dev.row[device];
    const struct gpi_health before = k->health;

    follow(d, device, &before, gpi_health_silence(&k->health, &d->set.health, asked_at, d->now), 0);
}

/* Returns true if the incident is a fault that counts, not caused by a kill of the host. */
static bool concern(gpud_dispatcher *d, uint32_t device, const struct gpi_incident *i)
{
    struct gpi_known_device *k = &d->dev.row[device];
    const struct gpi_health before = k->health;
    const uint32_t xid = i->kind == GPI_INCIDENT_XID ? (uint32_t)i->number : 0;
    enum gpi_measure measure = gpi_health_incident(&k->health, &d->set.health, i, d->now);

    if (k->health.xids != before.xids && measure == GPI_MEASURE_NONE &&
        before.state == k->health.state)
        gpi_log(d, GPUD_LEVEL_INFO, GPUD_NO_SLOT,
                "%s: XID %u (%s); the host counts it, the workers go on (xid_rules)", k->id.name,
                xid, gpi_xid_text(xid));
    follow(d, device, &before, measure, xid);
    return k->health.xids != before.xids;
}

/* Each instance of a GPU has its own count; the dispatcher counts the incident once. */
void gpi_judge_incident(gpud_dispatcher *d, uint32_t gauge, const struct gpi_incident *i)
{
    const struct gpi_monitor *m = &d->dev.gauge[gauge]->m;
    const struct gpi_device *at = i->device < m->n ? &m->device[i->device] : NULL;
    bool counts = false;

    for (uint32_t k = 0; k < d->dev.n; k++)
        if (d->dev.row[k].gauge == gauge && d->dev.row[k].here && gpi_incident_concerns(
                i, &d->set.health.xids, at, &d->dev.row[k].id))
            counts |= concern(d, k, i);
    d->stats.count.xids += counts;
}

/* ---- findings of the host itself ---- */

void gpi_judge_canary(gpud_dispatcher *d, uint32_t device, bool passed, const char *text)
{
    struct gpi_known_device *k = &d->dev.row[device];
    const struct gpi_health before = k->health;

    follow(d, device, &before,
           gpi_health_canary(&k->health, &d->set.health, passed, text, d->now), 0);
}

void gpi_judge_suspect(gpud_dispatcher *d, uint32_t device, const char *why)
{
    struct gpi_known_device *k = &d->dev.row[device];
    const struct gpi_health before = k->health;

    follow(d, device, &before, gpi_health_suspect(&k->health, &d->set.health, why, d->now), 0);
}

void gpi_judge_quarantine(gpud_dispatcher *d, uint32_t device, const char *why)
{
    struct gpi_known_device *k = &d->dev.row[device];
    const struct gpi_health before = k->health;

    follow(d, device, &before, gpi_health_quarantine(&k->health, &d->set.health, why, d->now), 0);
}

void gpi_judge_return(gpud_dispatcher *d, uint32_t device)
{
    struct gpi_known_device *k = &d->dev.row[device];
    const struct gpi_health before = k->health;

    follow(d, device, &before, gpi_health_return(&k->health, &d->set.health, d->now), 0);
}

void gpi_judge_killed(gpud_dispatcher *d, const struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++) {
        struct gpi_known_device *k = &d->dev.row[s->devices[i]];
        gpi_health_killed(&k->health, &d->set.health, d->now);
        if (k->may != gpi_judge_may(k))
            tell_core(d, s->devices[i], GPI_USE_NONE);
    }
}
