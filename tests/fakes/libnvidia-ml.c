/* SPDX-License-Identifier: MIT */
/*
 * libnvidia-ml.c - stands in for libnvidia-ml.so.1: GPUs as a script has them (docs/fake-devices.md).  Knows nothing of
 * lib/device/nvml.h: every record is written by the offsets of its fields, so that our declarations are tried against others.
 *
 * FAKE_SCRIPT is the script's file, FAKE_SCRIPT_TEXT a script itself; without both there is one healthy GPU.  Time counts
 * from when the library is loaded.  Every call obeys `hang`, `slow` and `fail` by its name and by the group that it
 * belongs to, and answers as the driver's state and the device's access make it.
 *
 * Memory of our own processes: a file FAKE_SCRIPT.held/UUID.PID holds the bytes that the process has on that device.  Once the
 * process is gone it is listed no more, and its memory is back `late=` after that was seen.
 *
 * FAKE_OLD leaves out what older drivers do not have, FAKE_ANCIENT also what we cannot do without.  For a look from inside the process: fake_nvml_forbidden
 * counts calls that must never be made (a search by UUID, a shutdown), fake_nvml_calls all.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/script.h"
#include "gpudispatch/device.h"

/* NVML's codes. */
enum { OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9,
       TIMEOUT = 10, FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15, RESET_REQUIRED = 16, OPERATING_SYSTEM = 17, VERSION_MISMATCH = 18,
       ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999 };

enum { TURNS = 512, HELD = 64 };

#define EXPORTED __attribute__((visibility("default")))

extern atomic_uint fake_nvml_calls, fake_nvml_forbidden;
EXPORTED atomic_uint fake_nvml_calls, fake_nvml_forbidden;

struct turn {
    char call[64];
    uint32_t row, turn, done;
};

/* A process that has died, and when that was seen. */
struct dead {
    char uuid[96];
    int pid;
    uint64_t at;
};

static struct {
    pthread_mutex_t lock; /* of what two threads write; never held in a call that waits */
    struct gpi_script *script;
    uint64_t zero;
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    uint32_t turns, dead;
    struct turn turn[TURNS];
    struct dead died[HELD];
    bool initialized;
    char row[GPI_GPUS_MAX]; /* a handle is the address of one */
} fake = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the script ---- */

static char *script_text(void)
{
    const char *path = getenv("FAKE_SCRIPT"), *text = getenv("FAKE_SCRIPT_TEXT");
    char *all = calloc(1, 65537);
    FILE *f = path ? fopen(path, "re") : NULL;

    if (!all)
        abort();
    if (f) {
        (void)!fread(all, 1, 65536, f);
        (void)fclose(f);
    } else if (text) {
        (void)snprintf(all, 65537, "%s", text);
    }
    return all;
}

__attribute__((constructor)) static void load(void)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    char *text = script_text();

    if (gpi_script_parse(&fake.script, text, *text ? 0 : 1, &e)) {
        (void)fprintf(stderr, "fake libnvidia-ml: %s\n", e.text);
        abort();
    }
    free(text);
    fake.zero = gpi_now();
    for (uint32_t i = 0; i < GPI_SCRIPT_TRIGGERS_MAX; i++)
        fake.fired[i] = GPI_NEVER;
}

__attribute__((destructor)) static void unload(void)
{
    gpi_script_free(fake.script);
}

/* Time, and the files seen until then. */
static uint64_t now(uint64_t *ret_fired)
{
    uint64_t t;

    (void)pthread_mutex_lock(&fake.lock);
    t = gpi_now() - fake.zero;
    (void)gpi_script_look(fake.script, fake.fired, t);
    memcpy(ret_fired, fake.fired, sizeof(fake.fired));
    (void)pthread_mutex_unlock(&fake.lock);
    return t;
}

static struct gpi_script_state state_of(uint32_t row)
{
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    const uint64_t t = now(fired);
    struct gpi_script_state s;

    gpi_script_state(fake.script, fired, row, t, &s);
    return s;
}

static struct gpi_script_driver driver(void)
{
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    const uint64_t t = now(fired);
    struct gpi_script_driver d;

    gpi_script_driver(fake.script, fired, t, &d);
    return d;
}

static struct gpi_device identity(uint32_t row)
{
    struct gpi_device d;

