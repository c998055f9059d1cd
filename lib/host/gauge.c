/* SPDX-License-Identifier: MIT */
/*
 * gauge.c - the monitors that read the devices of a dispatcher.
 *
 * A reading of a device is asked for where something needs one: once a second while a task runs there
 * or somebody has looked within the last 2 s, when the device's way back wants it, and while a start
 * waits for its memory.  Else nothing is asked and no timer is set.                        [C20]
 *
 * A monitor that does not answer is left alone, and its devices are UNKNOWN; one that has died is
 * started again, after a wait that doubles.  Either way tasks go on: nothing on their way waits here.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/driver.h"
#include "device/numbers.h"
#include "host/act.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/slot.h"

#define PERIOD_NS GPI_S           /* between readings of a device that runs something */
#define LOOKED_NS (2 * GPI_S)     /* so long somebody who has looked counts as looking */
#define AGAIN_NS (500 * GPI_MS)   /* before a dead monitor is started again, doubling */
#define AGAIN_MAX_NS (60 * GPI_S)
#define LIVED_NS (60 * GPI_S)     /* one that lived so long had no fault of its own */

/* ---- birth and death ---- */

struct gpi_gauge *gpi_gauge_new(enum gpi_provider_kind provider, uint32_t n)
{
    struct gpi_gauge *g = calloc(1, sizeof *g);

    if (!g)
        return NULL;
    g->m.fd = -1;
    g->provider = provider;
    g->n = n;
    g->again_at = GPI_NEVER;
    g->takes_over = GPI_NO_GAUGE;
    g->zero = g->began_at = gpi_now();
    for (uint32_t i = 0; i < GPI_SCRIPT_TRIGGERS_MAX; i++)
        g->fired[i] = GPI_NEVER;
    return g;
}

int gpi_gauge_open(struct gpi_gauge **ret_g, int connection, enum gpi_provider_kind provider,
                   uint32_t n, char *script, struct gpud_error *e)
{
    struct gpi_gauge *g = gpi_gauge_new(provider, n);
    int r;

    if (!g)
        return GPUD_ENOMEM;
    r = provider == GPI_PROVIDER_FAKE ? gpi_script_parse(&g->parsed, script, n, e) : 0;
    if (r == 0)
        r = gpi_monitor_start(&g->m, connection, provider, n, script, g->zero, e);
    if (r) {
        gpi_gauge_free(g);
        return r;
    }
    g->script = script;
    *ret_g = g;
    return 0;
}

void gpi_gauge_free(struct gpi_gauge *g)
{
    if (!g)
        return;
    gpi_monitor_fini(&g->m);
    gpi_script_free(g->parsed);
    free(g->script);
    free(g);
}

int gpi_gauge_adopt(gpud_dispatcher *d, struct gpi_gauge *g, uint32_t *ret_gauge)
{
    uint32_t i = 0;

    while (i < d->dev.n_gauges && d->dev.gauge[i])
        i++;
    if (i == GPI_GAUGES)
        return GPUD_EFULL;
    if (!g->m.gone && gpi_drive_watch(d, g->m.fd, GPI_FD_MONITOR, i))
        return GPUD_ESYSTEM;
    d->dev.gauge[i] = g;
    d->dev.n_gauges += i == d->dev.n_gauges;
    *ret_gauge = i;
    return 0;
}

/* In a forked child the process is left alone: it is the host's. */
void gpi_gauge_hang_up(gpud_dispatcher *d, struct gpi_gauge *g)
{
    if (*d->alive)
        gpi_monitor_dismiss(&g->m);
    gpi_drive_close(d, &g->m.fd);
}

static void let_go(gpud_dispatcher *d, uint32_t i)
{
    gpi_gauge_hang_up(d, d->dev.gauge[i]);
    gpi_gauge_free(d->dev.gauge[i]);
    d->dev.gauge[i] = NULL;
}

static bool has_devices(const gpud_dispatcher *d, uint32_t gauge)
{
    for (uint32_t i = 0; i < d->dev.n; i++)
        if (d->dev.row[i].gauge == gauge && d->dev.row[i].here)
            return true;
    return false;
}

static bool is_used(const gpud_dispatcher *d, uint32_t gauge)
{
    const uint32_t before = d->dev.gauge[gauge]->takes_over;

    return has_devices(d, gauge) ||
           (before != GPI_NO_GAUGE && d->dev.gauge[before] && has_devices(d, before));
}

void gpi_gauges_release(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->dev.n_gauges; i++)
        if (d->dev.gauge[i] && !is_used(d, i))
            let_go(d, i);
}

void gpi_gauges_fini(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->dev.n_gauges; i++)
        if (d->dev.gauge[i])
            let_go(d, i);
    d->dev.n_gauges = 0;
}

/* It is gone: what it read is unknown until another one says so. */
static void lost(gpud_dispatcher *d, uint32_t i)
{
    struct gpi_gauge *g = d->dev.gauge[i];
    uint64_t wait = gpi_time_doubled(AGAIN_NS, g->deaths++, AGAIN_MAX_NS);

    gpi_gauge_hang_up(d, g);
    g->again_at = d->spawner.gone ? GPI_NEVER : d->now + wait;
    gpi_reset_heir_failed(d, i);
    d->stats.count.monitor_deaths++;
    gpi_log(d, GPUD_LEVEL_WARNING, GPUD_NO_SLOT, "the monitor process has died; tasks go on, %s",
            d->spawner.gone ? "devices are not read any more, since the spawner is gone too"
                            : "the host starts another monitor");
    for (uint32_t k = 0; k < d->dev.n; k++)
        if (d->dev.row[k].gauge == i && d->dev.row[k].here)
            gpi_judge_silence(d, k, 0);
}

