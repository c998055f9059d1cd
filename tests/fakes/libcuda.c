/* SPDX-License-Identifier: MIT */
/*
 * libcuda.c - stands in for libcuda.so.1. A script describes its GPUs
 * (docs/reference/fake-scripts.md); CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER set their order. It
 * has contexts, memory, streams, and kernels that it knows by their names. As with the real one,
 * nothing works in a process that was forked after cuInit, and after a sticky error nothing works
 * in a context.
 *
 * FAKE_SCRIPT is the script's file, FAKE_SCRIPT_TEXT a script itself; without both there is one
 * healthy GPU. Time counts from cuInit. FAKE_CUDA_RESULT is the code that cuDeviceGetCount returns.
 * Every call obeys `hang`, `slow` and `fail` by its name; a call that is slow and is interrupted by
 * a signal fails with 999, as a driver may.
 *
 * Kernels of any module: "fails_N" ends with error N, "takes_N" needs so many microseconds,
 * "endless" ends when the int is not 0 to which its only parameter points, others do nothing. The
 * library's canary is computed, unless the script says that it fails.
 *
 * Where there is a folder FAKE_SCRIPT.held, what a process holds on a device is in the file
 * UUID.PID there, for the fake libnvidia-ml.so.1: 256 MiB for a context, and what it has
 * allocated. Where a script says `canary=fail*N`, FAKE_SCRIPT.canaries counts over all processes.
 *
 * Which processes have a GPU open: open_gpu.h.
 *
 * For a look from inside the process: fake_cuda_calls counts all calls, fake_cuda_flags are those
 * of the first device's primary context, fake_cuda_pinned the ranges registered now,
 * fake_cuda_refused the registrations that were refused, fake_cuda_contexts the primary contexts
 * there are.
 *
 * Here: the script, and which devices there are. cuda_context.c has contexts, and what works in
 * one: kernels and memory.
 */
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "gpudispatch/device.h"
#include "open_gpu.h"
#include "cuda_order.h"
#include "script_text.h"
#include "worker/cuda_abi.h"

unsigned fake_cuda_calls, fake_cuda_flags, fake_cuda_pinned, fake_cuda_refused, fake_cuda_contexts;
struct fake fake;

/* ---- the script ---- */

uint64_t f_now(void)
{
    return gpi_now() - fake.began;
}

static void read_script(void)
{
    struct gpud_error e = { .struct_size = sizeof e };
    char *text = fake_script_text();

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

bool f_passes(uint64_t duration)
{
    const struct timespec t = { .tv_sec = (time_t)(duration / GPI_S),
                                .tv_nsec = (long)(duration % GPI_S) };

    return nanosleep(&t, NULL) == 0;
}

struct gpi_script_call f_says(uint32_t row, const char *call, const char *group)
{
    struct gpi_script_call c;

    (void)gpi_script_look(fake.script, fake.fired, f_now());
    gpi_script_call(fake.script, fake.fired, row, call, group, f_now(), &c);
    return c;
}

struct gpi_script_state f_state_of(uint32_t row)
{
    struct gpi_script_state s;

    (void)gpi_script_look(fake.script, fake.fired, f_now());
    gpi_script_state(fake.script, fake.fired, row, f_now(), &s);
    return s;
}

int f_failure(const char *call, const struct gpi_script_call *c)
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
    struct gpi_script_call c = f_says(row, call, group);

    while (c.hangs) {
        (void)f_passes(GPI_MS);
        c = f_says(row, call, group);
    }
    if (c.delay && !f_passes(c.delay))
        return GPI_CU_UNKNOWN;
    return f_failure(call, &c);
}

/* ---- entering ---- */

int f_enter_on(uint32_t row, const char *call, const char *group)
{
    fake_cuda_calls++;
    return fake.owner == getpid() ? obey(row, call, group) : NOT_INITIALIZED;
}


/* ---- who is there ---- */

static bool is_there(uint32_t row)
{
    struct gpi_script_state s = f_state_of(row);

    return s.access == GPI_ACCESS_OK;
}