    gpi_script_identity(fake.script, row, &d);
    return d;
}

/* ---- every call ---- */

/* Whether this one is among the first `times` that fail. */
static bool fails_now(const char *call, uint32_t row, const struct gpi_script_call *c)
{
    struct turn *t = fake.turn;
    bool fails;

    (void)pthread_mutex_lock(&fake.lock);
    while (t < fake.turn + fake.turns && (strcmp(t->call, call) || t->row != row))
        t++;
    if (t == fake.turn + fake.turns) {
        if (fake.turns == TURNS)
            abort();
        fake.turns++;
        (void)snprintf(t->call, sizeof(t->call), "%s", call);
        t->row = row;
    }
    if (t->turn != c->turn)
        t->done = 0;
    t->turn = c->turn;
    fails = t->done < c->times;
    t->done += fails && c->times != UINT32_MAX;
    (void)pthread_mutex_unlock(&fake.lock);
    return fails;
}

static void rest(uint64_t duration)
{
    const struct timespec t = { (time_t)(duration / GPI_S), (long)(duration % GPI_S) };

    (void)nanosleep(&t, NULL);
}

static int of_driver(uint32_t state)
{
    static const int codes[GPUD_DRIVER_COUNT] = {
        [GPUD_DRIVER_NONE] = 12, [GPUD_DRIVER_NOT_LOADED] = DRIVER_NOT_LOADED, [GPUD_DRIVER_MISMATCH] = VERSION_MISMATCH, [GPUD_DRIVER_TOO_OLD] = FUNCTION_NOT_FOUND,
        [GPUD_DRIVER_NO_PERMISSION] = NO_PERMISSION, [GPUD_DRIVER_REVOKED] = UNKNOWN, [GPUD_DRIVER_FAILED] = 23,
    };

    return codes[state];
}

static int of_access(uint32_t row)
{
    static const int codes[] = { [GPI_ACCESS_OK] = OK, [GPI_ACCESS_DENIED] = NO_PERMISSION, [GPI_ACCESS_LOST] = GPU_IS_LOST, [GPI_ACCESS_RESET] = RESET_REQUIRED, [GPI_ACCESS_REVOKED] = UNKNOWN };

    return codes[state_of(row).access];
}

/* What comes before a call does anything: its code, 0 = it goes on. */
static int obey(const char *call, const char *group, uint32_t row)
{
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    struct gpi_script_call c;

    atomic_fetch_add(&fake_nvml_calls, 1);
    for (;;) {
        const uint64_t t = now(fired);
        gpi_script_call(fake.script, fired, row, call, group, t, &c);
        if (!c.hangs && driver().state != GPUD_DRIVER_HUNG)
            break;
        rest(GPI_MS);
    }
    if (c.delay)
        rest(c.delay);
    if (c.code && fails_now(call, row, &c))
        return c.code;
    if (driver().state != GPUD_DRIVER_OK)
        return of_driver(driver().state);
    return row == GPI_UNKNOWN32 ? OK : of_access(row);
}

static uint32_t row_of(const void *handle)
{
    const size_t row = (size_t)((const char *)handle - fake.row);

    return handle && row < gpi_script_rows(fake.script) ? (uint32_t)row : GPI_UNKNOWN32;
}

/* In each function of a device: `row`, or its answer. */
#define DEVICE(group)                                          \
    const uint32_t row = row_of(device);                       \
    const int obeyed = row == GPI_UNKNOWN32 ? INVALID_ARGUMENT : !fake.initialized ? UNINITIALIZED : obey(__func__, group, row); \
    if (obeyed)                                                \
        return obeyed
#define DRIVER(group)                                               \
    const int obeyed = obey(__func__, group, GPI_UNKNOWN32);        \
    if (obeyed || (!fake.initialized && strcmp(__func__, "nvmlInit_v2") != 0)) \
        return obeyed ? obeyed : UNINITIALIZED

/* ---- writing records by offset ---- */

static void put32(void *to, size_t at, uint32_t value)
{
    memcpy((char *)to + at, &value, 4);
}

static void put64(void *to, size_t at, uint64_t value)
{
    memcpy((char *)to + at, &value, 8);
}

