/* SPDX-License-Identifier: MIT */
/* nvidia_ml_sample.c - readings of the fake libnvidia-ml.so.1: memory and who holds it, and how a
 * device is. */
#include "nvidia_ml.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

/* ---- memory and processes ---- */

struct process {
    int pid;
    uint64_t memory;
};

/* Whether memory of a dead process is back, counted from when it was first found dead. */
static bool is_back(const char *uuid, int pid, uint64_t late)
{
    struct dead *d = fake.died;
    bool back;

    (void)pthread_mutex_lock(&fake.lock);
    while (d < fake.died + fake.dead && (d->pid != pid || strcmp(d->uuid, uuid) != 0))
        d++;
    if (d == fake.died + fake.dead) {
        if (fake.dead == HELD)
            abort();
        fake.dead++;
        *d = (struct dead){ .pid = pid, .at = gpi_now() };
        (void)snprintf(d->uuid, sizeof(d->uuid), "%s", uuid);
    }
    back = gpi_now() - d->at >= late;
    (void)pthread_mutex_unlock(&fake.lock);
    return back;
}

static bool is_alive(int pid)
{
    char path[32], state = 'Z';
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    f = fopen(path, "re");
    if (f) {
        (void)!fscanf(f, "%*d (%*[^)]) %c", &state);
        (void)fclose(f);
    }
    return state != 'Z'; /* a zombie holds nothing */
}

/* What our own processes hold on a device: those alive; *ret_late is what is not back yet. */
static uint32_t held(uint32_t row, struct process *list, uint64_t *ret_late)
{
    const char *script = getenv("FAKE_SCRIPT");
    const struct gpi_device d = f_identity(row);
    char path[4096];
    struct dirent *entry;
    uint32_t n = 0;
    DIR *dir;

    *ret_late = 0;
    (void)snprintf(path, sizeof(path), "%s.held", script ? script : "");
    dir = script ? opendir(path) : NULL;
    while (dir && (entry = readdir(dir))) {
        const char *dot = strchr(entry->d_name, '.');
        struct process p = { 0, 0 };
        FILE *f;
        if (!dot || (size_t)(dot - entry->d_name) != strlen(d.uuid) ||
            strncmp(entry->d_name, d.uuid, strlen(d.uuid)) != 0)
            continue;
        (void)snprintf(path, sizeof(path), "%s.held/%s", script, entry->d_name);
        f = fopen(path, "re");
        if (f) {
            (void)!fscanf(f, "%lu", &p.memory);
            (void)fclose(f);
        }
        p.pid = atoi(dot + 1);
        if (is_alive(p.pid) && n < HELD)
            list[n++] = p;
        else if (!is_back(d.uuid, p.pid, f_state_of(row).late))
            *ret_late += p.memory;
    }
    if (dir)
        (void)closedir(dir);
    return n;
}

static uint64_t used_of(uint32_t row, const struct gpi_sample *x)
{
    struct process list[HELD];
    uint64_t used = 0;
    const uint32_t n = held(row, list, &used);

    for (uint32_t i = 0; i < n; i++)
        used += list[i].memory;
    used += x->memory_used;
    return used < x->memory_total ? used : x->memory_total;
}

EXPORTED int nvmlDeviceGetMemoryInfo(void *device, void *to);
int nvmlDeviceGetMemoryInfo(void *device, void *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    const struct gpi_sample x = f_state_of(row).sample;
    const uint64_t used = used_of(row, &x);

    if (x.memory_total == GPI_UNKNOWN64)
        return NOT_SUPPORTED;
    f_put64(to, 0, x.memory_total);
    f_put64(to, 8, x.memory_total - used);
    f_put64(to, 16, used);
    return OK;
}

#ifndef FAKE_OLD
static uint32_t get32(const void *from, size_t at)
{
    uint32_t value;

    memcpy(&value, (const char *)from + at, 4);
    return value;
}

/* What the driver keeps for itself: told apart by this one alone. */
static uint64_t reserved(const struct gpi_sample *x)
{
    return x->memory_free >> 6;
}

