/* SPDX-License-Identifier: MIT */
/* devices.c - the exported verbs about a dispatcher's devices: validate, delegate. */
#include <string.h>

#include "api/versioned.h"
#include "base/failure.h"
#include "host/dispatcher.h"

/* What each verb asks first.  0, EINVAL or EFORKED. */
static int check(const gpud_dispatcher *d)
{
    if (!d)
        return GPUD_EINVAL;
    return atomic_load_explicit(d->alive, memory_order_relaxed) ? 0 : GPUD_EFORKED;
}

int gpud_dispatcher_devices(gpud_dispatcher *d, struct gpud_device_info *rows, size_t n)
{
    uint32_t stride;
    size_t given = 0;
    int r = check(d);

    if (r)
        return r;
    if (n && (!rows || rows[0].struct_size < offsetof(struct gpud_device_info, sampled_at) || rows[0].struct_size % 8))
        return GPUD_EINVAL;
    stride = n ? rows[0].struct_size : 0;
    pthread_mutex_lock(&d->lock);
    for (uint32_t i = 0; i < d->dev.n && given < n; i++) {
        struct gpud_device_info row;
        if (d->dev.row[i].removed)
            continue;
        gpi_report_device(d, i, &row);
        gpi_versioned_write((char *)rows + given++ * stride, stride, &row, sizeof row);
    }
    r = (int)gpi_devices_count(d);
    pthread_mutex_unlock(&d->lock);
    return r;
}

int gpud_dispatcher_device_add(gpud_dispatcher *d, const char *devices, struct gpud_error *reterr)
{
    int r = check(d);

    if (r)
        return gpi_fail(reterr, r, 0, "d", "%s", gpud_error_text(r));
    if (!devices)
        return gpi_fail(reterr, GPUD_EINVAL, 0, "devices", "a NULL argument");
    return gpi_device_add(d, devices, reterr);
}

int gpud_dispatcher_device_drain(gpud_dispatcher *d, const char *device)
{
    int r = check(d);

    return r ? r : device ? gpi_device_drain(d, device) : GPUD_EINVAL;
}

int gpud_dispatcher_device_return(gpud_dispatcher *d, const char *device)
{
    int r = check(d);

    return r ? r : device ? gpi_device_return(d, device) : GPUD_EINVAL;
}

int gpud_dispatcher_device_remove(gpud_dispatcher *d, const char *device)
{
    int r = check(d);

    return r ? r : device ? gpi_device_remove(d, device) : GPUD_EINVAL;
}
