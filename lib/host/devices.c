/* SPDX-License-Identifier: MIT */
/* devices.c - the table of devices: their rows, their monitors, and the events about them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "device/row.h"
#include "host/act.h"
#include "host/core.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/event.h"
#include "host/slot.h"
#include "os/memory.h"

#define MOST ((size_t)GPI_SLOTS_MAX * GPI_DEVICES)

int gpi_devices_init(gpud_dispatcher *d)
{
    d->dev.row = gpi_memory_private(MOST * sizeof *d->dev.row);
    return d->dev.row ? 0 : -1;
}

void gpi_devices_fini(gpud_dispatcher *d)
{
    gpi_memory_unmap(d->dev.row, MOST * sizeof *d->dev.row);
}

/* ---- identities ---- */

static uint64_t kill_limit(const gpud_dispatcher *d, const struct gpi_known_device *k)
{
    return k->id.kind == GPUD_DEVICE_GPU || k->id.kind == GPUD_DEVICE_MIG ? d->set.kill_limit_gpu
                                                                          : d->set.kill_limit;
}

uint32_t gpi_device_find(const gpud_dispatcher *d, const char *text)
{
    for (uint32_t i = 0; i < d->dev.n; i++) {
        const struct gpi_known_device *k = &d->dev.row[i];
        if (k->here && (strcmp(k->id.name, text) == 0 || strcmp(k->id.uuid, text) == 0))
            return i;
    }
    return GPI_NO_DEVICE;
}

uint32_t gpi_device_learn(gpud_dispatcher *d, const struct gpi_device *id)
{
    uint32_t at = 0;

    while (at < d->dev.n && (d->dev.row[at].past || strcmp(d->dev.row[at].id.uuid, id->uuid) != 0))
        at++;
    if (at == (d->set.pooled ? GPI_POOL_DEVICES : MOST))
        return GPI_NO_DEVICE;
    if (at == d->dev.n) {
        d->dev.row[at] =
            (struct gpi_known_device){ .id = *id, .gauge = GPI_NO_GAUGE, .look_at = GPI_NEVER };
        d->dev.n++;
    }
    return at;
}

static struct gpi_plan_has has(const struct gpi_device *id)
{
    const bool known = id->compute_major != GPI_UNKNOWN32 && id->compute_minor != GPI_UNKNOWN32;

    return (struct gpi_plan_has){
        .memory = id->memory_total == GPI_UNKNOWN64 ? 0 : id->memory_total,
        .compute = known ? 100 * id->compute_major + id->compute_minor : 0,
    };
}

/* For readers of the log. */
static void note_names(const gpud_dispatcher *d, uint32_t device, const struct gpi_device *id)
{
    const struct {
        const char *word, *text;
    } names[] = {
        { "name", id->name }, { "uuid", id->uuid },           { "model", id->model },
        { "pci", id->pci },   { "profile", id->mig_profile }, { "parent", id->parent_uuid },
    };
    char index[16] = "";

    if (id->index != GPI_UNKNOWN32)
        (void)snprintf(index, sizeof index, "%u", id->index);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        gpi_core_note(d, "device", device, names[i].word, names[i].text);
    gpi_core_note(d, "device", device, "index", index);
}

/* Adds the device to the core, with its present health.  It has no worker yet, so no action
 * follows. */
static void acquaint(gpud_dispatcher *d, uint32_t device)
{
    struct gpi_known_device *k = &d->dev.row[device];

    const struct gpi_plan_has of = has(&k->id);

    if (d->play)
        note_names(d, device, &k->id);
    gpi_core_device_add(d, device, k->gauge != GPI_NO_GAUGE, kill_limit(d, k),
                        d->set.pooled ? &of : NULL);
    gpi_places_join(d, device);
    gpi_device_usage(d, device);
    k->may = gpi_judge_may(k);
    if (k->may == GPI_MAY_OK)
        return;
    gpi_hear(d, (struct gpi_sched_event){ .kind = GPI_EV_DEVICE, .device = device, .how = k->may });
}

/* A device that was here before starts with a new record. */
void gpi_device_bind(gpud_dispatcher *d, const struct gpi_selected *x, uint32_t gauge)
{
    const bool read = x->device.kind != GPUD_DEVICE_CPU;
    const uint32_t device = gpi_device_learn(d, &x->device);
    struct gpi_known_device *k = &d->dev.row[device];

    d->dev.n_foreign -= k->foreign;
    *k = (struct gpi_known_device){
        .id = x->device,
        .gauge = read ? gauge : GPI_NO_GAUGE,
        .place = x->place,
        .look_at = GPI_NEVER,
        .here = true,
        .unused_since = d->now,
    };
    gpi_health_init(&k->health, k->id.kind, d->now);
    if (k->gauge != GPI_NO_GAUGE) {
        const struct gpi_monitor *m = &d->dev.gauge[gauge]->m;
        gpi_number_note(k, m);
        k->sample = m->sample[k->place];
        if (k->sample.at)
            (void)gpi_health_sample(&k->health, &d->set.health, &k->sample, d->now);
    }
    acquaint(d, device);
}

uint32_t gpi_devices_count(const gpud_dispatcher *d)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->dev.n; i++)
        n += d->dev.row[i].here;
    return n;
}

