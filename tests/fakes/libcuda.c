/* SPDX-License-Identifier: MIT */
/*
 * libcuda.c - stands in for libcuda.so.1: GPUs as a script has them (docs/fake-devices.md), in the order that
 * CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER ask for, contexts, memory, streams, and kernels that are known by their names.
 * As with the real one, nothing works in a process that was forked after cuInit, and after a sticky error
 * nothing works in a context.
 *
 * FAKE_SCRIPT is the script's file, FAKE_SCRIPT_TEXT a script itself; without both there is one healthy GPU. Time counts
 * from cuInit.  FAKE_CUDA_RESULT is what cuDeviceGetCount answers.  Every call obeys `hang`, `slow` and `fail` by its
 * name; a call that is slow and is interrupted by a signal fails with 999, as a driver may.
 *
 * Kernels of any module: "fails_N" ends with error N, "takes_N" needs so many microseconds, "endless" ends when the int is not
 * 0 to which its only parameter points, others do nothing.  The library's canary is computed, unless the script says that it fails.
 *
 * Where there is a folder FAKE_SCRIPT.held, what a process holds on a device is in the file UUID.PID there, for the fake libnvidia-ml.so.1:
 * 256 MiB for a context, and what it has allocated.  Where a script says `canary=fail*N`, FAKE_SCRIPT.canaries counts over all processes.
 *
 * For a look from inside the process: fake_cuda_calls counts all calls, fake_cuda_flags are those of the first device's primary
 * context, fake_cuda_pinned the ranges registered now, fake_cuda_refused the registrations that were refused, fake_cuda_contexts the
 * primary contexts there are.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/script.h"
#include "gpudispatch/device.h"
#include "worker/cuda_abi.h"

enum { NOT_INITIALIZED = 3, OUT_OF_MEMORY = 2, INVALID_VALUE = 1, INVALID_DEVICE = 101, INVALID_HANDLE = 400, ALREADY_REGISTERED = 712, NOT_REGISTERED = 713 };
#define CONTEXT_SIZE ((uint64_t)256 << 20)
enum { DEVICES = 64, KERNELS = 64, STACK = 16, RANGES = 64 };

extern unsigned fake_cuda_calls, fake_cuda_flags, fake_cuda_pinned, fake_cuda_refused, fake_cuda_contexts;
unsigned fake_cuda_calls, fake_cuda_flags, fake_cuda_pinned, fake_cuda_refused, fake_cuda_contexts;

enum kind { PLAIN, CANARY, FAILS, TAKES, ENDLESS };

struct kernel {
    enum kind kind;
    long number; /* error, or microseconds */
};

struct running {
    bool there;
    void *stream;
    uint64_t until;
    const volatile int *stop; /* of an endless one */
    bool hangs;               /* by the script */
};

struct device {
    uint32_t row;
    unsigned refs, flags;
    int error; /* of its context, sticky */
    struct running running[KERNELS];
    uint64_t used; /* memory */
    struct gpi_script_canary canary;
};

static struct {
    pid_t owner;
    struct gpi_script *script;
    uint64_t began;
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    struct device device[DEVICES];
    int n;
    uint32_t failed[512], failed_turn[512]; /* per kind of call: how often it has failed, by which line */
    struct {
        char *at;
        size_t size;
    } range[RANGES];
    struct gpi_script_canary *canary; /* of all processes, where the script is a file */
} fake;

static __thread struct device *stack[STACK];
static __thread int depth;

/* ---- the script ---- */

static uint64_t now(void)
{
    return gpi_now() - fake.began;
}

static char *script_text(void)
{
    const char *path = getenv("FAKE_SCRIPT"), *text = getenv("FAKE_SCRIPT_TEXT");
    char *all = calloc(1, 65537);
    FILE *f = path ? fopen(path, "re") : NULL;

    if (f) {
        (void)!fread(all, 1, 65536, f);
        fclose(f);
    } else if (text) {
        snprintf(all, 65537, "%s", text);
    }
    return all;
}

