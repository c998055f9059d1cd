/* SPDX-License-Identifier: MIT */
#include "worker/cuda.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "gpudispatch/device.h"
#include "gpudispatch/dispatch.h"
#include "os/headroom.h"
#include "worker/cuda_state.h"

#define UUID_TEXT 37 /* 8-4-4-4-12 and the terminating zero */
/* of one arena: pinning holds locks of the driver that stop the calls of every process */
#define MOST_PINNED ((uint64_t)64 << 30)

bool gpi_cuda_on_gpu(const struct gpi_page *page)
{
    return page->device_kind == GPUD_DEVICE_GPU || page->device_kind == GPUD_DEVICE_MIG;
}

/* ---- which devices are there ---- */

static void print_uuid(char *to, const gpi_cu_uuid *u)
{
    size_t at = 0;

    for (size_t i = 0; i < sizeof u->bytes; i++)
        at += (size_t)snprintf(to + at, UUID_TEXT - at, "%s%02x",
                               i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u->bytes[i]);
}

/* Returns the digits of "GPU-...", "MIG-...", and "MIG-GPU-.../1/0", which is the form of instances
 * in drivers before 470. */
static const char *digits_of(const char *uuid)
{
    if (!strncmp(uuid, "MIG-", 4))
        uuid += 4;
    return strncmp(uuid, "GPU-", 4) == 0 ? uuid + 4 : uuid;
}

static void given_uuid(const struct gpi_cuda *c, uint32_t i, char (*to)[GPI_DEVICE_UUID_SIZE])
{
    gpi_page_text(*to, c->page->uuid[i], sizeof *to);
}

static bool by_number(const struct gpi_cuda *c)
{
    return c->page->visible == GPUD_VISIBLE_INDEX;
}

/* Compares device number i, as CUDA counts, with the assigned one. */
static int check_device(struct gpi_cuda *c, uint32_t i, char *text, size_t size)
{
    const char *kind = c->page->device_kind == GPUD_DEVICE_MIG ? "MIG" : "GPU";
    char given[GPI_DEVICE_UUID_SIZE], seen[UUID_TEXT], why[112];
    gpi_cu_uuid uuid;
    gpi_cu_result r = c->call.device_get(&c->device[i], (int)i);

    given_uuid(c, i, &given);
    if (r == GPI_CU_OK)
        r = c->call.device_uuid(&uuid, c->device[i]);
    if (r)
        return gpi_cuda_refuse(&c->call, r, given, text, size);
    print_uuid(seen, &uuid);
    if (!strncasecmp(digits_of(given), seen, UUID_TEXT - 1))
        return 0;
    c->others = true;
    snprintf(
        why, sizeof why,
        "CUDA's number %u is another GPU (visible), or CUDA_VISIBLE_DEVICES was changed before "
        "gpud_init",
        c->page->number[i]);
    snprintf(text, size, "CUDA's device %u is %s-%s, expected %s: %s", i, kind, seen, given,
             by_number(c) ? why
                          : "CUDA was used, or CUDA_VISIBLE_DEVICES changed, before gpud_init");
    return GPUD_EDEVICE;
}

/* Lists "GPU-..., GPU-..." as far as it fits. */
static void list_given(const struct gpi_cuda *c, char *to, size_t size)
{
    char one[GPI_DEVICE_UUID_SIZE];
    size_t at = 0;

    to[0] = '\0';
    for (uint32_t i = 0; i < c->n && at < size; i++) {
        given_uuid(c, i, &one);
        at += (size_t)snprintf(to + at, size - at, "%s%s", i ? ", " : "", one);
    }
}

/* Checks that CUDA has exactly the assigned devices, in order. */
static int check_devices(struct gpi_cuda *c, char *text, size_t size)
{
    char given[140];
    int count = 0, code = 0;
    gpi_cu_result r = c->call.device_count(&count);

    if (r)
        return gpi_cuda_refuse(&c->call, r, "counting the devices failed", text, size);
    for (uint32_t i = 0; i < c->n && i < (uint32_t)count && code == 0; i++)
        code = check_device(c, i, text, size);
    if (code || (uint32_t)count == c->n)
        return code;
    c->others = true;
    list_given(c, given, sizeof given);
    snprintf(text, size, "CUDA has %d devices, expected %u: %s", count, c->n, given);
    return GPUD_EDEVICE;
}

/* ---- contexts ---- */

/* Returns the device's primary context, held until give_back; makes it if there is none. */
static gpi_cu_result borrow(struct gpi_cuda *c, uint32_t i, gpi_cu_context *ret)
{
    *ret = c->first;
    return c->bound && i == 0 ? GPI_CU_OK : c->call.primary_retain(ret, c->device[i]);
}

static void give_back(struct gpi_cuda *c, uint32_t i)
{
    if (!c->bound || i > 0)
        (void)c->call.primary_release(c->device[i]);
}

