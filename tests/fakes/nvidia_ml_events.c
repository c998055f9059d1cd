/* SPDX-License-Identifier: MIT */
/* nvidia_ml_events.c - what the fake libnvidia-ml.so.1 tells by itself: sets of events, and the
 * wait for one. */
#include "nvidia_ml.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "open_gpu.h"

struct set {
    struct gpi_script_cursor cursor;
    uint64_t heard_until;
    uint64_t types[GPI_GPUS_MAX];
    bool begun, spoilt;
};

EXPORTED int nvmlEventSetCreate(void **to);
int nvmlEventSetCreate(void **to)
{
    DRIVER(GPI_SCRIPT_AWAIT);
    *to = calloc(1, sizeof(struct set));
    return *to ? OK : UNKNOWN;
}

EXPORTED int nvmlEventSetFree(void *set);
int nvmlEventSetFree(void *set)
{
    free(set);
    return OK;
}

EXPORTED int nvmlDeviceGetSupportedEventTypes(void *device, uint64_t *to);
int nvmlDeviceGetSupportedEventTypes(void *device, uint64_t *to)
{
    DEVICE(GPI_SCRIPT_AWAIT);
    *to = f_is_part(row) ? 0 : 0x8 | 0x1 | 0x2 | 0x8000;
    return OK;
}

EXPORTED int nvmlDeviceRegisterEvents(void *device, uint64_t types, void *set);
int nvmlDeviceRegisterEvents(void *device, uint64_t types, void *set)
{
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    struct set *s = set;
    struct gpi_incident i;
    const uint32_t row = f_row_of(device);
    const int obeyed = row == GPI_UNKNOWN32 ? INVALID_ARGUMENT
                       : !fake.initialized  ? UNINITIALIZED
                                            : f_obey(__func__, GPI_SCRIPT_AWAIT, row);

    fake_nvml_forbidden += s->spoilt; /* it must be freed */
    s->spoilt |= obeyed == UNKNOWN;
    if (obeyed)
        return obeyed;
    if (types & ~0x800bull || f_is_part(row))
        return NOT_SUPPORTED;
    if (!s->begun) { /* what was before is not heard */
        s->heard_until = f_now(fired);
        while (gpi_script_incident(fake.script, fired, &s->cursor, s->heard_until, &i))
            ;
        s->begun = true;
    }
    s->types[row] = types;
    fake_listen_to_gpu(f_identity(row).uuid);
    return OK;
}

static bool some_is_lost(const struct set *s)
{
    for (uint32_t row = 0; row < gpi_script_rows(fake.script); row++)
        if (s->types[row] && f_of_access(row) == GPU_IS_LOST)
            return true;
    return false;
}

/* An incident as an event; false: none that this set hears. */
static bool event(const struct set *s, const struct gpi_incident *i, char *to)
{
    const bool xid = i->kind == GPI_INCIDENT_XID;
    uint32_t gpu = i->device;
    bool part;

    if ((!xid && i->kind != GPI_INCIDENT_RECOVERY) || (gpu == GPI_UNKNOWN32 && !xid))
        return false;
    memset(to, 0, 32);
    f_put64(to, 8, xid ? 0x8 : 0x8000);
    f_put64(to, 16, xid ? i->number : 0);
    f_put32(to, 24, UINT32_MAX);
    f_put32(to, 28, UINT32_MAX);
    if (gpu == GPI_UNKNOWN32)
        return true;
    part = f_is_part(gpu);
    if (part) {
        f_put32(to, 24, f_identity(gpu).mig_index + 7);
        f_put32(to, 28, 0);
        gpu = gpi_script_row(fake.script, f_identity(gpu).index, GPI_UNKNOWN32);
    }
    f_put64(to, 0, (uint64_t)(uintptr_t)(fake.row + gpu));
    return s->types[gpu] & (xid ? 0x8u : 0x8000u);
}

/* The next event that is due. */
static bool next_event(struct set *s, char *to, bool *ret_deaf)
{
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX], t = f_now(fired);
    struct gpi_script_driver d;
    struct gpi_incident i;

    s->heard_until = t + 1 > s->heard_until ? t + 1 : s->heard_until;
    gpi_script_driver(fake.script, fired, t, &d);
    *ret_deaf = d.deaf;
    while (gpi_script_incident(fake.script, fired, &s->cursor, s->heard_until, &i))
        if (event(s, &i, to))
            return true;
    return false;
}

/* How long nothing can be otherwise: a driver that waits wakes nobody. */
static uint64_t calm(uint64_t end)
{
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    const uint64_t t = f_now(fired), at = gpi_now();

    if (gpi_script_triggers(fake.script) || gpi_script_next(fake.script, fired, t) != GPI_NEVER)
        return GPI_MS;
    return end > at ? end - at : 0;
}

EXPORTED int nvmlEventSetWait_v2(void *set, void *to, uint32_t ms);
int nvmlEventSetWait_v2(void *set, void *to, uint32_t ms)
{
    const uint64_t end = gpi_now() + ms * GPI_MS;
    bool deaf;

    fake_nvml_forbidden += ((struct set *)set)->spoilt;
    for (;;) {
        DRIVER(GPI_SCRIPT_AWAIT);
        if (next_event(set, to, &deaf))
            return OK;
        if (deaf)
            return UNKNOWN;
        if (some_is_lost(set))
            return GPU_IS_LOST;
        if (gpi_now() >= end)
            return TIMEOUT;
        f_rest(calm(end));
        atomic_fetch_sub(&fake_nvml_calls, 1); /* still the same */
    }
}