/* Canaries that fail so many times are counted over the lives of workers. */
static void share_canaries(void)
{
    const char *path = getenv("FAKE_SCRIPT");
    const size_t size = GPI_GPUS_MAX * sizeof *fake.canary;
    char name[4096];
    FILE *f;

    if (!path || fake.canary)
        return;
    snprintf(name, sizeof name, "%s.canaries", path);
    f = fopen(name, "a+e");
    if (!f || ftruncate(fileno(f), (off_t)size))
        abort();
    fake.canary = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
    fclose(f);
}

static void read_script(void)
{
    struct gpud_error e = { .struct_size = sizeof e };
    char *text = script_text();

    if (gpi_script_parse(&fake.script, text, *text ? 0 : 1, &e)) {
        fprintf(stderr, "fake libcuda: %s\n", e.text);
        abort();
    }
    free(text);
    fake.began = gpi_now();
    for (uint32_t i = 0; i < GPI_SCRIPT_TRIGGERS_MAX; i++)
        fake.fired[i] = GPI_NEVER;
}

/* For who looks for leaks: a library that was closed reaches nothing any more. */
__attribute__((destructor)) static void forget_script(void)
{
    gpi_script_free(fake.script);
    fake.script = NULL;
}

/* Takes its time; false when a signal came. */
static bool passes(uint64_t duration)
{
    const struct timespec t = { .tv_sec = (time_t)(duration / GPI_S), .tv_nsec = (long)(duration % GPI_S) };

    return nanosleep(&t, NULL) == 0;
}

static struct gpi_script_call script_says(uint32_t row, const char *call, const char *group)
{
    struct gpi_script_call c;

    (void)gpi_script_look(fake.script, fake.fired, now());
    gpi_script_call(fake.script, fake.fired, row, call, group, now(), &c);
    return c;
}

static struct gpi_script_state state_of(uint32_t row)
{
    struct gpi_script_state s;

    (void)gpi_script_look(fake.script, fake.fired, now());
    gpi_script_state(fake.script, fake.fired, row, now(), &s);
    return s;
}

/* `fail CALL CODE*N`: the N first ones of each such line. */
static int failure(const char *call, const struct gpi_script_call *c)
{
    unsigned slot = 0;

    for (const char *p = call; *p; p++)
        slot = (slot * 31 + (unsigned char)*p) % 512;
    if (!c->code)
        return 0;
    if (fake.failed_turn[slot] != c->turn)
        fake.failed[slot] = 0;
    fake.failed_turn[slot] = c->turn;
    return c->times == UINT32_MAX || fake.failed[slot]++ < c->times ? c->code : 0;
}

static int obey(uint32_t row, const char *call, const char *group)
{
    struct gpi_script_call c = script_says(row, call, group);

    while (c.hangs) {
        (void)passes(GPI_MS);
        c = script_says(row, call, group);
    }
    if (c.delay && !passes(c.delay))
        return GPI_CU_UNKNOWN;
    return failure(call, &c);
}

/* ---- entering ---- */

static int enter_on(uint32_t row, const char *call, const char *group)
{
    fake_cuda_calls++;
    return fake.owner == getpid() ? obey(row, call, group) : NOT_INITIALIZED;
}

#define ENTER_ON(row, group)                                 \
    do {                                                     \
        int entered = enter_on((row), __func__, (group));    \
        if (entered)                                         \
            return entered;                                  \
    } while (0)
#define ENTER() ENTER_ON(GPI_UNKNOWN32, NULL)

/* A call that works in the current context. */
#define ENTER_CONTEXT(d)                                     \
    do {                                                     \
        (d) = depth ? stack[depth - 1] : NULL;               \
        ENTER_ON((d) ? (d)->row : GPI_UNKNOWN32, NULL);      \
        if (!(d))                                            \
            return GPI_CU_INVALID_CONTEXT;                   \
        if ((d)->error)                                      \
            return (d)->error;                               \
    } while (0)

