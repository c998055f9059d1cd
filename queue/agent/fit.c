/* SPDX-License-Identifier: MIT */
/* fit.c - asks the dispatcher about each need alone. */
#include "queue/agent/fit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/agent/settings.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)
enum { SHARE_WHOLE = 10000 };

bool gpq_fits(struct gpq_agent *a, const struct gpud_request *r)
{
    struct gpud_request one = *r;
    struct gpud_task_desc desc = GPUD_TASK_DESC_INIT;
    struct gpud_error why = GPUD_ERROR_INIT;
    one.next = NULL;
    desc.class_name = GPQ_COMMANDS;
    desc.request = &one;
    return !a->dispatcher || gpud_dispatcher_check(a->dispatcher, &desc, &why) != GPUD_EDEVICE;
}

/* ---- One need ---- */

enum need { GPUS, MEMORY, CPUS, HOST_MEMORY, COMPUTE, ON, NOT_ON, NEEDS };
static const char *const members[NEEDS] = { "gpus",    "memory", "cpus",  "host_memory",
                                            "compute", "on",     "not_on" };

static uint64_t amount_of(const struct gpud_request *r, enum need need)
{
    switch (need) {
    case GPUS:
        return r->devices;
    case MEMORY:
        return r->devices != 0 ? r->memory : 0;
    case CPUS:
        return r->cpus;
    case HOST_MEMORY:
        return r->host_memory;
    case COMPUTE:
        return r->compute;
    case ON:
        return r->on != NULL;
    default:
        return r->not_on != NULL;
    }
}

/* A request with this need of *r alone. */
static struct gpud_request alone(const struct gpud_request *r, enum need need, uint64_t amount)
{
    struct gpud_request one = GPUD_REQUEST_INIT;
    bool of_gpu = need != CPUS && need != HOST_MEMORY;
    one.devices = of_gpu ? need == GPUS ? (uint32_t)amount : 1 : 0;
    one.share = of_gpu ? SHARE_WHOLE : 0;
    if (need == MEMORY)
        one.memory = amount;
    else if (need == CPUS)
        one.cpus = (uint32_t)amount;
    else if (need == HOST_MEMORY)
        one.host_memory = amount;
    else if (need == COMPUTE)
        one.compute = (uint32_t)amount;
    else if (need == ON)
        one.on = r->on;
    else if (need == NOT_ON)
        one.not_on = r->not_on;
    return one;
}

static bool fits_alone(struct gpq_agent *a, const struct gpud_request *r, enum need need,
                       uint64_t amount)
{
    struct gpud_request one = alone(r, need, amount);
    return amount == 0 || gpq_fits(a, &one);
}

/* The most that fits, in steps, of less than `amount`, which does not. */
static uint64_t most_of(struct gpq_agent *a, const struct gpud_request *r, enum need need,
                        uint64_t amount, uint64_t step)
{
    uint64_t least = 0, most = (amount + step - 1) / step;
    while (most - least > 1) {
        uint64_t middle = least + (most - least) / 2;
        if (fits_alone(a, r, need, middle * step))
            least = middle;
        else
            most = middle;
    }
    return least * step;
}

/* ---- Texts ---- */

/* As --memory takes it. */
static void put_size(char *ret, size_t room, uint64_t bytes)
{
    if (bytes % TIB == 0)
        (void)snprintf(ret, room, "%" PRIu64 "T", bytes / TIB);
    else if (bytes % GIB == 0)
        (void)snprintf(ret, room, "%" PRIu64 "G", bytes / GIB);
    else if (bytes % MIB == 0)
        (void)snprintf(ret, room, "%" PRIu64 "M", bytes / MIB);
    else
        (void)snprintf(ret, room, "%" PRIu64, bytes);
}

static void put_value(char *ret, size_t room, const struct gpud_request *r, enum need need)
{
    uint64_t amount = amount_of(r, need);
    if (need == MEMORY || need == HOST_MEMORY)
        put_size(ret, room, amount);
    else if (need == GPUS && r->share != 0 && r->share < SHARE_WHOLE)
        (void)snprintf(ret, room, "%g", (double)r->share / SHARE_WHOLE);
    else if (need == COMPUTE)
        (void)snprintf(ret, room, "%" PRIu64 ".%" PRIu64, amount / 100,
                       amount % 10 == 0 ? amount % 100 / 10 : amount % 100);
    else if (need == ON || need == NOT_ON)
        (void)snprintf(ret, room, "\"%.120s\"", need == ON ? r->on : r->not_on);
    else
        (void)snprintf(ret, room, "%" PRIu64, amount);
}