void gpi_gauge_again(gpud_dispatcher *d, uint32_t i)
{
    struct gpi_gauge *g = d->dev.gauge[i];

    g->again_at = GPI_NEVER;
    g->began_at = d->now;
    gpi_monitor_fini(&g->m);
    if (d->spawner.gone)
        return;
    if (gpi_monitor_start(&g->m, d->spawner.fd, g->provider, g->n, g->script, g->zero, NULL) ||
        gpi_drive_watch(d, g->m.fd, GPI_FD_MONITOR, i))
        lost(d, i);
}

/* ---- what they say ---- */

/* Some monitors open a few GPUs of the machine alone (reset.c). */
static bool sees_all(const struct gpi_gauge *g)
{
    return g->provider != GPI_PROVIDER_NVML || !g->script;
}

static void take_reading(gpud_dispatcher *d, uint32_t device, const struct gpi_sample *s)
{
    d->dev.row[device].sample = *s;
    d->dev.row[device].silent = false;
    gpi_judge_sample(d, device);
    gpi_vacancy_look(d, device);
}

/* It is not in the enumeration.  Where it alone was to be opened, NVML's code for that is a
 * reading. */
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

/* Another monitor may count them in another order; a device that is not there is one that nothing is read of. */
static void find_places(gpud_dispatcher *d, uint32_t gauge)
{
    const struct gpi_monitor *m = &d->dev.gauge[gauge]->m;

    for (uint32_t i = 0; i < d->dev.n; i++) {
        struct gpi_known_device *k = &d->dev.row[i];
        if (k->gauge != gauge || !k->here)
            continue;
        k->silent = k->health.deaf = false; /* else it says so itself */
        k->place = 0;
        while (k->place < m->n && strcmp(m->device[k->place].uuid, k->id.uuid) != 0)
            k->place++;
        if (k->place == m->n) {
            not_there(d, d->dev.gauge[gauge], i);
            continue;
        }
        if (sees_all(d->dev.gauge[gauge])) /* else it is known from before, and counted by no one now */
            gpi_number_note(k, m);
        k->look_at = d->now; /* it is unknown until then */
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
                gpi_reset_heir_failed(d, gauge);
            break;
        case GPI_MONITOR_SAMPLED:
            sampled(d, gauge, place);
            break;
        case GPI_MONITOR_INCIDENT: /* where a reset is waited for, readings judge alone, with their waits */
            if (incident.kind == GPI_INCIDENT_DEAF || !gpi_reset_waits(d, gauge))
                gpi_judge_incident(d, gauge, &incident);
            break;
        case GPI_MONITOR_LISTENS:
            gpi_reset_heir_listens(d, gauge);
            break;
        case GPI_MONITOR_GONE:
            lost(d, gauge);
            break;
        case GPI_MONITOR_NOTHING:
            gpi_devices_rouse(d);
            return;
        }
    }
    gpi_devices_rouse(d);
}

/* ---- when they are asked ---- */

static bool can_read(const gpud_dispatcher *d, const struct gpi_known_device *k)
{
    const struct gpi_gauge *g = k->gauge == GPI_NO_GAUGE ? NULL : d->dev.gauge[k->gauge];

    return g && g->m.fd >= 0 && !g->m.gone && g->m.enumerated && k->place < g->m.n;
}

bool gpi_device_reads(const gpud_dispatcher *d, uint32_t device)
{
    return can_read(d, &d->dev.row[device]) && !d->dev.row[device].silent;
}

/* Since when a reading of it is under way, 0 = none is. */
static uint64_t asked_at(const gpud_dispatcher *d, const struct gpi_known_device *k)
{
    return d->dev.gauge[k->gauge]->m.asked_at[k->place];
}

static bool is_busy(const gpud_dispatcher *d, uint32_t device)
{
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slot[i].sent && gpi_slot_has(&d->slot[i], device))
            return true;
    return false;
}

/* When a reading of it is wanted. */
static uint64_t wanted_at(const gpud_dispatcher *d, uint32_t device)
{
    const struct gpi_known_device *k = &d->dev.row[device];
    const bool looked = d->dev.looked_at && d->now - d->dev.looked_at < LOOKED_NS;
    uint64_t at = gpi_time_min(k->health.look_at, k->look_at);

    if (k->sample.at == 0)
        return 0; /* the first one, so that it is known what is normal */
    if (looked || is_busy(d, device))
        at = gpi_time_min(at, k->sample.at + PERIOD_NS);
    return at;
}

/* Does what is due with one device; gives when to look again. */
static uint64_t step(gpud_dispatcher *d, uint32_t device)
{
    struct gpi_known_device *k = &d->dev.row[device];
    uint64_t at = GPI_NEVER, since;

    if (k->health.try_at <= d->now && !gpi_health_starts(&k->health))
        gpi_hear_device(d, device, GPI_EV_TRY); /* it comes when a slot is free for it */
    else if (!gpi_health_starts(&k->health))
        at = k->health.try_at;
    if (!can_read(d, k))
        return at; /* a new monitor is news */
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
    d->dev.roused = true; /* what is done below need not ask for another round */
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

void gpi_devices_rouse(gpud_dispatcher *d)
{
    if (!d->dev.n_gauges)
        return;
    gpi_heap_set(&d->timers, GPI_TIMER_DEVICES, d->now);
}