/* ---- who is there ---- */

static bool is_there(uint32_t row)
{
    struct gpi_script_state s = state_of(row);

    return s.access == GPI_ACCESS_OK;
}

static void show(uint32_t row)
{
    if (fake.n < DEVICES)
        fake.device[fake.n++] = (struct device){ .row = row };
}

/* Of a GPU in MIG mode CUDA shows the first instance. */
static uint32_t shown_row(uint32_t gpu)
{
    uint32_t part = gpi_script_row(fake.script, gpu, 0);

    return part == GPI_UNKNOWN32 ? gpi_script_row(fake.script, gpu, GPI_UNKNOWN32) : part;
}

static uint32_t nth(uint32_t n)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    uint32_t seen = 0;

    for (uint32_t i = 0; i < gpi_script_gpus(fake.script); i++) {
        uint32_t gpu = order && !strcmp(order, "PCI_BUS_ID") ? i : gpi_script_cuda_gpu(fake.script, i);
        if (is_there(gpi_script_row(fake.script, gpu, GPI_UNKNOWN32)) && seen++ == n)
            return shown_row(gpu);
    }
    return GPI_UNKNOWN32;
}

/* A UUID, or a beginning of one that fits one alone. */
static uint32_t by_uuid(const char *word)
{
    uint32_t found = GPI_UNKNOWN32;
    struct gpi_device d;

    for (uint32_t row = 0; row < gpi_script_rows(fake.script); row++) {
        gpi_script_identity(fake.script, row, &d);
        if (strncasecmp(d.uuid, word, strlen(word)) || !is_there(row) || d.mig_parts)
            continue;
        if (found != GPI_UNKNOWN32)
            return GPI_UNKNOWN32;
        found = row;
    }
    return found;
}

/* The list is cut at the first entry that is none. */
static void see_devices(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    char *list, *at, *word, *end;
    uint32_t row, n;

    if (!visible) {
        for (n = 0; (row = nth(n)) != GPI_UNKNOWN32; n++)
            show(row);
        return;
    }
    list = at = strdup(visible);
    while ((word = strsep(&at, ",")) != NULL && *word) {
        n = (uint32_t)strtoul(word, &end, 10);
        row = *end ? by_uuid(word) : nth(n);
        if (row == GPI_UNKNOWN32)
            break;
        show(row);
    }
    free(list);
}

static int driver_fault(void)
{
    static const int code[GPUD_DRIVER_COUNT] = {
        [GPUD_DRIVER_NONE] = GPI_CU_NO_DEVICE, [GPUD_DRIVER_NOT_LOADED] = GPI_CU_NO_DEVICE, [GPUD_DRIVER_MISMATCH] = 803, [GPUD_DRIVER_TOO_OLD] = 804,
        [GPUD_DRIVER_NO_PERMISSION] = GPI_CU_OPERATING_SYSTEM, [GPUD_DRIVER_REVOKED] = GPI_CU_UNKNOWN, [GPUD_DRIVER_FAILED] = GPI_CU_UNKNOWN,
    };
    struct gpi_script_driver d;

    do {
        (void)gpi_script_look(fake.script, fake.fired, now());
        gpi_script_driver(fake.script, fake.fired, now(), &d);
    } while (d.state == GPUD_DRIVER_HUNG && (passes(GPI_MS), true));
    return d.state < GPUD_DRIVER_COUNT ? code[d.state] : 0;
}

gpi_cu_init_fn cuInit;
int cuInit(unsigned flags)
{
    bool first = !fake.owner;
    int r;

    (void)flags;
    if (first) {
        fake.owner = getpid();
        read_script();
    }
    r = enter_on(GPI_UNKNOWN32, __func__, GPI_SCRIPT_OPEN);
    if (r || !first)
        return r;
    r = driver_fault();
    see_devices();
    return r ? r : fake.n ? GPI_CU_OK : GPI_CU_NO_DEVICE;
}