static void show(uint32_t row)
{
    struct gpi_device d;

    if (fake.n == DEVICES)
        return;
    gpi_script_identity(fake.script, row, &d);
    fake_open_gpu(*d.parent_uuid ? d.parent_uuid : d.uuid);
    fake.device[fake.n++] = (struct device){ .row = row };
}

/* Of a GPU in MIG mode CUDA shows the first instance. */
static uint32_t shown_row(uint32_t gpu)
{
    uint32_t part = gpi_script_row(fake.script, gpu, 0);

    return part == GPI_UNKNOWN32 ? gpi_script_row(fake.script, gpu, GPI_UNKNOWN32) : part;
}

static bool is_before(uint32_t gpu, uint32_t other)
{
    struct gpi_device a, b;
    int order;

    gpi_script_identity(fake.script, gpi_script_row(fake.script, gpu, GPI_UNKNOWN32), &a);
    gpi_script_identity(fake.script, gpi_script_row(fake.script, other, GPI_UNKNOWN32), &b);
    order = strcasecmp(a.pci, b.pci);
    return order < 0 || (order == 0 && gpu < other);
}

/* The GPU before which there are so many by PCI address. */
static uint32_t by_pci(uint32_t place)
{
    for (uint32_t gpu = 0; gpu < gpi_script_gpus(fake.script); gpu++) {
        uint32_t before = 0;
        for (uint32_t i = 0; i < gpi_script_gpus(fake.script); i++)
            before += is_before(i, gpu);
        if (before == place)
            return gpu;
    }
    return GPI_UNKNOWN32;
}

static uint32_t nth(uint32_t n)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    uint32_t seen = 0;

    for (uint32_t i = 0; i < gpi_script_gpus(fake.script); i++) {
        uint32_t gpu =
            order && !strcmp(order, "PCI_BUS_ID") ? by_pci(i) : fake_cuda_gpu(fake.script, i);
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
        [GPUD_DRIVER_NONE] = GPI_CU_NO_DEVICE,
        [GPUD_DRIVER_NOT_LOADED] = GPI_CU_NO_DEVICE,
        [GPUD_DRIVER_MISMATCH] = 803,
        [GPUD_DRIVER_TOO_OLD] = 804,
        [GPUD_DRIVER_NO_PERMISSION] = GPI_CU_OPERATING_SYSTEM,
        [GPUD_DRIVER_REVOKED] = GPI_CU_UNKNOWN,
        [GPUD_DRIVER_FAILED] = GPI_CU_UNKNOWN,
    };
    struct gpi_script_driver d;

    do {
        (void)gpi_script_look(fake.script, fake.fired, f_now());
        gpi_script_driver(fake.script, fake.fired, f_now(), &d);
    } while (d.state == GPUD_DRIVER_HUNG && (f_passes(GPI_MS), true));
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
    r = f_enter_on(GPI_UNKNOWN32, __func__, GPI_SCRIPT_OPEN);
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

bool f_is_device(int i)
{
    return i >= 0 && i < fake.n;
}

gpi_cu_device_get_fn cuDeviceGet;
int cuDeviceGet(int *ret_device, int index)
{
    if (!f_is_device(index))
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
    if (!f_is_device(device))
        return INVALID_DEVICE;
    ENTER_ON(fake.device[device].row, GPI_SCRIPT_ENUMERATE);
    return tell_uuid(ret, device, true);
}
#endif

gpi_cu_device_uuid_fn cuDeviceGetUuid;
int cuDeviceGetUuid(gpi_cu_uuid *ret, int device)
{
    if (!f_is_device(device))
        return INVALID_DEVICE;
    ENTER_ON(fake.device[device].row, GPI_SCRIPT_ENUMERATE);
    return tell_uuid(ret, device, false);
}

gpi_cu_device_attribute_fn cuDeviceGetAttribute;
int cuDeviceGetAttribute(int *ret, int which, int device)
{
    if (!f_is_device(device))
        return INVALID_DEVICE;
    ENTER_ON(fake.device[device].row, GPI_SCRIPT_ENUMERATE);
    *ret = which == GPI_CU_ATTRIBUTE_COMPUTE_MODE
               ? (int)f_state_of(fake.device[device].row).compute_mode
               : which == GPI_CU_ATTRIBUTE_REGISTER_READ_ONLY;
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