EXPORTED int nvmlDeviceGetMemoryInfo_v2(void *device, void *to);
int nvmlDeviceGetMemoryInfo_v2(void *device, void *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    const struct gpi_sample x = f_state_of(row).sample;
    const uint64_t used = used_of(row, &x), own = used < reserved(&x) ? 0 : reserved(&x);

    if (get32(to, 0) != 0x02000028)
        return ARGUMENT_VERSION_MISMATCH;
    if (x.memory_total == GPI_UNKNOWN64)
        return NOT_SUPPORTED;
    f_put64(to, 8, x.memory_total);
    f_put64(to, 16, own);
    f_put64(to, 24, x.memory_total - used);
    f_put64(to, 32, used - own);
    return OK;
}
#endif

static int processes(uint32_t row, uint32_t *n, char *to, size_t size)
{
    struct process list[HELD];
    uint64_t late;
    const uint32_t ours = held(row, list, &late);
    const struct gpi_sample x = f_state_of(row).sample;
    const uint32_t others = x.n_users < GPI_PROCESSES_MAX ? x.n_users : GPI_PROCESSES_MAX,
                   room = *n;

    if (f_driver().hides_processes)
        return NO_PERMISSION;
    *n = ours + others;
    if (*n > room)
        return INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < *n; i++) {
        char *at = to + i * size;
        memset(at, 0, size);
        f_put32(at, 0, i < ours ? (uint32_t)list[i].pid : x.user[i - ours].pid);
        f_put64(at, 8, i < ours ? list[i].memory : x.user[i - ours].memory);
        f_put32(at, 16, f_is_part(row) ? f_identity(row).mig_index + 7 : UINT32_MAX);
        f_put32(at, 20, f_is_part(row) ? 0 : UINT32_MAX);
    }
    return OK;
}

EXPORTED int nvmlDeviceGetComputeRunningProcesses_v2(void *device, uint32_t *n, void *to);
int nvmlDeviceGetComputeRunningProcesses_v2(void *device, uint32_t *n, void *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    return processes(row, n, to, 24);
}

#ifndef FAKE_OLD
EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(void *device, uint32_t *n, void *to);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, uint32_t *n, void *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    return processes(row, n, to, f_driver().entry_size);
}

EXPORTED int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, uint32_t *n, void *to);
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, uint32_t *n, void *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    (void)to;
    *n = 0;
    return OK;
}
#endif

/* ---- how it is ---- */

EXPORTED int nvmlDeviceGetUtilizationRates(void *device, void *to);
int nvmlDeviceGetUtilizationRates(void *device, void *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    const struct gpi_sample x = f_state_of(row).sample;

    if (f_is_part(row) || f_identity(row).mig_parts || x.utilization == GPI_UNKNOWN32)
        return NOT_SUPPORTED;
    f_put32(to, 0, x.utilization);
    f_put32(to, 4, x.memory_utilization);
    return OK;
}

EXPORTED int nvmlDeviceGetTemperature(void *device, int sensor, uint32_t *to);
int nvmlDeviceGetTemperature(void *device, int sensor, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    return sensor || f_is_part(row) ? NOT_SUPPORTED
                                    : f_number(to, f_state_of(row).sample.temperature);
}

#ifndef FAKE_OLD
EXPORTED int nvmlDeviceGetTemperatureV(void *device, void *to);
int nvmlDeviceGetTemperatureV(void *device, void *to)
{
    uint32_t degrees = 0;
    int code;
    DEVICE(GPI_SCRIPT_SAMPLE);

    if (get32(to, 0) != 0x0100000c)
        return ARGUMENT_VERSION_MISMATCH;
    code = f_is_part(row) || get32(to, 4) ? NOT_SUPPORTED
                                          : f_number(&degrees, f_state_of(row).sample.temperature);
    f_put32(to, 8, degrees);
    return code;
}
#endif

EXPORTED int nvmlDeviceGetPowerUsage(void *device, uint32_t *to);
int nvmlDeviceGetPowerUsage(void *device, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    return f_is_part(row) ? NOT_SUPPORTED : f_number(to, f_state_of(row).sample.power);
}

EXPORTED int nvmlDeviceGetEnforcedPowerLimit(void *device, uint32_t *to);
int nvmlDeviceGetEnforcedPowerLimit(void *device, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    return f_is_part(row) ? NOT_SUPPORTED : f_number(to, f_state_of(row).sample.power_limit);
}

EXPORTED int nvmlDeviceGetClockInfo(void *device, int which, uint32_t *to);
int nvmlDeviceGetClockInfo(void *device, int which, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    return f_is_part(row) || which != 1 ? NOT_SUPPORTED
                                        : f_number(to, f_state_of(row).sample.sm_clock);
}