gpi_cu_device_count_fn cuDeviceGetCount;
int cuDeviceGetCount(int *ret_count)
{
    const char *told = getenv("FAKE_CUDA_RESULT");

    *ret_count = 1;
    if (told) {
        fake_cuda_calls++;
        return atoi(told);
    }
    ENTER_ON(GPI_UNKNOWN32, GPI_SCRIPT_ENUMERATE);
    *ret_count = fake.n;
    return 0;
}

static bool is_device(int i)
{
    return i >= 0 && i < fake.n;
}

gpi_cu_device_get_fn cuDeviceGet;
int cuDeviceGet(int *ret_device, int index)
{
    if (!is_device(index))
        return INVALID_DEVICE;
    ENTER_ON(fake.device[index].row, GPI_SCRIPT_ENUMERATE);
    *ret_device = index;
    return 0;
}

static void fill_uuid(gpi_cu_uuid *to, const char *text)
{
    size_t n = 0;

    memset(to, 0, sizeof *to);
    for (const char *p = text + 4; *p && n < 32; p++) {
        const char digit[2] = { *p, 0 };
        if (*p != '-')
            to->bytes[n / 2] |= (unsigned char)(strtoul(digit, NULL, 16) << (n % 2 ? 0 : 4)), n++;
    }
}

static int tell_uuid(gpi_cu_uuid *ret, int device, bool of_instance)
{
    struct gpi_device d;

    gpi_script_identity(fake.script, fake.device[device].row, &d);
    fill_uuid(ret, of_instance || !*d.parent_uuid ? d.uuid : d.parent_uuid);
    return 0;
}

#ifndef OLD_DRIVER
gpi_cu_device_uuid_fn cuDeviceGetUuid_v2;
int cuDeviceGetUuid_v2(gpi_cu_uuid *ret, int device)
{
    if (!is_device(device))
        return INVALID_DEVICE;
    ENTER_ON(fake.device[device].row, GPI_SCRIPT_ENUMERATE);
    return tell_uuid(ret, device, true);
}
#endif

gpi_cu_device_uuid_fn cuDeviceGetUuid;
int cuDeviceGetUuid(gpi_cu_uuid *ret, int device)
{
    if (!is_device(device))
        return INVALID_DEVICE;
    ENTER_ON(fake.device[device].row, GPI_SCRIPT_ENUMERATE);
    return tell_uuid(ret, device, false);
}

gpi_cu_device_attribute_fn cuDeviceGetAttribute;
int cuDeviceGetAttribute(int *ret, int which, int device)
{
    if (!is_device(device))
        return INVALID_DEVICE;
    ENTER_ON(fake.device[device].row, GPI_SCRIPT_ENUMERATE);
    *ret = which == GPI_CU_ATTRIBUTE_COMPUTE_MODE ? (int)state_of(fake.device[device].row).compute_mode : which == GPI_CU_ATTRIBUTE_REGISTER_READ_ONLY;
    return 0;
}

gpi_cu_error_name_fn cuGetErrorName;
int cuGetErrorName(int code, const char **ret)
{
    fake_cuda_calls++;
    *ret = code == 12345 ? "CUDA_ERROR_OF_THE_FAKE" : NULL;
    return *ret ? 0 : INVALID_VALUE;
}

gpi_cu_error_text_fn cuGetErrorString;
int cuGetErrorString(int code, const char **ret)
{
    fake_cuda_calls++;
    *ret = code == 700 ? "an illegal memory access was encountered" : "as the fake says";
    return 0;
}

/* ---- contexts ---- */

/* What this process has on a device, for the fake libnvidia-ml.so.1. */
static void hold(const struct device *d)
{
    const char *path = getenv("FAKE_SCRIPT");
    struct gpi_device id;
    char name[4096];
    FILE *f;

    if (!path)
        return;
    gpi_script_identity(fake.script, d->row, &id);
    snprintf(name, sizeof name, "%s.held", path);
    if (access(name, W_OK))
        return;
    snprintf(name, sizeof name, "%s.held/%s.%d", path, id.uuid, (int)getpid());
    f = fopen(name, "we");
    if (!f)
        return;
    fprintf(f, "%llu\n", (unsigned long long)(d->used + (d->refs ? CONTEXT_SIZE : 0)));
    fclose(f);
}

