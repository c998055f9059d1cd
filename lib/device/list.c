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

int gpi_device_list(const char *text, char (*names)[GPI_DEVICE_NAME], uint32_t max, struct gpud_error *reterr)
{
    uint32_t n = 0, first = 0;
    const char *at = text;

    for (unsigned position = 1;; position++) {
        const char *end = at + strcspn(at, ",");
        struct entry e;
        if (!cpu_entry(at, end, &e))
            return gpi_fail(reterr, GPUD_EDEVICE, 0, "devices", "entry %u, \"%.*s\", is not cpu:N or cpu:N/K with N and K from 1 to 1,024",
                            position, (int)(end - at < 80 ? end - at : 80), at);
        if ((uint64_t)n + (uint64_t)e.devices * e.workers > max)
            return gpi_fail(reterr, GPUD_EDEVICE, 0, "devices", "entry %u, \"%.*s\", makes more than %u workers", position, (int)(end - at), at, max);
        for (uint32_t i = 0; i < e.devices; i++)
            for (uint32_t k = 0; k < e.workers; k++)
                snprintf(names[n++], GPI_DEVICE_NAME, "cpu:%u", first + i);
        first += e.devices;
        if (!*end)
            return (int)n;
        at = end + 1;
    }
}
