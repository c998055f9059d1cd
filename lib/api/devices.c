/* SPDX-License-Identifier: MIT */
/* devices.c - the exported verbs about a dispatcher's devices: validate, delegate. */
#include <errno.h>
#include <stdlib.h>

#include "api/check.h"
#include "api/choose.h"
#include "api/process.h"
#include "base/versioned.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/refused.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "os/fds.h"

int gpud_dispatcher_devices(gpud_dispatcher *d, struct gpud_device_info *rows, size_t n)
{
    struct gpi_forecast f;
    uint32_t stride;
    size_t given = 0;
    int r = gpi_check(d, NULL);

    if (r)
        return r;
    if (n && !rows)
        return GPUD_EINVAL;
    if (n &&
        !gpi_versioned_sized(rows[0].struct_size, offsetof(struct gpud_device_info, sampled_at)))
        return GPUD_ESTRUCT;
    stride = n ? rows[0].struct_size : 0;
    pthread_mutex_lock(&d->lock);
    if (d->dev.n_gauges) {
        d->now = gpi_now();
        gpi_devices_look(d);
    }
    if (n) {
        gpi_forecast_begin(d, &f);
        gpi_rows_begin(d);
    }
    for (uint32_t i = 0; i < d->dev.n && given < n; i++) {
        struct gpud_device_info row;
        if (!d->dev.row[i].here)
            continue;
        gpi_report_device(d, i, &row);
        gpi_report_use(d, i, &f, &row);
        gpi_versioned_write((char *)rows + given++ * stride, stride, &row, sizeof row);
    }
    r = (int)gpi_devices_count(d);
    pthread_mutex_unlock(&d->lock);
    return r;
}

/* The monitor that is asked may take its time: no lock is held. */
static int choose_and_add(gpud_dispatcher *d, const char *devices, struct gpi_beside *beside,
                          int connection, struct gpud_error *e)
{
    const bool pooled = d->set.pooled; /* then its slots are there already */
    const struct gpi_class *class = &d->class[0];
    const struct gpi_quiet quiet = { d->set.foreign_memory, d->set.foreign_load };
    struct gpi_choice c = { .gauge = NULL };
    uint32_t slots;
    int r = gpi_choose_devices(&c, devices, pooled ? 1 : class->set.devices_per_worker, connection,
                               beside, &quiet, e);

    if (r == 0)
        r = pooled ? gpi_choice_pooled(&c, e) : gpi_choice_visible(&c, class->set.visible, e);
    slots = pooled ? 0 : c.selection.n_slots;
    if (r == 0 && slots)
        /* One of them is open: the copy of the connection. */
        r = gpi_files_check(gpi_files_slots(class->launch.lines, slots), 1, slots, "devices", e);
    if (r == 0)
        r = gpi_process_seat(d->places, slots, e);
    if (r == 0) {
        r = gpi_device_add(d, &c.selection, c.gauge, e);
        if (r)
            gpi_process_unseat(d->places, slots);
        else
            c.gauge = NULL;
    }
    gpi_choice_fini(&c);
    return r;
}

static int add_beside(gpud_dispatcher *d, const char *devices, struct gpi_device *here,
                      struct gpud_error *e)
{
    const struct gpi_device *present[GPI_GPUS_MAX];
    struct gpi_beside beside = { .present = present };
    int connection, r;

    beside.n_present = gpi_devices_present(d, here, GPI_GPUS_MAX, &beside.first_fake, &connection);
    if (connection == -EPIPE)
        return gpi_fail(e, GPUD_ESPAWNER, 0, "", "%s", gpud_error_text(GPUD_ESPAWNER));
    if (connection < 0)
        return gpi_fail(e, GPUD_ESYSTEM, -connection, "",
                        "duplicating the spawner's connection failed");
    for (uint32_t i = 0; i < beside.n_present; i++)
        present[i] = &here[i];
    r = choose_and_add(d, devices, &beside, connection, e);
    gpi_fd_close(&connection);
    return r;
}

static int add(gpud_dispatcher *d, const char *devices, struct gpud_error *e)
{
    struct gpi_device *here = malloc(GPI_GPUS_MAX * sizeof *here);
    int r;

    if (!here)
        return gpi_fail(e, GPUD_ENOMEM, 0, "", "no memory for a list of devices");
    do
        r = add_beside(d, devices, here, e);
    while (r == GPI_DEVICE_ADD_AGAIN);
    free(here);
    return r;
}

int gpud_dispatcher_device_add(gpud_dispatcher *d, const char *devices, struct gpud_error *reterr)
{
    int r = gpi_check(d, reterr);

    if (r)
        return r;
    gpi_refused_forget();
    if (!devices)
        return gpi_fail_null(reterr, "devices");
    return add(d, devices, reterr);
}

int gpud_dispatcher_device_drain(gpud_dispatcher *d, const char *device)
{
    int r = gpi_check(d, NULL);

    return r ? r : device ? gpi_device_drain(d, device) : GPUD_EINVAL;
}

int gpud_dispatcher_device_pause(gpud_dispatcher *d, const char *device)
{
    int r = gpi_check(d, NULL);

    return r ? r : device ? gpi_device_pause(d, device) : GPUD_EINVAL;
}

int gpud_dispatcher_device_return(gpud_dispatcher *d, const char *device)
{
    int r = gpi_check(d, NULL);

    return r ? r : device ? gpi_device_return(d, device) : GPUD_EINVAL;
}

int gpud_dispatcher_device_remove(gpud_dispatcher *d, const char *device)
{
    int r = gpi_check(d, NULL);

    return r ? r : device ? gpi_device_remove(d, device) : GPUD_EINVAL;
}