static void put_bytes(char *ret, size_t room, const char *before, uint64_t bytes, const char *after)
{
    bool gib = bytes >= GIB;
    double n = (double)bytes / (double)(gib ? GIB : MIB);
    (void)snprintf(ret, room, bytes % (gib ? GIB : MIB) == 0 ? "%s %.0f %s%s" : "%s %.1f %s%s",
                   before, n, gib ? "GiB" : "MiB", after);
}

/* The agent may have fewer GPUs than the machine. */
static void put_devices(struct gpq_agent *a, uint64_t most, char *ret, size_t room)
{
    const char *devices = a->settings ? a->settings->devices : NULL;
    char has[24] = "none";
    if (most != 0)
        (void)snprintf(has, sizeof(has), "%" PRIu64, most);
    if (!devices || strcmp(devices, "all") == 0)
        (void)snprintf(ret, room, "this machine has %s", has);
    else
        (void)snprintf(ret, room, "the agent has %s, with --devices %.80s", has, devices);
}

static void put_compute(struct gpq_agent *a, char *ret, size_t room)
{
    int n;
    uint32_t major = 0, minor = 0;
    struct gpud_device_info *rows = gpq_devices_read(a, &n);
    for (int i = 0; i < n; i++)
        if (rows[i].compute_major > major ||
            (rows[i].compute_major == major && rows[i].compute_minor > minor)) {
            major = rows[i].compute_major;
            minor = rows[i].compute_minor;
        }
    free(rows);
    (void)snprintf(ret, room, "the highest compute capability of a GPU here is %u.%u", major,
                   minor);
}

static void explain(struct gpq_agent *a, const struct gpud_request *r, enum need need,
                    struct gpq_misfit *ret)
{
    uint64_t amount = amount_of(r, need);
    char *why = ret->why;
    size_t room = sizeof(ret->why);
    ret->member = members[need];
    put_value(ret->value, sizeof(ret->value), r, need);
    if (need == GPUS)
        put_devices(a, most_of(a, r, need, amount, 1), why, room);
    else if (need != CPUS && need != HOST_MEMORY && !fits_alone(a, r, GPUS, 1))
        put_devices(a, 0, why, room);
    else if (need == MEMORY)
        put_bytes(why, room, "the largest GPU here has", most_of(a, r, need, amount, MIB),
                  " beside headroom");
    else if (need == CPUS)
        (void)snprintf(why, room, "the agent has %" PRIu64 " CPU slots",
                       most_of(a, r, need, amount, 1));
    else if (need == HOST_MEMORY)
        put_bytes(why, room, "the machine has", most_of(a, r, need, amount, MIB), " for tasks");
    else if (need == COMPUTE)
        put_compute(a, why, room);
    else
        (void)snprintf(why, room, "no GPU is left");
}

/* --gpus 2, --memory 40G, ... */
static void list_all(const struct gpud_request *r, struct gpq_misfit *ret)
{
    char value[160];
    size_t used = 0;
    ret->member = NULL;
    ret->value[0] = '\0';
    for (int need = 0; need < NEEDS; need++) {
        if (amount_of(r, (enum need)need) == 0)
            continue;
        put_value(value, sizeof(value), r, (enum need)need);
        int n = snprintf(ret->value + used, sizeof(ret->value) - used, "%s--%s %s",
                         used != 0 ? ", " : "", members[need], value);
        used += n > 0 ? (size_t)n : 0;
        if (used >= sizeof(ret->value))
            break;
    }
    for (char *at = ret->value; *at; at++)
        if (*at == '_')
            *at = '-';
    (void)snprintf(ret->why, sizeof(ret->why),
                   "each of them can be met alone, but not all together");
}

bool gpq_misfit(struct gpq_agent *a, const struct gpq_needs *n, struct gpq_misfit *ret)
{
    const struct gpud_request *r = &n->request[0];
    for (uint32_t i = 0; i < n->n; i++)
        if (gpq_fits(a, &n->request[i]))
            return false;
    for (int need = 0; need < NEEDS; need++)
        if (!fits_alone(a, r, (enum need)need, amount_of(r, (enum need)need))) {
            explain(a, r, (enum need)need, ret);
            return true;
        }
    list_all(r, ret);
    return true;
}
