/* SPDX-License-Identifier: MIT */
/* look.c - asks a monitor process, and knows the fields of its rows. */
#include "look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/cli/out.h"

#define ROWS_FIRST 64u

uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

int look_open(struct look *l, const char *devices, struct gpud_error *e)
{
    memset(l, 0, sizeof *l);
    l->driver.struct_size = sizeof l->driver;
    return gpud_monitor_open(&l->monitor, devices, e);
}

void look_close(struct look *l)
{
    gpud_monitor_close(&l->monitor);
    free(l->row);
    l->row = NULL;
}

static int grow(struct look *l, size_t room)
{
    struct gpud_device_info *row = calloc(room, sizeof *row);

    if (!row)
        return GPUD_ENOMEM;
    free(l->row);
    l->row = row;
    l->room = room;
    return 0;
}

int look_again(struct look *l, uint64_t max_age, uint64_t wait)
{
    uint64_t until = now() + wait;
    int r = l->row ? 0 : grow(l, ROWS_FIRST);

    if (!r)
        r = gpud_monitor_driver(l->monitor, &l->driver, wait);
    while (!r) {
        uint64_t t = now();
        l->row[0].struct_size = sizeof *l->row;
        r = gpud_monitor_read(l->monitor, l->row, l->room, max_age, until > t ? until - t : 0);
        if (r < 0)
            return r;
        l->n = (size_t)r;
        r = l->n > l->room ? grow(l, l->n) : 0;
        if (!r && l->n <= l->room && l->row[0].struct_size)
            break;
    }
    return r ? r : gpud_monitor_driver(l->monitor, &l->driver, 0);
}

/* ---- words ---- */

static const char *of(const char *const *name, size_t n, uint32_t i)
{
    return i < n ? name[i] : NULL;
}

const char *driver_sentence(const struct gpud_driver_info *d)
{
    return d->text[0] ? d->text : gpud_driver_text(d->state);
}

const char *compute_mode_name(uint32_t mode)
{
    static const char *const name[] = { "DEFAULT", "EXCLUSIVE_THREAD", "PROHIBITED",
                                        "EXCLUSIVE_PROCESS" };

    return of(name, 4, mode);
}

const char *recovery_name(uint32_t recovery)
{
    static const char *const name[] = { "NONE",        "RESET", "REBOOT",    "DRAIN_P2P",
                                        "DRAIN_RESET", "IMEX",  "BUS_RESET", "SYSTEM_REBOOT" };

    return of(name, 8, recovery);
}

const char *throttle_name(unsigned bit)
{
    static const char *const name[] = {
        "IDLE",       "APP_CLOCKS", "POWER_CAP",  "HW_SLOWDOWN",
        "SYNC_BOOST", "SW_THERMAL", "HW_THERMAL", "HW_POWER_BRAKE"
    };

    return of(name, 8, bit);
}

bool row_is_parent(const struct look *l, const struct gpud_device_info *r)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->row[i].parent_uuid[0] && !strcmp(l->row[i].parent_uuid, r->uuid))
            return true;
    return false;
}

/* ---- the fields ---- */

enum shape { TEXT, U32, U64, ID, TIME, FLAG, NAMED }; /* of ID and TIME 0 is none */

struct field {
    const char *name;
    size_t at;
    enum shape shape;
    const char *(*named)(uint32_t value);
};

#define DEVICE(field, shape) { #field, offsetof(struct gpud_device_info, field), shape, NULL }
#define DEVICE_NAMED(field, names)                                     \
    {                                                                  \
#field, offsetof(struct gpud_device_info, field), NAMED, names \
    }
#define DRIVER(field, shape) { #field, offsetof(struct gpud_driver_info, field), shape, NULL }

