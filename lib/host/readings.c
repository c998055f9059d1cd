/* SPDX-License-Identifier: MIT */
/*
 * readings.c - the reports of monitors, and when the host requests them.
 *
 * The host requests a reading of a device if something needs one: once a second while a task runs
 * there, while foreign processes may keep a task of a pooled dispatcher from it, or while a thread
 * has read the rows within the last 2 s; when a canary or a reset needs it; and while a start waits
 * for its memory.  Otherwise it requests nothing and sets no timer.                          [C20]
 *
 * If a monitor does not reply, the host leaves it alone, and its devices are UNKNOWN.  Tasks
 * continue: none waits for a monitor.
 */
#include <string.h>

#include "base/clock.h"
#include "device/driver.h"
#include "host/act.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/external.h"
#include "host/slot.h"

#define PERIOD_NS GPI_S           /* between readings of a device that runs a task */
#define LOOKED_NS (2 * GPI_S)     /* how long a request for rows keeps readings going */
#define AGAIN_MAX_NS (60 * GPI_S) /* the longest wait between searches for a missing GPU */
#define LIVED_NS (60 * GPI_S)     /* a monitor that lived this long had no fault of its own */

/* ---- reports of monitors ---- */

/* Some monitors open only a few GPUs of the machine (reset.c). */
static bool sees_all(const struct gpi_gauge *g)
{
    return g->provider != GPI_PROVIDER_NVML || !g->script;
}

static void take_reading(gpud_dispatcher *d, uint32_t device, const struct gpi_sample *s)
{
    d->dev.row[device].sample = *s;
    d->dev.row[device].silent = false;
    gpi_judge_sample(d, device);
    gpi_device_usage(d, device);
    gpi_vacancy_look(d, device);
}

/* The device is not in the enumeration.  If the monitor was to open only this GPU, NVML's code for
 * the failure is a reading. */
static void not_there(gpud_dispatcher *d, const struct gpi_gauge *g, uint32_t device)
{
    struct gpi_known_device *k = &d->dev.row[device];
    struct gpi_sample s;

    if (g->single && g->m.driver.unopened) {
        gpi_sample_unknown(&s, d->now);
        s.code = g->m.driver.unopened;
        s.reading = gpi_reading_of((int)s.code);
        take_reading(d, device, &s);
    } else {
        gpi_judge_silence(d, device, 0);
    }
    k->look_at = g->single && gpi_health_starts(&k->health) ? d->now + AGAIN_MAX_NS : GPI_NEVER;
}

/* Another monitor may number devices in another order; a device that it lacks has no readings. */
static void find_places(gpud_dispatcher *d, uint32_t gauge)
{
    const struct gpi_monitor *m = &d->dev.gauge[gauge]->m;

    for (uint32_t i = 0; i < d->dev.n; i++) {
        struct gpi_known_device *k = &d->dev.row[i];
        if (k->gauge != gauge || !k->here)
            continue;
        k->silent = k->health.deaf = false; /* else this monitor reports it */
        k->place = 0;
        while (k->place < m->n && strcmp(m->device[k->place].uuid, k->id.uuid) != 0)
            k->place++;
        if (k->place == m->n) {
            not_there(d, d->dev.gauge[gauge], i);
            continue;
        }
        if (sees_all(d->dev.gauge[gauge])) /* else its number is from before */
            gpi_number_note(k, m);
        k->look_at = d->now; /* its health is unknown until then */
    }
}

static void sampled(gpud_dispatcher *d, uint32_t gauge, uint32_t place)
{
    struct gpi_gauge *g = d->dev.gauge[gauge];

    if (d->now - g->began_at > LIVED_NS)
        g->deaths = 0;
    for (uint32_t i = 0; i < d->dev.n; i++)
        if (d->dev.row[i].gauge == gauge && d->dev.row[i].place == place && d->dev.row[i].here)
            take_reading(d, i, &g->m.sample[place]);
}

static void judge_early(gpud_dispatcher *d, uint32_t gauge)
{
    struct gpi_gauge *g = d->dev.gauge[gauge];

    for (uint32_t i = 0; i < g->n_early; i++)
        gpi_judge_incident(d, gauge, &g->early[i]);
    g->n_early = 0;
}

/* The heir takes over from the old monitor, if that still lives. */
static void heir_listens(gpud_dispatcher *d, uint32_t heir)
{
    struct gpi_gauge *h = d->dev.gauge[heir];
    const uint32_t gauge = h->takes_over;

    h->takes_over = GPI_NO_GAUGE;
    if (gauge == GPI_NO_GAUGE || !d->dev.gauge[gauge])
        return;
    gpi_on_monitor(d, gauge); /* messages that the old monitor has sent */
    gpi_reset_part(d, gauge, heir);
}