/* A context on a device that has gone, or may not be used. */
static int may_use(const struct device *d)
{
    struct gpi_script_state s = state_of(d->row);

    if (s.access != GPI_ACCESS_OK)
        return s.access == GPI_ACCESS_REVOKED ? GPI_CU_UNKNOWN : 719;
    return s.compute_mode == GPI_CU_COMPUTE_MODE_PROHIBITED ? GPI_CU_DEVICE_UNAVAILABLE : 0;
}

gpi_cu_primary_flags_fn cuDevicePrimaryCtxSetFlags_v2;
int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
    if (!is_device(device))
        return INVALID_DEVICE;
    ENTER_ON(fake.device[device].row, NULL);
    fake.device[device].flags = flags;
    fake_cuda_flags = fake.device[0].flags;
    return 0;
}

gpi_cu_primary_state_fn cuDevicePrimaryCtxGetState;
int cuDevicePrimaryCtxGetState(int device, unsigned *ret_flags, int *ret_active)
{
    if (!is_device(device))
        return INVALID_DEVICE;
    ENTER_ON(fake.device[device].row, NULL);
    *ret_flags = fake.device[device].flags;
    *ret_active = fake.device[device].refs > 0;
    return 0;
}

gpi_cu_primary_retain_fn cuDevicePrimaryCtxRetain;
int cuDevicePrimaryCtxRetain(void **ret, int device)
{
    struct device *d = &fake.device[device];

    if (!is_device(device))
        return INVALID_DEVICE;
    ENTER_ON(d->row, NULL);
    if (may_use(d))
        return may_use(d);
    fake_cuda_contexts += d->refs++ == 0;
    if (d->refs == 1)
        hold(d);
    *ret = d;
    return 0;
}

gpi_cu_primary_release_fn cuDevicePrimaryCtxRelease_v2;
int cuDevicePrimaryCtxRelease_v2(int device)
{
    struct device *d = &fake.device[device];

    if (!is_device(device))
        return INVALID_DEVICE;
    ENTER_ON(d->row, NULL);
    if (!d->refs)
        return GPI_CU_INVALID_CONTEXT;
    fake_cuda_contexts -= --d->refs == 0;
    if (d->refs == 0)
        hold(d);
    return 0;
}

gpi_cu_context_get_fn cuCtxGetCurrent;
int cuCtxGetCurrent(void **ret)
{
    ENTER();
    *ret = depth ? stack[depth - 1] : NULL;
    return 0;
}

gpi_cu_context_set_fn cuCtxSetCurrent;
int cuCtxSetCurrent(void *context)
{
    ENTER();
    depth = depth ? depth : 1;
    stack[depth - 1] = context;
    return 0;
}

gpi_cu_context_push_fn cuCtxPushCurrent_v2;
int cuCtxPushCurrent_v2(void *context)
{
    ENTER();
    if (!context || depth == STACK)
        return GPI_CU_INVALID_CONTEXT;
    stack[depth++] = context;
    return 0;
}

gpi_cu_context_pop_fn cuCtxPopCurrent_v2;
int cuCtxPopCurrent_v2(void **ret)
{
    ENTER();
    if (!depth)
        return GPI_CU_INVALID_CONTEXT;
    *ret = stack[--depth];
    return 0;
}

/* ---- kernels ---- */

static bool is_over(struct device *d, struct running *k)
{
    if (k->hangs)
        k->hangs = script_says(d->row, GPI_SCRIPT_KERNEL, NULL).hangs;
    return !k->hangs && (k->stop ? *k->stop != 0 : gpi_now() >= k->until);
}