static int text(char *to, uint32_t size, const char *what)
{
    if (strlen(what) >= size)
        return INSUFFICIENT_SIZE;
    memcpy(to, what, strlen(what) + 1);
    return OK;
}

/* A setting that may be unknown. */
static int number(uint32_t *to, uint32_t value)
{
    if (value == GPI_UNKNOWN32)
        return NOT_SUPPORTED;
    *to = value;
    return OK;
}

static bool is_part(uint32_t row)
{
    return identity(row).mig_index != GPI_UNKNOWN32;
}

/* ---- the driver ---- */

#ifdef FAKE_ANCIENT
#define nvmlInit_v2 nvmlInit
#endif
EXPORTED int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    DRIVER(GPI_SCRIPT_OPEN);
    fake.initialized = true;
    return OK;
}

EXPORTED int nvmlShutdown(void);
int nvmlShutdown(void)
{
    atomic_fetch_add(&fake_nvml_forbidden, 1);
    return OK;
}

EXPORTED int nvmlSystemGetDriverVersion(char *to, uint32_t size);
int nvmlSystemGetDriverVersion(char *to, uint32_t size)
{
    DRIVER(GPI_SCRIPT_OPEN);
    return text(to, size, driver().version);
}

EXPORTED int nvmlSystemGetNVMLVersion(char *to, uint32_t size);
int nvmlSystemGetNVMLVersion(char *to, uint32_t size)
{
    DRIVER(GPI_SCRIPT_OPEN);
    return text(to, size, driver().nvml_version);
}

EXPORTED int nvmlSystemGetCudaDriverVersion_v2(int *to);
int nvmlSystemGetCudaDriverVersion_v2(int *to)
{
    DRIVER(GPI_SCRIPT_OPEN);
    *to = (int)driver().cuda_version;
    return OK;
}

/* ---- who it is ---- */

EXPORTED int nvmlDeviceGetCount_v2(uint32_t *to);
int nvmlDeviceGetCount_v2(uint32_t *to)
{
    DRIVER(GPI_SCRIPT_ENUMERATE);
    *to = gpi_script_gpus(fake.script);
    return OK;
}

EXPORTED int nvmlDeviceGetHandleByIndex_v2(uint32_t gpu, void **to);
int nvmlDeviceGetHandleByIndex_v2(uint32_t gpu, void **to)
{
    void *device = fake.row + gpi_script_row(fake.script, gpu, GPI_UNKNOWN32);

    DEVICE(GPI_SCRIPT_ENUMERATE);
    *to = device;
    return OK;
}

/* Opens every GPU on its way. */
EXPORTED int nvmlDeviceGetHandleByUUID(const char *uuid, void **to);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **to)
{
    DRIVER(GPI_SCRIPT_ENUMERATE);
    atomic_fetch_add(&fake_nvml_forbidden, 1);
    for (uint32_t i = 0; i < gpi_script_rows(fake.script); i++) {
        if (of_access(i) == GPU_IS_LOST)
            return GPU_IS_LOST;
        *to = fake.row + i;
        if (!strcmp(identity(i).uuid, uuid))
            return OK;
    }
    return NOT_FOUND;
}

EXPORTED int nvmlDeviceGetUUID(void *device, char *to, uint32_t size);
int nvmlDeviceGetUUID(void *device, char *to, uint32_t size)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    return text(to, size, identity(row).uuid);
}

EXPORTED int nvmlDeviceGetName(void *device, char *to, uint32_t size);
int nvmlDeviceGetName(void *device, char *to, uint32_t size)
{
    char name[160];
    DEVICE(GPI_SCRIPT_ENUMERATE);
    const struct gpi_device d = identity(row);

    (void)snprintf(name, sizeof(name), "%s%s%s", d.model, is_part(row) ? " MIG " : "", d.mig_profile);
    return text(to, size, name);
}

