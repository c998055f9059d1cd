/* SPDX-License-Identifier: MIT */
/*
 * fake.c - a stand-in until the provider lands: lines "[gpu N] hang CALL" and "when FILE gpu N xid K",
 * as lib/device/script.h has them.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/provider.h"
#include "gpudispatch/device.h"

struct fake {
    uint32_t n;
    const char *script;
    uint32_t told;
};

static void hang(const char *script, uint32_t gpu, const char *call)
{
    char all[64], one[64];

    snprintf(all, sizeof all, "gpu * hang %s", call);
    snprintf(one, sizeof one, "gpu %u hang %s", gpu, call);
    while (strstr(script, all) || strstr(script, one))
        (void)poll(NULL, 0, -1);
}

static void *fake_open(uint32_t n, const char *script, uint64_t zero, struct gpi_driver *ret_driver)
{
    static struct fake f;

    (void)zero;
    f = (struct fake){ .n = n, .script = script };
    memset(ret_driver, 0, sizeof *ret_driver);
    if (strstr(script, "driver hang open"))
        for (;;)
            (void)poll(NULL, 0, -1);
    snprintf(ret_driver->text, sizeof ret_driver->text, "a driver of fakes");
    ret_driver->gpus = n;
    return &f;
}

static uint32_t fake_enumerate(void *state, struct gpi_device *rows, uint32_t max, struct gpi_driver *ret_driver)
{
    struct fake *f = state;
    uint32_t n = f->n < max ? f->n : max;

    (void)ret_driver;
    memset(rows, 0, n * sizeof *rows);
    for (uint32_t i = 0; i < n; i++) {
        hang(f->script, i, "enumerate");
        rows[i].kind = GPUD_DEVICE_FAKE;
        rows[i].index = i;
        rows[i].mig_index = GPI_UNKNOWN32;
        rows[i].memory_total = 8ull << 30;
        snprintf(rows[i].name, sizeof rows[i].name, "fake:%u", i);
        snprintf(rows[i].uuid, sizeof rows[i].uuid, "FAKE-%08x", i);
    }
    return n;
}

static void fake_sample(void *state, uint32_t i, struct gpi_sample *ret)
{
    struct fake *f = state;

    hang(f->script, i, "sample");
    memset(ret, 0xff, sizeof *ret);
    ret->at = gpi_now();
    ret->reading = GPI_READ_OK;
    ret->memory_total = 8ull << 30;
    ret->memory_used = 1ull << 30;
    ret->memory_free = 7ull << 30;
    ret->n_users = 0;
    ret->users_known = 1;
}

static bool fake_await(void *state, struct gpi_incident *ret)
{
    struct fake *f = state;
    char path[200];
    unsigned gpu, xid;
    const char *at = f->told ? NULL : strstr(f->script, "when ");

    if (!at || sscanf(at, "when %199s gpu %u xid %u", path, &gpu, &xid) != 3)
        for (;;)
            (void)poll(NULL, 0, -1);
    while (access(path, F_OK))
        (void)poll(NULL, 0, 10);
    f->told = 1;
    *ret = (struct gpi_incident){ .kind = GPI_INCIDENT_XID, .device = gpu, .number = xid, .at = gpi_now() };
    return true;
}

const struct gpi_provider gpi_provider_fake = { .open = fake_open, .enumerate = fake_enumerate, .sample = fake_sample, .await = fake_await };
