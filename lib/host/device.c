/* SPDX-License-Identifier: MIT */
/* device.c - the table of devices: who they are, what is told of them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "host/dispatcher.h"
#include "os/memory.h"

#define MOST (GPI_SLOTS_MAX * GPI_DEVICES)

int gpi_devices_init(gpud_dispatcher *d)
{
    d->dev.row = gpi_memory_private(MOST * sizeof *d->dev.row);
    return d->dev.row ? 0 : -1;
}

void gpi_devices_fini(gpud_dispatcher *d)
{
    gpi_memory_unmap(d->dev.row, MOST * sizeof *d->dev.row);
}

/* ---- who they are ---- */

uint32_t gpi_device_find(const gpud_dispatcher *d, const char *text)
{
    for (uint32_t i = 0; i < d->dev.n; i++) {
        const struct gpi_known_device *k = &d->dev.row[i];
        if (!k->removed && (strcmp(k->id.name, text) == 0 || strcmp(k->id.uuid, text) == 0))
            return i;
    }
    return GPI_NO_DEVICE;
}

/* A CPU slot goes by its name, and is well for good. */
static struct gpi_device cpu_slot(const char *name)
{
    struct gpi_device id = { .kind = GPUD_DEVICE_CPU, .mig_index = GPI_UNKNOWN32, .compute_mode = GPI_UNKNOWN32, .numa_node = GPI_UNKNOWN32, .memory_total = GPI_UNKNOWN64 };

    snprintf(id.name, sizeof id.name, "%s", name);
    snprintf(id.uuid, sizeof id.uuid, "%s", name);
    (void)sscanf(name, "cpu:%u", &id.index);
    return id;
}

uint32_t gpi_device_learn(gpud_dispatcher *d, const char *name, const struct gpi_device *found, uint32_t n_found)
{
    struct gpi_device id = cpu_slot(name);
    uint32_t at = 0;

    for (uint32_t i = 0; i < n_found; i++)
        if (strcmp(found[i].name, name) == 0)
            id = found[i];
    while (at < d->dev.n && strcmp(d->dev.row[at].id.uuid, id.uuid) != 0)
        at++;
    if (at == MOST)
        return GPI_NO_DEVICE;
    if (at < d->dev.n)
        return at;
    d->dev.row[at] = (struct gpi_known_device){ .id = id, .health = { .state = GPUD_HEALTH_HEALTHY, .since = d->now, .recovery = GPI_UNKNOWN32, .try_at = GPI_NEVER } };
    d->dev.n++;
    return at;
}

uint32_t gpi_devices_count(const gpud_dispatcher *d)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->dev.n; i++)
        n += !d->dev.row[i].removed;
    return n;
}

/* What a worker is told of its devices. */
void gpi_device_header(const gpud_dispatcher *d, const struct gpi_slot *s, struct gpi_page *p)
{
    p->device_kind = d->dev.row[s->devices[0]].id.kind;
    for (uint32_t i = 0; i < s->n_devices; i++)
        memcpy(p->uuid[i], d->dev.row[s->devices[i]].id.uuid, sizeof p->uuid[i]);
}

/* ---- what is told ---- */

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
    vsnprintf(n->text, sizeof n->text, format, args); /* NOLINT(clang-analyzer-valist.Uninitialized) ; va_start is the line before */
    va_end(args);
    gpi_note_push(d, n);
}

static void report_identity(const struct gpi_device *id, struct gpud_device_info *r)
{
    _Static_assert(sizeof id->name == sizeof r->name && sizeof id->uuid == sizeof r->uuid && sizeof id->model == sizeof r->model && sizeof id->pci == sizeof r->pci &&
                   sizeof id->mig_profile == sizeof r->mig_profile && sizeof id->parent_uuid == sizeof r->parent_uuid, "the same texts");

    r->kind = id->kind;
    memcpy(r->name, id->name, sizeof r->name);
    memcpy(r->uuid, id->uuid, sizeof r->uuid);
    memcpy(r->model, id->model, sizeof r->model);
    memcpy(r->pci, id->pci, sizeof r->pci);
    memcpy(r->mig_profile, id->mig_profile, sizeof r->mig_profile);
    memcpy(r->parent_uuid, id->parent_uuid, sizeof r->parent_uuid);
    r->index = id->index;
    r->compute_major = id->compute_major;
    r->compute_minor = id->compute_minor;
    r->compute_mode = id->compute_mode;
    r->numa_node = id->numa_node;
    r->memory_total = id->memory_total;
}

static void report_nothing_read(struct gpud_device_info *r)
{
    r->memory_used = r->memory_free = r->memory_ours = r->memory_foreign = r->throttle = r->ecc_corrected = r->ecc_uncorrected = GPUD_UNKNOWN64;
    r->utilization = r->memory_utilization = r->temperature = r->power = r->power_limit = r->sm_clock = r->remapped_rows = r->remap_pending = r->remap_failed = GPUD_UNKNOWN32;
    r->foreign_processes = GPUD_UNKNOWN32;
}

static void report_health(const struct gpi_health *h, struct gpud_device_info *r)
{
    _Static_assert(sizeof h->evidence == sizeof r->evidence, "the same text");

    memcpy(r->evidence, h->evidence, sizeof r->evidence);
    r->health = h->state;
    r->since = h->since;
    r->last_xid = h->last_xid;
    r->xids = h->xids;
    r->last_xid_at = h->last_xid_at;
    r->recovery = h->recovery == GPI_UNKNOWN32 ? (uint32_t)GPUD_RECOVERY_NONE : h->recovery;
    r->canary_passes = h->passes;
    r->canary_failures = h->failures;
    r->canary_at = h->try_at == GPI_NEVER ? 0 : h->try_at;
}

void gpi_report_device(gpud_dispatcher *d, uint32_t device, struct gpud_device_info *r)
{
    const struct gpi_known_device *k = &d->dev.row[device];

    memset(r, 0, sizeof *r);
    report_identity(&k->id, r);
    report_nothing_read(r);
    report_health(&k->health, r);
    r->slots = k->slots;
    r->draining = k->draining || k->removing;
}
