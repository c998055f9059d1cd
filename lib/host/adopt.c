/* SPDX-License-Identifier: MIT */
/* adopt.c - external work that runs already, as a host finds it when it starts again.       [S1] */
#include <string.h>

#include "base/clock.h"
#include "base/failure.h"
#include "host/device.h"
#include "host/external.h"

/* Finds the devices, which are separated by commas. */
static int find_devices(const gpud_dispatcher *d, const char *names, struct gpi_adopted *ret,
                        struct gpud_error *e)
{
    uint32_t *n = &ret->core.has.devices;

    for (const char *at = names; at && *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        char name[GPI_DEVICE_UUID_SIZE] = "";
        uint32_t device;
        memcpy(name, at, length < sizeof name ? length : sizeof name - 1);
        at += length;
        device = gpi_device_find(d, name);
        if (device == GPI_NO_DEVICE)
            return gpi_fail(e, GPUD_EDEVICE, 0, "devices",
                            "adoption.devices: no device is named \"%s\"", name);
        if (*n == GPI_DEVICES)
            return gpi_fail(e, GPUD_EINVAL, 0, "devices",
                            "adoption.devices has more than %u devices", GPI_DEVICES);
        for (uint32_t i = 0; i < *n; i++)
            if (ret->device[i] == device)
                return gpi_fail(e, GPUD_EINVAL, 0, "devices",
                                "adoption.devices has \"%s\" twice", name);
        ret->device[(*n)++] = (uint16_t)device;
    }
    return 0;
}

static int check_has(const struct gpud_adoption *a, uint32_t devices, struct gpud_error *e)
{
    if (devices != 1 && a->share && (devices == 0 || a->share < GPI_SHARE_ALL))
        return gpi_fail(e, GPUD_EINVAL, 0, "share",
                        "adoption.share is %u, but adoption.devices has %u devices, expected 0",
                        a->share, devices);
    if (devices == 0 && a->memory)
        return gpi_fail(e, GPUD_EINVAL, 0, "memory",
                        "adoption.memory is %llu, but adoption.devices is empty, expected 0",
                        (unsigned long long)a->memory);
    if (devices == 0 && a->cpus == 0 && a->host_memory == 0)
        return gpi_fail(e, GPUD_EINVAL, 0, "devices",
                        "adoption.devices, cpus and host_memory are 0: set one of them");
    return 0;
}

static int read_adoption(gpud_dispatcher *d, const struct gpud_adoption *a,
                         const struct gpud_proc *proc, struct gpi_adopted *ret,
                         struct gpud_error *e)
{
    struct gpi_request *has = &ret->core.has;
    int r;

    *ret = (struct gpi_adopted){
        .core = { .grant = a->attempt,
                  .attempts = a->attempts,
                  .started_at = proc->started_at ? proc->started_at : d->now,
                  .given_up = a->given_up == 1 },
        .pid = proc->pid,
        .session = proc->session,
    };
    r = find_devices(d, a->devices, ret, e);
    if (r == 0)
        r = check_has(a, has->devices, e);
    if (r == 0)
        r = gpi_external_check_time("started_at", ret->core.started_at, 1, d->now, e);
    ret->core.device = ret->device;
    has->share = has->devices == 0 ? 0 : a->share ? a->share : GPI_SHARE_ALL;
    has->memory = has->devices == 0 ? 0 : a->memory ? a->memory : GPI_MEMORY_ALL;
    has->cpus = a->cpus;
    has->host_memory = a->host_memory;
    return r;
}

int gpi_external_take_over(gpud_dispatcher *d, const struct gpud_task_desc *task,
                       const struct gpud_adoption *adoption, const struct gpud_proc *proc,
                       uint64_t *ret_id, struct gpud_error *e)
{
    struct gpi_adopted a;
    uint64_t id = 0;
    int r;

    pthread_mutex_lock(&d->lock);
    d->now = gpi_now();
    r = read_adoption(d, adoption, proc, &a, e);
    if (r == 0)
        r = gpi_submit_adopted(d, task, &a, &id, e);
    pthread_mutex_unlock(&d->lock);
    if (r == 0)
        *ret_id = id;
    return r;
}