#ifdef FAKE_OLD
#define REASONS nvmlDeviceGetCurrentClocksThrottleReasons
#else
#define REASONS nvmlDeviceGetCurrentClocksEventReasons
#endif
EXPORTED int REASONS(void *device, uint64_t *to);
int REASONS(void *device, uint64_t *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    *to = f_state_of(row).sample.throttle;
    return f_is_part(row) || *to == GPI_UNKNOWN64 ? NOT_SUPPORTED : OK;
}

EXPORTED int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, uint64_t *to);
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, uint64_t *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    const struct gpi_sample x = f_state_of(row).sample;

    *to = type ? x.ecc_uncorrected : x.ecc_corrected;
    return counter || f_is_part(row) || *to == GPI_UNKNOWN64 ? NOT_SUPPORTED : OK;
}

EXPORTED int nvmlDeviceGetRetiredPagesPendingStatus(void *device, int *to);
int nvmlDeviceGetRetiredPagesPendingStatus(void *device, int *to)
{
    uint32_t pending = 0;
    DEVICE(GPI_SCRIPT_SAMPLE);
    const int code = f_number(&pending, f_state_of(row).sample.remap_pending);

    *to = (int)pending;
    return code;
}

#ifndef FAKE_OLD
EXPORTED int nvmlDeviceGetRemappedRows(void *device, uint32_t *corrected, uint32_t *uncorrected,
                                       uint32_t *pending, uint32_t *failed);
int nvmlDeviceGetRemappedRows(void *device, uint32_t *corrected, uint32_t *uncorrected,
                              uint32_t *pending, uint32_t *failed)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    const struct gpi_sample x = f_state_of(row).sample;

    if (f_is_part(row) || f_identity(row).mig_parts || x.remapped_rows == GPI_UNKNOWN32 ||
        x.remap_pending == GPI_UNKNOWN32 || x.remap_failed == GPI_UNKNOWN32)
        return NOT_SUPPORTED;
    *corrected = x.remapped_rows / 2;
    *uncorrected = x.remapped_rows - x.remapped_rows / 2;
    *pending = x.remap_pending;
    *failed = x.remap_failed;
    return OK;
}

static void put16(void *to, size_t at, uint16_t value)
{
    memcpy((char *)to + at, &value, 2);
}

/* Its value in any of the types that a field may have. */
static void put_field(char *at, uint32_t type, uint32_t value)
{
    const double d = value;

    f_put32(at, 24, type);
    if (value == GPI_UNKNOWN32) {
        f_put32(at, 28, NOT_SUPPORTED);
        f_put64(at, 32, 0x7777777777777777ull);
        return;
    }
    f_put32(at, 28, OK);
    f_put64(at, 32, 0xffffffffffffffffull); /* what does not belong to the value */
    if (type == 0)
        memcpy(at + 32, &d, 8);
    else if (type == 2 || type == 3 || type == 4)
        f_put64(at, 32, value);
    else if (type == 6)
        put16(at, 32, (uint16_t)value);
    else
        f_put32(at, 32, value);
}

EXPORTED int nvmlDeviceGetFieldValues(void *device, int n, void *to);
int nvmlDeviceGetFieldValues(void *device, int n, void *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    const struct gpi_sample x = f_state_of(row).sample;
    const bool rows_known = !f_is_part(row) && !f_identity(row).mig_parts;

    for (int i = 0; i < n; i++) {
        char *at = (char *)to + (size_t)i * 40;
        f_put64(at, 8, gpi_now() / 1000);
        switch (get32(at, 0)) {
        case 143:
            put_field(at, 3, rows_known ? x.remapped_rows : GPI_UNKNOWN32);
            break;
        case 144:
            put_field(at, 6, rows_known ? x.remap_pending : GPI_UNKNOWN32);
            break;
        case 145:
            put_field(at, 5, rows_known ? x.remap_failed : GPI_UNKNOWN32);
            break;
        case 186:
            put_field(at, 0, f_is_part(row) ? GPI_UNKNOWN32 : x.power);
            break;
        case 230:
            put_field(at, 1, f_is_part(row) ? GPI_UNKNOWN32 : x.recovery);
            break;
        default:
            f_put32(at, 28, INVALID_ARGUMENT);
            break;
        }
    }
    return OK;
}
#endif
