/* SPDX-License-Identifier: MIT */
/* reading.c - what host and monitor say to each other: whatever is believed is whole and has a
 * meaning. */
#include "fuzz.h"

#include "gpudispatch/device.h"
#include "wire/reading.h"

static union {
    struct gpi_reading_message m;
    unsigned char bytes[sizeof(struct gpi_reading_message) + GPI_SCRIPT_MAX + 64];
} in;

static void check_text(const char *text, size_t size)
{
    size_t n = strnlen(text, size);

    FUZZ_CHECK(n < size);
    for (size_t i = 0; i < n; i++)
        FUZZ_CHECK(text[i] >= ' ' && text[i] <= '~');
}

static void check_for_monitor(size_t size)
{
    const struct gpi_reading_message *m = &in.m;
    const size_t head = gpi_reading_size(GPI_RDG_OPEN);

    FUZZ_CHECK(size >= head && m->kind >= GPI_RDG_OPEN && m->kind <= GPI_RDG_SAMPLE);
    if (m->kind == GPI_RDG_SAMPLE)
        FUZZ_CHECK(m->device < GPI_GPUS_MAX);
    if (m->kind != GPI_RDG_OPEN) {
        FUZZ_CHECK(size == head);
        return;
    }
    FUZZ_CHECK(size - head <= GPI_SCRIPT_MAX && !memchr(gpi_reading_script(m), 0, size - head));
    FUZZ_CHECK(m->provider == GPI_PROVIDER_NVML
                   ? m->n == 0
                   : m->provider == GPI_PROVIDER_FAKE && m->n > 0 && m->n <= GPI_GPUS_MAX);
}

static void check_of_monitor(size_t size, uint32_t devices)
{
    const struct gpi_reading_message *m = &in.m;
    const struct gpi_device *d = &m->u.identity;

    FUZZ_CHECK(size == gpi_reading_size(m->kind));
    switch (m->kind) {
    case GPI_RDG_DRIVER:
        FUZZ_CHECK(m->u.driver.state < GPUD_DRIVER_COUNT);
        check_text(m->u.driver.text, sizeof(m->u.driver.text));
        check_text(m->u.driver.driver_version, sizeof(m->u.driver.driver_version));
        check_text(m->u.driver.nvml_version, sizeof(m->u.driver.nvml_version));
        break;
    case GPI_RDG_DEVICE:
        FUZZ_CHECK(m->device < GPI_GPUS_MAX && d->kind > GPUD_DEVICE_CPU &&
                   d->kind < GPUD_DEVICE_KIND_COUNT && d->name[0]);
        check_text(d->name, sizeof(d->name));
        check_text(d->uuid, sizeof(d->uuid));
        check_text(d->model, sizeof(d->model));
        check_text(d->pci, sizeof(d->pci));
        check_text(d->mig_profile, sizeof(d->mig_profile));
        check_text(d->parent_uuid, sizeof(d->parent_uuid));
        break;
    case GPI_RDG_ENUMERATED:
        FUZZ_CHECK(m->n <= GPI_GPUS_MAX);
        break;
    case GPI_RDG_SAMPLED:
        FUZZ_CHECK(m->device < devices && m->u.sample.reading < GPI_READ_COUNT);
        FUZZ_CHECK(m->u.sample.utilization == GPI_UNKNOWN32 || m->u.sample.utilization <= 100);
        FUZZ_CHECK(m->u.sample.users_known <= 1);
        break;
    case GPI_RDG_INCIDENT:
        FUZZ_CHECK(m->u.incident.device < devices || m->u.incident.device == GPI_UNKNOWN32);
        FUZZ_CHECK(m->u.incident.kind >= GPI_INCIDENT_XID &&
                   m->u.incident.kind <= GPI_INCIDENT_DEAF);
        break;
    case GPI_RDG_LISTENS:
        break;
    default:
        FUZZ_CHECK(false); /* no kind that a monitor says */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char numbers[3];
    size_t given;

    fuzz_take(numbers, sizeof(numbers), &data, &size);
    given = size < sizeof(in) ? size : sizeof(in);
    fuzz_take(&in, sizeof(in), &data, &size);
    if (numbers[1] % 4) /* what fits is rare among random numbers */
        in.m.kind = GPI_RDG_OPEN + in.m.kind % 10;
    if (numbers[2] % 4)
        given = gpi_reading_size(in.m.kind) + (in.m.kind == GPI_RDG_OPEN ? numbers[2] / 4 : 0);
    if (gpi_reading_for_monitor(&in.m, given))
        check_for_monitor(given);
    if (gpi_reading_of_monitor(&in.m, given, numbers[0]))
        check_of_monitor(given, numbers[0]);
    return 0;
}
