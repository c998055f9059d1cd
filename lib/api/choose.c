/* SPDX-License-Identifier: MIT */
#include "api/choose.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/script.h"
#include "base/clock.h"
#include "base/failure.h"
#include "device/kin.h"
#include "device/list.h"
#include "host/dispatcher.h"
#include "host/patience.h"

#define FIRST_NS GPI_S /* for their first readings: who takes longer is UNKNOWN at first */

void gpi_choice_fini(struct gpi_choice *c)
{
    gpi_selection_fini(&c->selection);
    if (c->gauge)
        gpi_monitor_dismiss(&c->gauge->m);
    gpi_gauge_free(c->gauge);
    c->gauge = NULL;
}

int gpi_choice_visible(const struct gpi_choice *c, uint32_t visible, struct gpud_error *e)
{
    for (uint32_t i = 0; visible == GPUD_VISIBLE_INDEX && i < c->selection.n; i++)
        if (gpi_device_is_instance(&c->selection.device[i].device))
            return gpi_fail(
                e, GPUD_EINVAL, 0, "visible",
                "visible is INDEX, but %s is a MIG instance and has no number: use AUTO or UUID",
                c->selection.device[i].device.name);
    return 0;
}

int gpi_choice_pooled(const struct gpi_choice *c, struct gpud_error *e)
{
    for (uint32_t i = 0; i < c->selection.n; i++)
        if (c->selection.device[i].device.kind == GPUD_DEVICE_CPU)
            return gpi_fail(e, GPUD_EINVAL, 0, "devices",
                            "devices has CPU slots, but pooled is 1: use option cpus");
    if (c->selection.n_slots != c->selection.n)
        return gpi_fail(e, GPUD_EINVAL, 0, "devices",
                        "devices has several workers per device (/K), but pooled is 1: classes "
                        "share devices by memory");
    return 0;
}

int gpi_choice_reads(const char *devices, struct gpud_error *e)
{
    struct gpi_device_needs needs;
    int r = gpi_device_needs(devices, &needs, e);

    return r ? r : needs.gpus || needs.fakes;
}

static int open_gauge(struct gpi_choice *c, const struct gpi_device_needs *needs, int connection,
                      uint32_t first_fake, struct gpud_error *e)
{
    const uint32_t fakes = needs->fakes ? first_fake + needs->fakes : 0;
    char *script = NULL;
    int r = 0;

    if (fakes > GPI_GPUS_MAX)
        return gpi_fail(e, GPUD_EDEVICE, 0, "devices",
                        "the number of fakes is %u, the maximum is %u", fakes, GPI_GPUS_MAX);
    if (needs->script)
        r = gpi_script_load(&script, needs->script, needs->script_length, fakes, e);
    if (r == 0)
        r = gpi_gauge_open(&c->gauge, connection, fakes ? GPI_PROVIDER_FAKE : GPI_PROVIDER_NVML,
                           fakes, script, e);
    if (r)
        free(script);
    return r;
}

/* What the driver has said, or that it has said nothing. */
static int ask_driver(struct gpi_choice *c, struct gpi_driver *ret, struct gpud_error *e)
{
    struct gpi_monitor *m = &c->gauge->m;

    if (gpi_monitor_await(m, gpi_time_add(gpi_now(), gpi_driver_patience)) ||
        (m->driver_known && m->driver.state != GPUD_DRIVER_OK)) {
        *ret = m->driver;
        return 0;
    }
    if (m->gone)
        return gpi_fail(e, GPUD_ESPAWNER, 0, "devices",
                        "the monitor process has not started, or has died");
    *ret = (struct gpi_driver){ .state = GPUD_DRIVER_HUNG };
    snprintf(ret->text, sizeof ret->text, "the driver has not replied for %.0f s",
             (double)gpi_driver_patience / 1e9);
    return 0;
}

static bool waits(const struct gpi_choice *c)
{
    for (uint32_t i = 0; i < c->gauge->m.n; i++)
        if (c->gauge->m.asked_at[i])
            return true;
    return false;
}

/* Waits for the readings that were requested. */
static void await_readings(struct gpi_choice *c)
{
    const uint64_t until = gpi_now() + FIRST_NS;
    struct gpi_incident incident;
    uint32_t place;

    while (waits(c)) {
        enum gpi_monitor_news news = gpi_monitor_read(&c->gauge->m, &place, &incident);
        if (news == GPI_MONITOR_GONE ||
            (news == GPI_MONITOR_NOTHING && !gpi_monitor_poll(&c->gauge->m, until)))
            return;
        if (news == GPI_MONITOR_INCIDENT && c->gauge->n_early < GPI_EARLY)
            c->gauge->early[c->gauge->n_early++] = incident; /* it is not said again */
    }
}

/* How they are before the first worker: its successor will be measured by that. */
static void read_once(struct gpi_choice *c)
{
    for (uint32_t i = 0; i < c->selection.n; i++)
        if (c->selection.device[i].place != GPI_NO_ROW)
            (void)gpi_monitor_ask(&c->gauge->m, c->selection.device[i].place, gpi_now());
    await_readings(c);
}

static void read_all(struct gpi_choice *c)
{
    for (uint32_t i = 0; i < c->gauge->m.n; i++)
        (void)gpi_monitor_ask(&c->gauge->m, i, gpi_now());
    await_readings(c);
}

int gpi_choose_devices(struct gpi_choice *ret, const char *devices, uint32_t per_worker,
                       int connection, const struct gpi_beside *beside,
                       const struct gpi_quiet *quiet, struct gpud_error *e)
{
    struct gpi_device_field field = { .visible = getenv("CUDA_VISIBLE_DEVICES"), .quiet = *quiet };
    struct gpi_choice c = { .gauge = NULL };
    struct gpi_device_needs needs;
    struct gpi_driver driver = { .state = GPUD_DRIVER_OK };
    int r = gpi_device_needs(devices, &needs, e);

    if (r == 0 && (needs.gpus || needs.fakes))
        r = open_gauge(&c, &needs, connection, beside ? beside->first_fake : 0, e);
    if (r)
        return r;
    if (c.gauge) {
        r = ask_driver(&c, &driver, e);
        field.driver = &driver;
        field.row = c.gauge->m.device;
        field.n = c.gauge->m.n;
        if (r == 0 && needs.readings)
            read_all(&c);
        field.sample = c.gauge->m.sample;
        if (r == 0 && driver.state != GPUD_DRIVER_OK && needs.fakes)
            r = gpi_fail(e, GPUD_EDEVICE, 0, "devices", "the fakes' driver is %s: %.120s",
                         gpud_driver_name(driver.state), driver.text);
    }
    if (beside) {
        field.first_cpu = beside->first_cpu;
        field.first_fake = beside->first_fake;
        field.present = beside->present;
        field.n_present = beside->n_present;
    }
    if (r == 0)
        r = gpi_device_select(&c.selection, devices, per_worker, GPI_SLOTS_MAX, &field, e);
    if (r) {
        gpi_choice_fini(&c);
        return r;
    }
    if (c.gauge)
        read_once(&c);
    *ret = c;
    return r;
}