static int no_context(struct gpi_cuda *c, uint32_t i, gpi_cu_result r, char *text, size_t size)
{
    char what[GPI_DEVICE_UUID_SIZE + 64], given[GPI_DEVICE_UUID_SIZE];
    int mode = 0;

    given_uuid(c, i, &given);
    (void)c->call.device_attribute(&mode, GPI_CU_ATTRIBUTE_COMPUTE_MODE, c->device[i]);
    snprintf(what, sizeof what, "%s%s: no context", given,
             mode == GPI_CU_COMPUTE_MODE_PROHIBITED          ? " (compute mode PROHIBITED)"
             : mode == GPI_CU_COMPUTE_MODE_EXCLUSIVE_PROCESS ? " (compute mode EXCLUSIVE_PROCESS)"
                                                             : "");
    return gpi_cuda_refuse(&c->call, r, what, text, size);
}

/* Runs before there is a context, so that it is made with these flags.  If the worker program made
 * one before its gpud_init, drivers before CUDA 11 leave it as it is. */
static int set_flags(struct gpi_cuda *c, char *text, size_t size)
{
    unsigned flags =
        c->page->cuda & GPUD_CUDA_SPIN ? GPI_CU_SCHED_SPIN : GPI_CU_SCHED_BLOCKING_SYNC;

    for (uint32_t i = 0; i < c->n; i++) {
        gpi_cu_result r = c->call.primary_flags(c->device[i], flags);
        if (r && r != GPI_CU_PRIMARY_CONTEXT_ACTIVE)
            return no_context(c, i, r, text, size);
    }
    return 0;
}

static int bind_first(struct gpi_cuda *c, char *text, size_t size)
{
    gpi_cu_result r = c->call.primary_retain(&c->first, c->device[0]);

    if (r == GPI_CU_OK) {
        c->bound = true;
        r = c->call.context_set(c->first);
    }
    return r ? no_context(c, 0, r, text, size) : 0;
}

/* ---- open ---- */

/* A signal handler ends a sleep early, but the boot takes its full time. */
static void sleep_until(uint64_t when)
{
    const struct timespec at = { .tv_sec = (time_t)(when / GPI_S),
                                 .tv_nsec = (long)(when % GPI_S) };

    while (gpi_now() < when)
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* Here the driver reads CUDA_VISIBLE_DEVICES.  A number that it does not have ends the list. */
static int start_driver(struct gpi_cuda *c, char *text, size_t size)
{
    char given[GPI_DEVICE_UUID_SIZE];
    gpi_cu_result r = c->call.init(0);

    c->others = r == GPI_CU_NO_DEVICE;
    given_uuid(c, 0, &given);
    if (r == 0)
        return 0;
    if (!c->others || !by_number(c))
        return gpi_cuda_refuse(&c->call, r, "cuInit failed", text, size);
    snprintf(text, size, "CUDA has no GPU with number %u, expected %s as in NVML (visible)",
             c->page->number[0], given);
    return GPUD_EDEVICE;
}

static int open_gpus(struct gpi_cuda *c, char *text, size_t size)
{
    int code = gpi_cuda_load(&c->call, text, size);

    if (code == 0)
        code = start_driver(c, text, size);
    if (code == 0 && c->call.mig_blind && c->page->device_kind == GPUD_DEVICE_MIG) {
        snprintf(
            text, size,
            "the driver is too old for MIG instances: its libcuda.so.1 has no cuDeviceGetUuid_v2");
        code = GPUD_EDEVICE;
    }
    if (code == 0)
        code = check_devices(c, text, size);
    if (code == 0)
        code = set_flags(c, text, size);
    if (code == 0 && !(c->page->cuda & GPUD_CUDA_NO_BIND))
        code = bind_first(c, text, size);
    return code;
}

int gpi_cuda_open(struct gpi_cuda **ret, struct gpi_page *page, char *text, size_t size)
{
    static struct gpi_cuda c; /* static: the worker is a process of its own */
    int code;

    *ret = NULL;
    c.fake = page->device_kind == GPUD_DEVICE_FAKE;
    if (!c.fake && !gpi_cuda_on_gpu(page))
        return 0;
    c.page = page;
    while (c.n < GPI_DEVICES && page->uuid[c.n][0])
        c.n++;
    if (c.fake)
        sleep_until(gpi_time_add(gpi_now(), page->fake_boot));
    code = c.fake ? 0 : open_gpus(&c, text, size);
    if (code == 0)
        *ret = &c;
    else if (c.others && by_number(&c))
        atomic_store(&page->miscounted, 1);
    return code;
}

/* ---- canary ---- */

static int canary_on(struct gpi_cuda *c, uint32_t i, char *text, size_t size)
{
    gpi_cu_context context, popped;
    gpi_cu_result r = borrow(c, i, &context);
    int code;

    if (r)
        return no_context(c, i, r, text, size);
    r = c->call.context_push(context);
    code = r ? no_context(c, i, r, text, size) : gpi_cuda_canary_run(c, text, size);
    if (r == GPI_CU_OK)
        (void)c->call.context_pop(&popped);
    give_back(c, i);
    return code;
}

int gpi_cuda_canary(struct gpi_cuda *c, char *text, size_t size)
{
    char why[200], given[GPI_DEVICE_UUID_SIZE];

    if (c->fake && c->page->fake_fails)
        snprintf(text, size, "canary: failed by the script of this fake device");
    if (c->fake)
        return c->page->fake_fails ? GPUD_EDEVICE : 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (canary_on(c, i, why, sizeof why) == 0)
            continue;
        given_uuid(c, i, &given);
        /* short: it becomes a device's evidence */
        snprintf(text, size, "canary%s%s: %s", c->n > 1 ? " on " : "", c->n > 1 ? given : "", why);
        return GPUD_EDEVICE;
    }
    return 0;
}

