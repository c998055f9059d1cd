/* SPDX-License-Identifier: MIT */
/* request.c - pooled: the requests of a class or a task, from the records of the user.     [R9] */
#include <stdio.h>
#include <string.h>

#include "base/failure.h"
#include "base/versioned.h"
#include "gpudispatch/sched.h"
#include "host/class.h"
#include "host/core.h"
#include "host/device.h"
#include "host/dispatcher.h"

/* ---- one request ---- */

/* `record`: the words before a field in errors, such as "needs.next.". */
static int lacks_devices(struct gpud_error *e, const char *record, const char *field,
                         uint64_t value)
{
    return gpi_fail(e, GPUD_EINVAL, 0, field, "%s%s is %llu, but %sdevices is 0: set devices",
                    record, field, (unsigned long long)value, record);
}

static int check(const struct gpud_request *q, const char *record, struct gpud_error *e)
{
    if (q->devices > GPI_DEVICES)
        return gpi_fail_most(e, record, "devices", q->devices, GPI_DEVICES);
    if (q->share > GPI_SHARE_ALL)
        return gpi_fail_most(e, record, "share", q->share, GPI_SHARE_ALL);
    if (q->devices > 1 && q->share && q->share < GPI_SHARE_ALL)
        return gpi_fail(e, GPUD_EINVAL, 0, "share",
                        "%sshare is %u, but %sdevices is %u: several devices have no share, "
                        "expected 0 or %u",
                        record, q->share, record, q->devices, GPI_SHARE_ALL);
    if (q->devices)
        return 0;
    if (q->on || q->not_on)
        return gpi_fail(e, GPUD_EINVAL, 0, q->on ? "on" : "not_on",
                        "%s%s is set, but %sdevices is 0: set devices", record,
                        q->on ? "on" : "not_on", record);
    if (q->share)
        return lacks_devices(e, record, "share", q->share);
    if (q->compute)
        return lacks_devices(e, record, "compute", q->compute);
    if (q->memory)
        return lacks_devices(e, record, "memory", q->memory);
    if (q->cpus || q->host_memory)
        return 0;
    return gpi_fail(e, GPUD_EINVAL, 0, "devices",
                    "%sdevices, cpus and host_memory are 0: set one of them", record);
}

static void convert(struct gpi_request *ret, const struct gpud_request *q)
{
    *ret = (struct gpi_request){
        .devices = q->devices,
        .cpus = q->cpus,
        .compute = q->compute,
        .places = GPI_PLACES_ANY,
        .host_memory = q->host_memory,
    };
    if (q->devices == 0)
        return;
    ret->share = q->share ? q->share : GPI_SHARE_ALL;
    ret->memory = q->memory ? q->memory : GPI_MEMORY_ALL;
}

/* ---- all variants ---- */

int gpi_request_read(struct gpi_needs *ret, const char *noun, const struct gpud_request *first,
                     struct gpud_error *e)
{
    char record[48];
    size_t size = (size_t)snprintf(record, sizeof record, "%s.", noun);
    struct gpud_request q;
    int r;

    *ret = (struct gpi_needs){ .noun = noun };
    for (const struct gpud_request *at = first; at; at = q.next) {
        if (ret->n == GPI_VARIANTS)
            return gpi_fail(e, GPUD_EINVAL, 0, "next",
                            "%s has more than %u variants (next), or its list is a circle", noun,
                            GPI_VARIANTS);
        r = gpi_versioned_read(&q, sizeof q, at, offsetof(struct gpud_request, next));
        if (r)
            return gpi_fail_size(e, r, noun, at->struct_size, sizeof q);
        r = check(&q, record, e);
        if (r)
            return r;
        ret->where[ret->n] = (struct gpi_where){ q.on, q.not_on };
        convert(&ret->request[ret->n++], &q);
        size += (size_t)snprintf(record + size, sizeof record - size, "next.");
    }
    return 0;
}

int gpi_request_find_places(gpud_dispatcher *d, struct gpi_needs *needs, struct gpud_error *e)
{
    int r = 0;

    for (uint32_t i = 0; i < needs->n && r == 0; i++)
        r = gpi_places_find(d, needs, i, e);
    return r;
}

/* ---- fit ---- */

static unsigned long long mib(uint64_t bytes)
{
    return bytes >> 20;
}

/* Returns the bytes that workers may have of the largest device that is here. */
static uint64_t largest(const gpud_dispatcher *d, uint32_t *ret_devices)
{
    uint64_t most = 0;

    *ret_devices = 0;
    for (uint32_t i = 0; i < d->dev.n; i++) {
        const struct gpi_device *id = &d->dev.row[i].id;
        *ret_devices += d->dev.row[i].here;
        if (d->dev.row[i].here && id->memory_total != GPI_UNKNOWN64 && id->memory_total > most)
            most = id->memory_total;
    }
    return most - gpi_headroom_of(&d->set, most);
}

int gpi_request_fits(const gpud_dispatcher *d, const char *class, const char *noun,
                     const struct gpi_request *r, uint32_t n, struct gpud_error *e)
{
    const char *of = strcmp(noun, "needs") == 0 ? "class" : "a task of class";
    const uint64_t memory = r->memory == GPI_MEMORY_ALL ? 0 : r->memory;
    uint32_t devices;
    const uint64_t most = largest(d, &devices);

    if (gpi_sched_holds(d->core, r, n))
        return 0;
    return gpi_fail(e, GPUD_EDEVICE, 0, noun,
                    "%s %.63s fits nowhere: it needs %u CPUs, %llu MiB of the machine, and "
                    "devices: %u (%llu MiB, compute %u%s); there are %u CPUs, %llu MiB, and "
                    "devices: %u (up to %llu MiB beside headroom)",
                    of, class, r->cpus, mib(r->host_memory), r->devices, mib(memory), r->compute,
                    r->places ? ", on and not_on" : "", d->set.cpus, mib(d->set.host_memory),
                    devices, mib(most));
}