/* Whether anything runs in a stream, NULL: in any. */
static bool runs(struct device *d, const void *stream)
{
    bool any = false;

    for (int i = 0; i < KERNELS; i++) {
        struct running *k = &d->running[i];
        k->there = k->there && !is_over(d, k);
        any |= k->there && (!stream || k->stream == stream);
    }
    return any;
}

gpi_cu_context_sync_fn cuCtxSynchronize;
int cuCtxSynchronize(void)
{
    struct device *d;

    ENTER_CONTEXT(d);
    while (runs(d, NULL))
        (void)passes(GPI_MS / 5);
    return d->error ? d->error : may_use(d);
}

#ifndef ANCIENT_DRIVER
gpi_cu_stream_query_fn cuStreamQuery;
int cuStreamQuery(void *stream)
{
    struct device *d;

    ENTER_CONTEXT(d);
    return runs(d, stream) ? GPI_CU_NOT_READY : 0;
}
#endif

gpi_cu_module_load_fn cuModuleLoadData;
int cuModuleLoadData(void **ret, const void *image)
{
    struct device *d;

    ENTER_CONTEXT(d);
    if (!strstr(image, ".entry"))
        return GPI_CU_INVALID_PTX;
    *ret = calloc(1, sizeof(void *));
    return 0;
}

gpi_cu_module_unload_fn cuModuleUnload;
int cuModuleUnload(void *module)
{
    struct device *d;

    ENTER_CONTEXT(d);
    free(module);
    return 0;
}

gpi_cu_module_function_fn cuModuleGetFunction;
int cuModuleGetFunction(void **ret, void *module, const char *name)
{
    static struct kernel made[KERNELS];
    static unsigned n;
    struct kernel *k = &made[n++ % KERNELS];
    struct device *d;

    (void)module;
    ENTER_CONTEXT(d);
    *k = (struct kernel){ .kind = PLAIN };
    if (!strcmp(name, "gpud_canary"))
        k->kind = CANARY;
    else if (sscanf(name, "fails_%ld", &k->number) == 1)
        k->kind = FAILS;
    else if (sscanf(name, "takes_%ld", &k->number) == 1)
        k->kind = TAKES;
    else if (!strcmp(name, "endless"))
        k->kind = ENDLESS;
    *ret = k;
    return 0;
}

/* What the library's kernel does, by its description. */
static void compute_canary(struct device *d, void **parameters, unsigned count)
{
    unsigned *out = (unsigned *)(uintptr_t)*(gpi_cu_pointer *)parameters[0], seed = *(unsigned *)parameters[1], x;
    struct gpi_script_state s = state_of(d->row);
    struct gpi_script_canary *c;

    if (s.canary_fails && s.canary_fails != UINT32_MAX)
        share_canaries();
    c = fake.canary ? &fake.canary[d->row] : &d->canary;

    for (unsigned i = 0; i < count; i++) {
        x = i ^ seed;
        for (int round = 0; round < 64; round++)
            x = x * 1664525u + 1013904223u;
        out[i] = x;
    }
    if (gpi_script_canary_fails(c, &s))
        out[count / 2] ^= 1;
}

static void start(struct device *d, const struct kernel *k, void *stream, const volatile int *stop, bool hangs)
{
    for (int i = 0; i < KERNELS; i++) {
        struct running *r = &d->running[i];
        if (r->there)
            continue;
        *r = (struct running){ .there = true, .stream = stream, .stop = stop, .hangs = hangs };
        r->until = gpi_now() + (k->kind == TAKES ? (uint64_t)k->number * GPI_US : 0);
        return;
    }
    abort(); /* no more are meant */
}

gpi_cu_launch_fn cuLaunchKernel;
int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                   void *stream, void **parameters, void **extra)
{
    const struct kernel *k = function;
    struct gpi_script_call says;
    struct device *d;

    (void)grid_y, (void)grid_z, (void)block_y, (void)block_z, (void)shared, (void)extra;
    ENTER_CONTEXT(d);
    says = script_says(d->row, GPI_SCRIPT_KERNEL, NULL);
    start(d, k, stream, k->kind == ENDLESS ? *(const volatile int **)parameters[0] : NULL, says.hangs);
    d->error = k->kind == FAILS ? (int)k->number : failure(GPI_SCRIPT_KERNEL, &says);
    if (k->kind == CANARY && !says.hangs)
        compute_canary(d, parameters, grid_x * block_x);
    return 0;
}