/* Writes the facts that a worker learns about its devices. */
void gpi_device_header(gpud_dispatcher *d, const struct gpi_slot *s, struct gpi_page *p)
{
    p->device_kind = s->n_devices ? d->dev.row[s->devices[0]].id.kind : GPUD_DEVICE_CPU;
    p->cuda = gpi_slot_class(d, s)->set.cuda;
    memset(p->uuid, 0, sizeof p->uuid); /* the last worker may have had more devices */
    for (uint32_t i = 0; i < s->n_devices; i++)
        memcpy(p->uuid[i], d->dev.row[s->devices[i]].id.uuid, sizeof p->uuid[i]);
}

bool gpi_is_ours(const gpud_dispatcher *d, uint32_t pid)
{
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slot[i].pid > 0 && (uint32_t)d->slot[i].pid == pid)
            return true;
    return false;
}

uint64_t gpi_device_kill_limit(const gpud_dispatcher *d, uint32_t device)
{
    return kill_limit(d, &d->dev.row[device]);
}

uint64_t gpi_kill_limit(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return s->n_devices ? kill_limit(d, &d->dev.row[s->devices[0]]) : d->set.kill_limit;
}

/* ---- reports ---- */

void gpi_device_tell(gpud_dispatcher *d, uint32_t device, uint32_t xid, const char *format, ...)
{
    struct gpi_note *n = gpi_note_new(d, GPUD_EVENT_DEVICE, false);
    va_list args;

    if (!n)
        return;
    n->device = device;
    n->health = d->dev.row[device].health.state;
    n->xid = xid;
    va_start(args, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is the line before */
    vsnprintf(n->text, sizeof n->text, format, args);
    va_end(args);
    gpi_note_push(d, n);
}

void gpi_device_note(gpud_dispatcher *d, uint32_t device, enum gpi_sched_note how)
{
    struct gpi_known_device *k = &d->dev.row[device];

    if (how == GPI_NOTE_REMOVED && k->here) {
        k->here = false;
        d->dev.n_foreign -= k->foreign;
        k->foreign = false;
        k->past = d->set.pooled; /* in a plan no number is used again */
        gpi_device_tell(d, device, 0, "removed: its last slot has ended");
    } else if (how == GPI_NOTE_DRAINED) {
        gpi_device_tell(d, device, 0, "drained: its last worker has ended");
    }
    gpi_devices_rouse(d); /* its monitor may go */
}

/* Counts the processes that use it: workers of this host and external work, and all other
 * processes. */
static void report_users(const gpud_dispatcher *d, const struct gpi_sample *s,
                         const bool *outside, struct gpud_device_info *r)
{
    uint64_t most = 0;

    r->memory_ours = r->memory_foreign = GPUD_UNKNOWN64;
    if (!s->at || !s->users_known)
        return;
    r->memory_ours = r->memory_foreign = 0;
    r->foreign_processes = s->n_users > GPI_PROCESSES_MAX ? s->n_users - GPI_PROCESSES_MAX : 0;
    r->foreign_pid = 0;
    for (uint32_t i = 0; i < s->n_users && i < GPI_PROCESSES_MAX; i++) {
        const struct gpi_user *u = &s->user[i];
        const uint64_t memory = u->memory == GPI_UNKNOWN64 ? 0 : u->memory;
        if (outside[i] || gpi_is_ours(d, u->pid)) {
            r->memory_ours += memory;
            continue;
        }
        r->memory_foreign += memory;
        if (r->foreign_processes++ == 0 || memory > most) {
            r->foreign_pid = u->pid;
            most = memory;
        }
    }
}

void gpi_report_device(gpud_dispatcher *d, uint32_t device, struct gpud_device_info *r)
{
    const struct gpi_known_device *k = &d->dev.row[device];

    gpi_row_fill(r, &k->id, &k->sample, &k->health);
    report_users(d, &k->sample, k->outside, r);
    if (k->health.recovery != GPI_UNKNOWN32)
        r->recovery = k->health.recovery; /* may be newer than the reading */
    r->slots = k->slots;
    r->draining = gpi_sched_drains(d->core, device);
    r->paused = gpi_sched_pauses(d->core, device);
    r->canary_passes = k->health.passes;
    r->canary_failures = k->health.failures;
    r->canary_at = k->health.try_at == GPI_NEVER ? 0 : k->health.try_at;
}

enum gpi_may gpi_judge_may(const struct gpi_known_device *k)
{
    if (!gpi_health_starts(&k->health))
        return gpi_health_hopes(&k->health) ? GPI_MAY_OUT : GPI_MAY_DEAD;
    return k->health.canary_due || k->health.state == GPUD_HEALTH_SUSPECT ? GPI_MAY_DOUBT
                                                                          : GPI_MAY_OK;
}

bool gpi_device_can_read(const gpud_dispatcher *d, const struct gpi_known_device *k)
{
    const struct gpi_gauge *g = k->gauge == GPI_NO_GAUGE ? NULL : d->dev.gauge[k->gauge];

    return g && g->m.fd >= 0 && !g->m.gone && g->m.enumerated && k->place < g->m.n;
}

bool gpi_device_reads(const gpud_dispatcher *d, uint32_t device)
{
    return gpi_device_can_read(d, &d->dev.row[device]) && !d->dev.row[device].silent;
}
