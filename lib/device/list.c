/* SPDX-License-Identifier: MIT */
#include "device/list.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/failure.h"

struct entry {
    uint32_t devices, workers;
};

/* A number of 1 to 1,024 at *at, which moves behind it. */
static bool number(const char **at, const char *end, uint32_t *ret)
{
    uint32_t n = 0;
    const char *p = *at;

    while (p < end && *p >= '0' && *p <= '9' && n <= 1024)
        n = n * 10 + (uint32_t)(*p++ - '0');
    if (p == *at || n == 0 || n > 1024)
        return false;
    *at = p;
    *ret = n;
    return true;
}

/* cpu:N or cpu:N/K */
static bool cpu_entry(const char *at, const char *end, struct entry *ret)
{
    ret->workers = 1;
    if (end - at < 5 || strncmp(at, "cpu:", 4) != 0)
        return false;
    at += 4;
    if (!number(&at, end, &ret->devices))
        return false;
    if (at < end && *at == '/') {
        at++;
        if (!number(&at, end, &ret->workers))
            return false;
    }
    return at == end;
}

/* The set that is being filled. */
struct set {
    char names[GPI_DEVICE_NAMES];
    uint32_t devices;
    uint32_t workers; /* of each of its devices */
};

static void add_device(struct set *s, uint32_t device, uint32_t workers)
{
    size_t n = s->devices ? strlen(s->names) : 0;

    snprintf(s->names + n, sizeof s->names - n, "%scpu:%u", s->devices ? "," : "", device);
    s->devices++;
    s->workers = workers;
}

int gpi_device_list(const char *text, uint32_t per_worker, char (*sets)[GPI_DEVICE_NAMES], uint32_t max, struct gpud_error *reterr)
{
    uint32_t n = 0, device = 0;
    struct set s = { .devices = 0 };
    const char *at = text;

    for (unsigned position = 1;; position++) {
        const char *end = at + strcspn(at, ",");
        const int length = (int)(end - at < 80 ? end - at : 80);
        struct entry e;
        if (!cpu_entry(at, end, &e))
            return gpi_fail(reterr, GPUD_EDEVICE, 0, "devices", "entry %u, \"%.*s\", is not cpu:N or cpu:N/K with N and K from 1 to 1,024 (this version knows no GPUs)", position, length, at);
        if (s.devices && s.workers != e.workers)
            return gpi_fail(reterr, GPUD_EDEVICE, 0, "devices", "entry %u, \"%.*s\", has %u workers per device, its neighbours in a set of %u have %u",
                            position, length, at, e.workers, per_worker, s.workers);
        for (uint32_t i = 0; i < e.devices; i++) {
            add_device(&s, device++, e.workers);
            if (s.devices < per_worker)
                continue;
            if (e.workers > max - n)
                return gpi_fail(reterr, GPUD_EDEVICE, 0, "devices", "entry %u, \"%.*s\", makes more than %u workers", position, length, at, max);
            for (uint32_t k = 0; k < e.workers; k++)
                memcpy(sets[n++], s.names, sizeof s.names);
            s.devices = 0;
        }
        if (!*end)
            break;
        at = end + 1;
    }
    if (s.devices)
        return gpi_fail(reterr, GPUD_EDEVICE, 0, "devices_per_worker", "%u devices cannot be divided into sets of %u", device, per_worker);
    return (int)n;
}