/* ---- memory ---- */

gpi_cu_memory_alloc_fn cuMemAlloc_v2;
int cuMemAlloc_v2(gpi_cu_pointer *ret, size_t size)
{
    struct gpi_script_state s;
    struct device *d;
    size_t *at;

    ENTER_CONTEXT(d);
    s = state_of(d->row);
    if (d->used + size > s.sample.memory_free)
        return OUT_OF_MEMORY;
    at = calloc(1, size + 64);
    *at = size;
    d->used += size;
    hold(d);
    *ret = (gpi_cu_pointer)((uintptr_t)at + 64);
    return 0;
}

gpi_cu_memory_free_fn cuMemFree_v2;
int cuMemFree_v2(gpi_cu_pointer at)
{
    struct device *d;

    ENTER_CONTEXT(d);
    d->used -= *(size_t *)(uintptr_t)(at - 64);
    free((void *)(uintptr_t)(at - 64));
    hold(d);
    return 0;
}

gpi_cu_memory_set_fn cuMemsetD32_v2;
int cuMemsetD32_v2(gpi_cu_pointer at, unsigned value, size_t count)
{
    struct device *d;

    ENTER_CONTEXT(d);
    for (size_t i = 0; i < count; i++)
        ((unsigned *)(uintptr_t)at)[i] = value;
    return 0;
}

gpi_cu_memory_fetch_fn cuMemcpyDtoH_v2;
int cuMemcpyDtoH_v2(void *to, gpi_cu_pointer from, size_t size)
{
    struct device *d;

    ENTER_CONTEXT(d);
    memcpy(to, (const void *)(uintptr_t)from, size);
    return 0;
}

/* Whether the process may write there: write(2) reads, so /proc is asked. */
static bool is_writable(const void *at)
{
    FILE *f = fopen("/proc/self/maps", "re");
    unsigned long from, to;
    char access[8], line[512];
    bool writable = false;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%lx-%lx %7s", &from, &to, access) == 3 && (uintptr_t)at >= from && (uintptr_t)at < to)
            writable = access[1] == 'w';
    if (f)
        fclose(f);
    return writable;
}

static int refuse(int code)
{
    fake_cuda_refused++;
    return code;
}

gpi_cu_host_register_fn cuMemHostRegister_v2;
int cuMemHostRegister_v2(void *at, size_t size, unsigned flags)
{
    struct device *d = depth ? stack[depth - 1] : NULL;
    int r = enter_on(d ? d->row : GPI_UNKNOWN32, __func__, NULL), room = -1;

    if (r || !d || size > (size_t)1 << 30)
        return refuse(r ? r : INVALID_VALUE);
    if (!(flags & GPI_CU_REGISTER_READ_ONLY) && !is_writable(at))
        return refuse(INVALID_VALUE);
    for (int i = 0; i < RANGES; i++) {
        if (fake.range[i].at && (char *)at < fake.range[i].at + fake.range[i].size && fake.range[i].at < (char *)at + size)
            return refuse(ALREADY_REGISTERED);
        if (!fake.range[i].at)
            room = i;
    }
    if (room < 0)
        return refuse(OUT_OF_MEMORY);
    fake.range[room].at = at;
    fake.range[room].size = size;
    fake_cuda_pinned++;
    return 0;
}

gpi_cu_host_unregister_fn cuMemHostUnregister;
int cuMemHostUnregister(void *at)
{
    ENTER();
    for (int i = 0; i < RANGES; i++) {
        if (fake.range[i].at != at)
            continue;
        fake.range[i].at = NULL;
        fake_cuda_pinned--;
        return 0;
    }
    return NOT_REGISTERED;
}