EXPORTED int nvmlDeviceGetPciInfo_v3(void *device, void *to);
int nvmlDeviceGetPciInfo_v3(void *device, void *to)
{
    unsigned domain = 0, bus = 0, number_of = 0;
    char id[32] = "", legacy[16] = "";
    DEVICE(GPI_SCRIPT_ENUMERATE);

    (void)sscanf(identity(row).pci, "%x:%x:%x", &domain, &bus, &number_of);
    (void)snprintf(id, sizeof(id), "%08X:%02X:%02X.0", domain, bus, number_of);
    (void)snprintf(legacy, sizeof(legacy), "%04X:%02X:%02X.0", domain & 0xffff, bus & 0xff, number_of & 0xff);
    memset(to, 0, 68);
    memcpy(to, legacy, sizeof(legacy));
    put32(to, 16, domain);
    put32(to, 20, bus);
    put32(to, 24, number_of);
    put32(to, 28, 0x233010de);
    memcpy((char *)to + 36, id, sizeof(id));
    return OK;
}

EXPORTED int nvmlDeviceGetMinorNumber(void *device, uint32_t *to);
int nvmlDeviceGetMinorNumber(void *device, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    *to = identity(row).minor;
    return OK;
}

EXPORTED int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor);
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    *major = (int)identity(row).compute_major;
    *minor = (int)identity(row).compute_minor;
    return OK;
}

EXPORTED int nvmlDeviceGetComputeMode(void *device, int *to);
int nvmlDeviceGetComputeMode(void *device, int *to)
{
    uint32_t mode = 0;
    DEVICE(GPI_SCRIPT_ENUMERATE);
    const int code = number(&mode, state_of(row).compute_mode);

    *to = (int)mode;
    return code;
}

#ifndef FAKE_OLD
EXPORTED int nvmlDeviceGetNumaNodeId(void *device, uint32_t *to);
int nvmlDeviceGetNumaNodeId(void *device, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    return number(to, identity(row).numa_node);
}
#endif

EXPORTED int nvmlDeviceGetMigMode(void *device, uint32_t *current, uint32_t *pending);
int nvmlDeviceGetMigMode(void *device, uint32_t *current, uint32_t *pending)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    *current = *pending = identity(row).mig_parts > 0;
    return OK;
}

/* How many there might be: places without an instance are among them. */
EXPORTED int nvmlDeviceGetMaxMigDeviceCount(void *device, uint32_t *to);
int nvmlDeviceGetMaxMigDeviceCount(void *device, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    *to = 7;
    return OK;
}

EXPORTED int nvmlDeviceGetMigDeviceHandleByIndex(void *device, uint32_t index, void **to);
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, uint32_t index, void **to)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    const uint32_t part = gpi_script_row(fake.script, identity(row).index, index);

    if (part == GPI_UNKNOWN32)
        return NOT_FOUND;
    *to = fake.row + part;
    return OK;
}

EXPORTED int nvmlDeviceGetGpuInstanceId(void *device, uint32_t *to);
int nvmlDeviceGetGpuInstanceId(void *device, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    return number(to, is_part(row) ? identity(row).mig_index + 7 : GPI_UNKNOWN32);
}

EXPORTED int nvmlDeviceGetComputeInstanceId(void *device, uint32_t *to);
int nvmlDeviceGetComputeInstanceId(void *device, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    return number(to, is_part(row) ? 0 : GPI_UNKNOWN32);
}

EXPORTED int nvmlDeviceGetAttributes_v2(void *device, void *to);
int nvmlDeviceGetAttributes_v2(void *device, void *to)
{
    unsigned slices = 0;
    DEVICE(GPI_SCRIPT_ENUMERATE);

    if (!is_part(row))
        return NOT_SUPPORTED;
    memset(to, 0, 40);
    (void)sscanf(identity(row).mig_profile, "%u", &slices);
    put32(to, 24, slices);
    put32(to, 28, slices);
    put64(to, 32, identity(row).memory_total >> 20);
    return OK;
}

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
    const struct gpi_device d = identity(row);
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
        if (!dot || (size_t)(dot - entry->d_name) != strlen(d.uuid) || strncmp(entry->d_name, d.uuid, strlen(d.uuid)) != 0)
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
        else if (!is_back(d.uuid, p.pid, state_of(row).late))
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
    const struct gpi_sample x = state_of(row).sample;
    const uint64_t used = used_of(row, &x);

    put64(to, 0, x.memory_total);
    put64(to, 8, x.memory_total - used);
    put64(to, 16, used);
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
    const struct gpi_sample x = state_of(row).sample;
    const uint64_t used = used_of(row, &x), own = used < reserved(&x) ? 0 : reserved(&x);

    if (get32(to, 0) != 0x02000028)
        return ARGUMENT_VERSION_MISMATCH;
    put64(to, 8, x.memory_total);
    put64(to, 16, own);
    put64(to, 24, x.memory_total - used);
    put64(to, 32, used - own);
    return OK;
}
#endif