/* In the order of device.h; `compute_major`, `compute_minor`, `throttle` follow by themselves. */
static const struct field device_field[] = {
    DEVICE(name, TEXT),
    DEVICE_NAMED(kind, gpud_device_kind_name),
    DEVICE(uuid, TEXT),
    DEVICE(model, TEXT),
    DEVICE(pci, TEXT),
    DEVICE(mig_profile, TEXT),
    DEVICE(parent_uuid, TEXT),
    DEVICE_NAMED(health, gpud_health_name),
    DEVICE(evidence, TEXT),
    DEVICE(since, TIME),
    DEVICE(index, U32),
    DEVICE_NAMED(compute_mode, compute_mode_name),
    DEVICE(numa_node, U32),
    DEVICE(sampled_at, TIME),
    DEVICE(memory_total, U64),
    DEVICE(memory_used, U64),
    DEVICE(memory_free, U64),
    DEVICE(memory_ours, U64),
    DEVICE(memory_foreign, U64),
    DEVICE(foreign_processes, U32),
    DEVICE(foreign_pid, ID),
    DEVICE(utilization, U32),
    DEVICE(memory_utilization, U32),
    DEVICE(temperature, U32),
    DEVICE(power, U32),
    DEVICE(power_limit, U32),
    DEVICE(sm_clock, U32),
    DEVICE(ecc_corrected, U64),
    DEVICE(ecc_uncorrected, U64),
    DEVICE(remapped_rows, U32),
    DEVICE(remap_pending, FLAG),
    DEVICE(remap_failed, FLAG),
    DEVICE_NAMED(recovery, recovery_name),
    DEVICE(last_xid, ID),
    DEVICE(xids, U32),
    DEVICE(last_xid_at, TIME),
    DEVICE(slots, U32),
    DEVICE(draining, FLAG),
    DEVICE(canary_passes, U32),
    DEVICE(canary_failures, U32),
    DEVICE(canary_at, TIME),
    DEVICE(paused, FLAG),
};

static const struct field driver_field[] = {
    { "state", offsetof(struct gpud_driver_info, state), NAMED, gpud_driver_name },
    DRIVER(text, TEXT),
    DRIVER(driver_version, TEXT),
    DRIVER(nvml_version, TEXT),
    DRIVER(gpus, U32),
    DRIVER(unreadable, U32),
    DRIVER(lost, U32),
};

static bool unknown(enum shape shape, uint64_t value)
{
    if (shape == ID || shape == TIME)
        return value == 0 || value == GPUD_NEVER;
    return value == (shape == U64 ? GPUD_UNKNOWN64 : GPUD_UNKNOWN32);
}

static void json_field(const struct field *f, const void *record)
{
    const char *at = (const char *)record + f->at;
    uint64_t value;
    uint32_t narrow;

    if (f->shape == TEXT) {
        doc_text(f->name, *at ? at : NULL);
        return;
    }
    memcpy(&narrow, at, sizeof narrow);
    value = narrow;
    if (f->shape == U64 || f->shape == TIME)
        memcpy(&value, at, sizeof value);
    if (f->shape == NAMED && (narrow == GPUD_UNKNOWN32 || f->named(narrow)))
        doc_text(f->name, f->named(narrow)); /* a number without a name stays one */
    else if (unknown(f->shape, value))
        doc_null(f->name);
    else if (f->shape == FLAG)
        doc_bool(f->name, value != 0);
    else
        doc_number(f->name, value);
}

static void json_throttle(uint64_t bits)
{
    if (bits == GPUD_UNKNOWN64) {
        doc_null("throttle");
        return;
    }
    doc_open("throttle", '[');
    for (unsigned i = 0; i < 64; i++) {
        char number[24];
        if (!(bits >> i & 1))
            continue;
        snprintf(number, sizeof number, "0x%llx", 1ull << i);
        doc_text(NULL, throttle_name(i) ? throttle_name(i) : number);
    }
    doc_close(']');
}

static void json_version(const char *key, uint32_t major, uint32_t minor)
{
    char text[24];

    snprintf(text, sizeof text, "%u.%u", major, minor);
    doc_text(key, major ? text : NULL);
}

void json_device(const struct gpud_device_info *r)
{
    for (size_t i = 0; i < sizeof device_field / sizeof device_field[0]; i++)
        json_field(&device_field[i], r);
    if (r->compute_major) {
        doc_number("compute_major", r->compute_major);
        doc_number("compute_minor", r->compute_minor);
    } else {
        doc_null("compute_major");
        doc_null("compute_minor");
    }
    json_throttle(r->throttle);
}

void json_driver(const char *key, const struct gpud_driver_info *d)
{
    doc_open(key, '{');
    for (size_t i = 0; i < sizeof driver_field / sizeof driver_field[0]; i++)
        json_field(&driver_field[i], d);
    json_version("cuda_version", d->cuda_version / 1000, d->cuda_version % 1000 / 10);
    doc_close('}');
}