void gpi_on_monitor(gpud_dispatcher *d, uint32_t gauge)
{
    struct gpi_gauge *g = gauge < d->dev.n_gauges ? d->dev.gauge[gauge] : NULL;
    struct gpi_incident incident;
    uint32_t place;

    if (g)
        judge_early(d, gauge);
    while (g && g->m.fd >= 0) {
        switch (gpi_monitor_read(&g->m, &place, &incident)) {
        case GPI_MONITOR_DRIVER:
            break;
        case GPI_MONITOR_ENUMERATED:
            find_places(d, gauge);
            if (!g->m.n)
                g->takes_over = GPI_NO_GAUGE; /* it ends; the old monitor tries again */
            break;
        case GPI_MONITOR_SAMPLED:
            sampled(d, gauge, place);
            break;
        case GPI_MONITOR_INCIDENT: /* while a reset is awaited, only readings count */
            if (incident.kind == GPI_INCIDENT_DEAF || !gpi_reset_waits(d, gauge))
                gpi_judge_incident(d, gauge, &incident);
            break;
        case GPI_MONITOR_LISTENS:
            heir_listens(d, gauge);
            break;
        case GPI_MONITOR_GONE:
            gpi_gauge_lost(d, gauge);
            break;
        case GPI_MONITOR_NOTHING:
            gpi_devices_rouse(d);
            return;
        }
    }
    gpi_devices_rouse(d);
}

/* ---- requests ---- */

/* Returns the time of its unanswered reading request, 0 = none. */
static uint64_t asked_at(const gpud_dispatcher *d, const struct gpi_known_device *k)
{
    return d->dev.gauge[k->gauge]->m.asked_at[k->place];
}

static bool is_busy(const gpud_dispatcher *d, uint32_t device)
{
    if (d->dev.row[device].foreign && gpi_pool_waits(d))
        return true;
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slot[i].sent && gpi_slot_has(&d->slot[i], device))
            return true;
    for (uint32_t i = 0; i < d->outside.n; i++)
        if (gpi_grant_has(&d->outside.of[d->outside.task[i]], device))
            return true;
    return false;
}

static bool is_looked_at(const gpud_dispatcher *d)
{
    return d->dev.looked_at && d->now - d->dev.looked_at < LOOKED_NS;
}

/* While threads keep requesting rows, the timer has the next reading already. */
void gpi_devices_look(gpud_dispatcher *d)
{
    const bool goes_on = is_looked_at(d);

    d->dev.looked_at = d->now;
    if (goes_on)
        return;
    gpi_devices_rouse(d);
    gpi_drive_wake(d);
}

/* Returns when the host needs a reading of it. */
static uint64_t wanted_at(const gpud_dispatcher *d, uint32_t device)
{
    const struct gpi_known_device *k = &d->dev.row[device];
    uint64_t at = gpi_time_min(k->health.look_at, k->look_at);

    if (k->sample.at == 0)
        return 0; /* the first one shows which values are normal */
    if (is_looked_at(d) || is_busy(d, device))
        at = gpi_time_min(at, k->sample.at + PERIOD_NS);
    return at;
}

/* Performs the due actions of one device.  Returns when the next one is due. */
static uint64_t step(gpud_dispatcher *d, uint32_t device)
{
    struct gpi_known_device *k = &d->dev.row[device];
    uint64_t at = GPI_NEVER, since;

    if (k->health.try_at <= d->now && !gpi_health_starts(&k->health))
        gpi_hear_device(d, device, GPI_EV_TRY); /* the canary starts when a slot is free for it */
    else if (!gpi_health_starts(&k->health))
        at = k->health.try_at;
    if (!gpi_device_can_read(d, k))
        return at; /* a new monitor calls this again */
    if (!asked_at(d, k) && wanted_at(d, device) <= d->now) {
        k->look_at = GPI_NEVER;
        (void)gpi_monitor_ask(&d->dev.gauge[k->gauge]->m, k->place, gpi_now());
    }
    since = asked_at(d, k);
    if (since && !k->silent && since + d->set.health.stale <= d->now) {
        k->silent = true;
        gpi_judge_silence(d, device, since);
        gpi_vacancy_look(d, device);
    }
    if (since)
        return k->silent ? at : gpi_time_min(at, since + d->set.health.stale);
    return gpi_time_min(at, wanted_at(d, device));
}

void gpi_devices_on_timer(gpud_dispatcher *d)
{
    uint64_t at = GPI_NEVER;

    gpi_heap_remove(&d->timers, GPI_TIMER_DEVICES);
    gpi_gauges_release(d);
    d->dev.roused = true; /* the work below need not request another round */
    for (uint32_t i = 0; i < d->dev.n_gauges; i++) {
        if (d->dev.gauge[i])
            judge_early(d, i);
        if (d->dev.gauge[i] && !d->dev.gauge[i]->single && d->dev.gauge[i]->again_at <= d->now)
            gpi_gauge_again(d, i);
        if (d->dev.gauge[i] && !d->dev.gauge[i]->single)
            at = gpi_time_min(at, d->dev.gauge[i]->again_at);
    }
    at = gpi_time_min(at, gpi_resets_step(d));
    for (uint32_t i = 0; i < d->dev.n; i++)
        if (d->dev.row[i].gauge != GPI_NO_GAUGE && d->dev.row[i].here)
            at = gpi_time_min(at, step(d, i));
    d->dev.roused = at != GPI_NEVER && at <= d->now + PERIOD_NS;
    if (at != GPI_NEVER)
        gpi_heap_set(&d->timers, GPI_TIMER_DEVICES, at > d->now ? at : d->now + GPI_MS);
}