static int processes(uint32_t row, uint32_t *n, char *to, size_t size)
{
    struct process list[HELD];
    uint64_t late;
    const uint32_t ours = held(row, list, &late);
    const struct gpi_sample x = state_of(row).sample;
    const uint32_t others = x.n_users < GPI_PROCESSES_MAX ? x.n_users : GPI_PROCESSES_MAX, room = *n;

    if (driver().hides_processes)
        return NO_PERMISSION;
    *n = ours + others;
    if (*n > room)
        return INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < *n; i++) {
        char *at = to + i * size;
        memset(at, 0, size);
        put32(at, 0, i < ours ? (uint32_t)list[i].pid : x.user[i - ours].pid);
        put64(at, 8, i < ours ? list[i].memory : x.user[i - ours].memory);
        put32(at, 16, is_part(row) ? identity(row).mig_index + 7 : UINT32_MAX);
        put32(at, 20, is_part(row) ? 0 : UINT32_MAX);
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
    return processes(row, n, to, driver().entry_size);
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
    const struct gpi_sample x = state_of(row).sample;

    if (is_part(row) || identity(row).mig_parts || x.utilization == GPI_UNKNOWN32)
        return NOT_SUPPORTED;
    put32(to, 0, x.utilization);
    put32(to, 4, x.memory_utilization);
    return OK;
}

EXPORTED int nvmlDeviceGetTemperature(void *device, int sensor, uint32_t *to);
int nvmlDeviceGetTemperature(void *device, int sensor, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    return sensor || is_part(row) ? NOT_SUPPORTED : number(to, state_of(row).sample.temperature);
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
    code = is_part(row) || get32(to, 4) ? NOT_SUPPORTED : number(&degrees, state_of(row).sample.temperature);
    put32(to, 8, degrees);
    return code;
}
#endif

EXPORTED int nvmlDeviceGetPowerUsage(void *device, uint32_t *to);
int nvmlDeviceGetPowerUsage(void *device, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    return is_part(row) ? NOT_SUPPORTED : number(to, state_of(row).sample.power);
}

EXPORTED int nvmlDeviceGetEnforcedPowerLimit(void *device, uint32_t *to);
int nvmlDeviceGetEnforcedPowerLimit(void *device, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    return is_part(row) ? NOT_SUPPORTED : number(to, state_of(row).sample.power_limit);
}

EXPORTED int nvmlDeviceGetClockInfo(void *device, int which, uint32_t *to);
int nvmlDeviceGetClockInfo(void *device, int which, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    return is_part(row) || which != 1 ? NOT_SUPPORTED : number(to, state_of(row).sample.sm_clock);
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
    *to = state_of(row).sample.throttle;
    return is_part(row) || *to == GPI_UNKNOWN64 ? NOT_SUPPORTED : OK;
}

EXPORTED int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, uint64_t *to);
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, uint64_t *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    const struct gpi_sample x = state_of(row).sample;

    *to = type ? x.ecc_uncorrected : x.ecc_corrected;
    return counter || is_part(row) || *to == GPI_UNKNOWN64 ? NOT_SUPPORTED : OK;
}

EXPORTED int nvmlDeviceGetRetiredPagesPendingStatus(void *device, int *to);
int nvmlDeviceGetRetiredPagesPendingStatus(void *device, int *to)
{
    uint32_t pending = 0;
    DEVICE(GPI_SCRIPT_SAMPLE);
    const int code = number(&pending, state_of(row).sample.remap_pending);

    *to = (int)pending;
    return code;
}

