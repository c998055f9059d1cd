/* SPDX-License-Identifier: MIT */
#include "wire/reading.h"

#include <string.h>

#include "gpudispatch/device.h"

#define HEAD offsetof(struct gpi_reading_message, u)

size_t gpi_reading_size(uint32_t kind)
{
    switch (kind) {
    case GPI_RDG_OPEN:
    case GPI_RDG_ENUMERATE:
    case GPI_RDG_SAMPLE:
    case GPI_RDG_ENUMERATED:
    case GPI_RDG_LISTENS:
        return HEAD;
    case GPI_RDG_DRIVER:
        return HEAD + sizeof(struct gpi_driver);
    case GPI_RDG_DEVICE:
        return HEAD + sizeof(struct gpi_device);
    case GPI_RDG_SAMPLED:
        return HEAD + sizeof(struct gpi_sample);
    case GPI_RDG_INCIDENT:
        return HEAD + sizeof(struct gpi_incident);
    default:
        return 0;
    }
}

const char *gpi_reading_script(const struct gpi_reading_message *m)
{
    return (const char *)m + HEAD;
}

static bool open_ok(const struct gpi_reading_message *m, size_t script)
{
    const bool nvml = m->provider == GPI_PROVIDER_NVML && m->n == 0;
    const bool fake = m->provider == GPI_PROVIDER_FAKE && m->n > 0 && m->n <= GPI_GPUS_MAX;

    return (nvml || fake) && script <= GPI_SCRIPT_MAX && !memchr(gpi_reading_script(m), 0, script);
}

bool gpi_reading_for_monitor(const struct gpi_reading_message *m, size_t size)
{
    if (size < HEAD)
        return false;
    switch (m->kind) {
    case GPI_RDG_OPEN:
        return open_ok(m, size - HEAD);
    case GPI_RDG_ENUMERATE:
        return size == HEAD;
    case GPI_RDG_SAMPLE:
        return size == HEAD && m->device < GPI_GPUS_MAX;
    default:
        return false;
    }
}

/* ---- messages of a monitor ---- */

/* Names and sentences of a driver end up in terminals and logs: no control characters. */
static void clean(char *text, size_t size)
{
    size_t n;

    text[size - 1] = 0;
    n = strlen(text);
    memset(text + n, 0, size - n);
    for (size_t i = 0; i < n; i++)
        if (text[i] < ' ' || text[i] > '~')
            text[i] = '?';
}

#define CLEAN(field) clean(field, sizeof(field))

static bool driver_ok(struct gpi_driver *d)
{
    CLEAN(d->text);
    CLEAN(d->driver_version);
    CLEAN(d->nvml_version);
    return d->state < GPUD_DRIVER_COUNT;
}

static bool device_ok(struct gpi_device *d)
{
    CLEAN(d->name);
    CLEAN(d->uuid);
    CLEAN(d->model);
    CLEAN(d->pci);
    CLEAN(d->mig_profile);
    CLEAN(d->parent_uuid);
    return d->name[0] && (d->kind == GPUD_DEVICE_GPU || d->kind == GPUD_DEVICE_MIG ||
                          d->kind == GPUD_DEVICE_FAKE);
}

static uint32_t at_most(uint32_t v, uint32_t most)
{
    return v <= most ? v : GPI_UNKNOWN32;
}

/* A driver newer than this library may return a value without a name here: it counts as unknown,
 * not as a fault. */
static bool sample_ok(struct gpi_sample *s)
{
    s->utilization = at_most(s->utilization, 100);
    s->memory_utilization = at_most(s->memory_utilization, 100);
    s->users_known = s->users_known != 0;
    return s->reading < GPI_READ_COUNT;
}

static bool incident_ok(const struct gpi_incident *i, uint32_t devices)
{
    if (i->device >= devices && i->device != GPI_UNKNOWN32)
        return false;
    if (i->kind == GPI_INCIDENT_RECOVERY)
        return i->number < GPI_UNKNOWN32; /* numbers of a newer driver included */
    return i->kind >= GPI_INCIDENT_XID && i->kind <= GPI_INCIDENT_DEAF;
}

bool gpi_reading_of_monitor(struct gpi_reading_message *m, size_t size, uint32_t devices)
{
    if (size < HEAD || size != gpi_reading_size(m->kind))
        return false;
    switch (m->kind) {
    case GPI_RDG_DRIVER:
        return driver_ok(&m->u.driver);
    case GPI_RDG_DEVICE:
        return m->device < GPI_GPUS_MAX && device_ok(&m->u.identity);
    case GPI_RDG_ENUMERATED:
        return m->n <= GPI_GPUS_MAX;
    case GPI_RDG_SAMPLED:
        return m->device < devices && sample_ok(&m->u.sample);
    case GPI_RDG_INCIDENT:
        return incident_ok(&m->u.incident, devices);
    case GPI_RDG_LISTENS:
        return true;
    default:
        return false;
    }
}