/* ---- the check after a task ---- */

static gpi_cu_result sync_other(struct gpi_cuda *c, gpi_cu_context context)
{
    gpi_cu_context popped;
    gpi_cu_result r = c->call.context_push(context);

    if (r)
        return r;
    r = c->call.context_sync();
    (void)c->call.context_pop(&popped);
    return r;
}

/* Waits for device i if any code in this process has a primary context on it. */
static gpi_cu_result sync_device(struct gpi_cuda *c, uint32_t i, gpi_cu_context current,
                                 bool *ret_met)
{
    gpi_cu_context context;
    unsigned flags;
    int active = c->bound && i == 0;
    gpi_cu_result r = active ? GPI_CU_OK : c->call.primary_state(c->device[i], &flags, &active);

    if (r || !active)
        return r;
    r = borrow(c, i, &context);
    if (r)
        return r;
    *ret_met |= context == current;
    r = context == current ? c->call.context_sync() : sync_other(c, context);
    give_back(c, i);
    return r;
}

/* Waits for all primary contexts, and for the current one if process itself has made it. */
static gpi_cu_result sync_all(struct gpi_cuda *c)
{
    gpi_cu_context current = NULL;
    gpi_cu_result r = c->call.context_get(&current), one;
    bool met = false;

    for (uint32_t i = 0; i < c->n; i++) {
        one = sync_device(c, i, current, &met);
        r = r ? r : one;
    }
    if (current && !met) {
        one = c->call.context_sync();
        r = r ? r : one;
    }
    return r;
}

enum gpi_cuda_check gpi_cuda_check(struct gpi_cuda *c, int32_t *ret_code, char *text, size_t size)
{
    gpi_cu_result r;

    if (!c || c->fake || c->page->cuda & GPUD_CUDA_NO_CHECK)
        return GPI_CUDA_FINE;
    r = sync_all(c);
    gpi_cuda_drain(c);
    if (r == GPI_CU_OK)
        return GPI_CUDA_FINE;
    *ret_code = r;
    gpi_cuda_words(&c->call, r, text, size);
    return gpi_cuda_is_sticky(r) || sync_all(c) ? GPI_CUDA_STICKY : GPI_CUDA_ERROR;
}

/* ---- pinning ---- */

static void unpin(struct gpi_cuda *c, unsigned char *at, uint64_t size)
{
    for (uint64_t done = 0; done < size; done += GPI_PIN_PIECE)
        (void)c->call.host_unregister(at + done);
}

static bool reads_only(struct gpi_cuda *c)
{
    int able = 0;

    return c->call.device_attribute(&able, GPI_CU_ATTRIBUTE_REGISTER_READ_ONLY, c->device[0]) ==
               GPI_CU_OK &&
           able;
}

bool gpi_cuda_pin(struct gpi_cuda *c, void *memory, uint64_t size, bool read_only)
{
    unsigned flags = GPI_CU_REGISTER_PORTABLE | (read_only ? GPI_CU_REGISTER_READ_ONLY : 0);
    unsigned char *at = memory;
    gpi_cu_context current = NULL;

    if (c->fake || size == 0 || size > MOST_PINNED || c->call.context_get(&current) || !current ||
        (read_only && !reads_only(c)))
        return false;
    for (uint64_t done = 0; done < size; done += GPI_PIN_PIECE) {
        uint64_t n = gpi_time_min(GPI_PIN_PIECE, size - done);
        if (gpi_headroom_for(n) && c->call.host_register(at + done, n, flags) == GPI_CU_OK)
            continue;
        unpin(c, at, done); /* CUDA refuses to copy memory that is pinned in part */
        gpi_cuda_drain(c);
        return false;
    }
    return true;
}