#ifndef FAKE_OLD
EXPORTED int nvmlDeviceGetRemappedRows(void *device, uint32_t *corrected, uint32_t *uncorrected, uint32_t *pending, uint32_t *failed);
int nvmlDeviceGetRemappedRows(void *device, uint32_t *corrected, uint32_t *uncorrected, uint32_t *pending, uint32_t *failed)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    const struct gpi_sample x = state_of(row).sample;

    if (is_part(row) || identity(row).mig_parts || x.remapped_rows == GPI_UNKNOWN32 || x.remap_pending == GPI_UNKNOWN32 || x.remap_failed == GPI_UNKNOWN32)
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

    put32(at, 24, type);
    if (value == GPI_UNKNOWN32) {
        put32(at, 28, NOT_SUPPORTED);
        put64(at, 32, 0x7777777777777777ull);
        return;
    }
    put32(at, 28, OK);
    put64(at, 32, 0xffffffffffffffffull); /* what does not belong to the value */
    if (type == 0)
        memcpy(at + 32, &d, 8);
    else if (type == 2 || type == 3 || type == 4)
        put64(at, 32, value);
    else if (type == 6)
        put16(at, 32, (uint16_t)value);
    else
        put32(at, 32, value);
}

EXPORTED int nvmlDeviceGetFieldValues(void *device, int n, void *to);
int nvmlDeviceGetFieldValues(void *device, int n, void *to)
{
    DEVICE(GPI_SCRIPT_SAMPLE);
    const struct gpi_sample x = state_of(row).sample;
    const bool rows_known = !is_part(row) && !identity(row).mig_parts;

    for (int i = 0; i < n; i++) {
        char *at = (char *)to + (size_t)i * 40;
        put64(at, 8, gpi_now() / 1000);
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
            put_field(at, 0, is_part(row) ? GPI_UNKNOWN32 : x.power);
            break;
        case 230:
            put_field(at, 1, is_part(row) ? GPI_UNKNOWN32 : x.recovery);
            break;
        default:
            put32(at, 28, INVALID_ARGUMENT);
            break;
        }
    }
    return OK;
}
#endif

/* ---- events ---- */

struct set {
    struct gpi_script_cursor cursor;
    uint64_t heard_until;
    uint64_t types[GPI_GPUS_MAX];
    bool begun;
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
    *to = is_part(row) ? 0 : 0x8 | 0x1 | 0x2 | 0x8000;
    return OK;
}

EXPORTED int nvmlDeviceRegisterEvents(void *device, uint64_t types, void *set);
int nvmlDeviceRegisterEvents(void *device, uint64_t types, void *set)
{
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    struct set *s = set;
    struct gpi_incident i;
    DEVICE(GPI_SCRIPT_AWAIT);

    if (types & ~0x800bull || is_part(row))
        return NOT_SUPPORTED;
    if (!s->begun) { /* what was before is not heard */
        s->heard_until = now(fired);
        while (gpi_script_incident(fake.script, fired, &s->cursor, s->heard_until, &i))
            ;
        s->begun = true;
    }
    s->types[row] = types;
    return OK;
}

static bool some_is_lost(const struct set *s)
{
    for (uint32_t row = 0; row < gpi_script_rows(fake.script); row++)
        if (s->types[row] && of_access(row) == GPU_IS_LOST)
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
    put64(to, 8, xid ? 0x8 : 0x8000);
    put64(to, 16, xid ? i->number : 0);
    put32(to, 24, UINT32_MAX);
    put32(to, 28, UINT32_MAX);
    if (gpu == GPI_UNKNOWN32)
        return true;
    part = is_part(gpu);
    if (part) {
        put32(to, 24, identity(gpu).mig_index + 7);
        put32(to, 28, 0);
        gpu = gpi_script_row(fake.script, identity(gpu).index, GPI_UNKNOWN32);
    }
    put64(to, 0, (uint64_t)(uintptr_t)(fake.row + gpu));
    return s->types[gpu] & (xid ? 0x8u : 0x8000u);
}

/* The next event that is due. */
static bool next_event(struct set *s, char *to, bool *ret_deaf)
{
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX], t = now(fired);
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
    const uint64_t t = now(fired), at = gpi_now();

    if (gpi_script_triggers(fake.script) || gpi_script_next(fake.script, fired, t) != GPI_NEVER)
        return GPI_MS;
    return end > at ? end - at : 0;
}

EXPORTED int nvmlEventSetWait_v2(void *set, void *to, uint32_t ms);
int nvmlEventSetWait_v2(void *set, void *to, uint32_t ms)
{
    const uint64_t end = gpi_now() + ms * GPI_MS;
    bool deaf;

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
        rest(calm(end));
        atomic_fetch_sub(&fake_nvml_calls, 1); /* still the same */
    }
}
