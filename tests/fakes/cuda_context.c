/* SPDX-License-Identifier: MIT */
/* cuda_context.c - contexts of the fake libcuda.so.1, and what works in one: streams, kernels,
 * memory. */
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/cuda_abi.h"

#define CONTEXT_SIZE ((uint64_t)256 << 20)
enum { STACK = 16 };

enum kind { PLAIN, CANARY, FAILS, TAKES, ENDLESS };

struct kernel {
    enum kind kind;
    long number; /* error, or microseconds */
};

static __thread struct device *stack[STACK];
static __thread int depth;

struct device *f_current(void)
{
    return depth ? stack[depth - 1] : NULL;
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
    struct gpi_script_state s = f_state_of(d->row);

    if (s.access != GPI_ACCESS_OK)
        return s.access == GPI_ACCESS_REVOKED ? GPI_CU_UNKNOWN : 719;
    return s.compute_mode == GPI_CU_COMPUTE_MODE_PROHIBITED ? GPI_CU_DEVICE_UNAVAILABLE : 0;
}

gpi_cu_primary_flags_fn cuDevicePrimaryCtxSetFlags_v2;
int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
    if (!f_is_device(device))
        return INVALID_DEVICE;
    ENTER_ON(fake.device[device].row, NULL);
    fake.device[device].flags = flags;
    fake_cuda_flags = fake.device[0].flags;
    return 0;
}

gpi_cu_primary_state_fn cuDevicePrimaryCtxGetState;
int cuDevicePrimaryCtxGetState(int device, unsigned *ret_flags, int *ret_active)
{
    if (!f_is_device(device))
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

    if (!f_is_device(device))
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

    if (!f_is_device(device))
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
    *ret = f_current();
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
        k->hangs = f_says(d->row, GPI_SCRIPT_KERNEL, NULL).hangs;
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
        (void)f_passes(GPI_MS / 5);
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

/* What the library's kernel does, by its description. */
static void compute_canary(struct device *d, void **parameters, unsigned count)
{
    unsigned *out = (unsigned *)(uintptr_t) * (gpi_cu_pointer *)parameters[0],
             seed = *(unsigned *)parameters[1], x;
    struct gpi_script_state s = f_state_of(d->row);
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

static void start(struct device *d, const struct kernel *k, void *stream, const volatile int *stop,
                  bool hangs)
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
int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                   void *stream, void **parameters, void **extra)
{
    const struct kernel *k = function;
    struct gpi_script_call says;
    struct device *d;

    (void)grid_y, (void)grid_z, (void)block_y, (void)block_z, (void)shared, (void)extra;
    ENTER_CONTEXT(d);
    says = f_says(d->row, GPI_SCRIPT_KERNEL, NULL);
    start(d, k, stream, k->kind == ENDLESS ? *(const volatile int **)parameters[0] : NULL,
          says.hangs);
    d->error = k->kind == FAILS ? (int)k->number : f_failure(GPI_SCRIPT_KERNEL, &says);
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
    s = f_state_of(d->row);
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

/* The library copies nothing to a device; python/tests/gpu.py does. */
int cuMemcpyHtoD_v2(gpi_cu_pointer to, const void *from, size_t size);
int cuMemcpyHtoD_v2(gpi_cu_pointer to, const void *from, size_t size)
{
    struct device *d;

    ENTER_CONTEXT(d);
    memcpy((void *)(uintptr_t)to, from, size);
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
        if (sscanf(line, "%lx-%lx %7s", &from, &to, access) == 3 && (uintptr_t)at >= from &&
            (uintptr_t)at < to)
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
    struct device *d = f_current();
    int r = f_enter_on(d ? d->row : GPI_UNKNOWN32, __func__, NULL), room = -1;

    if (r || !d || size > (size_t)1 << 30)
        return refuse(r ? r : INVALID_VALUE);
    if (!(flags & GPI_CU_REGISTER_READ_ONLY) && !is_writable(at))
        return refuse(INVALID_VALUE);
    for (int i = 0; i < RANGES; i++) {
        if (fake.range[i].at && (char *)at < fake.range[i].at + fake.range[i].size &&
            fake.range[i].at < (char *)at + size)
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
