/* SPDX-License-Identifier: MIT */
/* roster.c - devices that are added, drained, returned and removed while the dispatcher runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/failure.h"
#include "host/dispatcher.h"
#include "device/select.h" /* after it: GPI_PLACE_NONE is a word of both */

/* ---- add ---- */

struct scratch {
    char name[GPI_SLOTS_MAX][GPI_DEVICE_SIZE];
    uint16_t slot[GPI_SLOTS_MAX];
};

/* CPU number k of the new list gets the k-th number that no device has. */
static uint32_t free_number(const gpud_dispatcher *d, uint32_t k)
{
    char name[GPI_DEVICE_NAME];

    for (uint32_t number = 0;; number++) {
        snprintf(name, sizeof name, "cpu:%u", number);
        if (gpi_device_find(d, name) == GPI_NO_DEVICE && k-- == 0)
            return number;
    }
}

/* Gives the CPU slots of a new list their numbers here. */
static void renumber(const gpud_dispatcher *d, char names[GPI_DEVICE_SIZE])
{
    char old[GPI_DEVICE_SIZE], *at = old, *name;
    size_t n = 0;
    uint32_t k;

    memcpy(old, names, sizeof old);
    while ((name = strsep(&at, ",")) != NULL) {
        int r = sscanf(name, "cpu:%u", &k) == 1 ? snprintf(names + n, GPI_DEVICE_SIZE - n, "%scpu:%u", n ? "," : "", free_number(d, k))
                                                 : snprintf(names + n, GPI_DEVICE_SIZE - n, "%s%s", n ? "," : "", name);
        n += (size_t)r;
    }
}

static int add_sets(gpud_dispatcher *d, struct scratch *x, uint32_t n, struct gpud_error *e)
{
    int r;

    if (d->closing || d->ending || atomic_load(&d->stop_asked))
        return gpi_fail(e, GPUD_ECLOSED, 0, "", "%s", gpud_error_text(GPUD_ECLOSED));
    if (d->spawner_gone)
        return gpi_fail(e, GPUD_ESPAWNER, 0, "", "%s", gpud_error_text(GPUD_ESPAWNER));
    for (uint32_t i = n; i-- > 0;)
        renumber(d, x->name[i]);
    r = gpi_slots_add(d, x->name, n, NULL, 0, x->slot);
    if (r)
        return gpi_fail(e, r, 0, "devices", r == GPUD_EFULL ? "a dispatcher has 1,024 slots at most" : "%s", gpud_error_text(r));
    d->count.payload_budget += n * d->set.result_size;
    for (uint32_t i = 0; i < n; i++) {
        const struct gpi_slot *s = &d->slot[x->slot[i]];
        for (uint32_t k = 0; k < s->n_devices; k++)
            if (!d->dev.row[s->devices[k]].told) {
                d->dev.row[s->devices[k]].told = true;
                gpi_device_tell(d, s->devices[k], 0, "added");
            }
    }
    for (uint32_t i = 0; i < n; i++)
        gpi_slot_start(d, &d->slot[x->slot[i]]);
    return 0;
}

int gpi_device_add(gpud_dispatcher *d, const char *devices, struct gpud_error *e)
{
    struct scratch *x = calloc(1, sizeof *x);
    int n, r;

    if (!x)
        return gpi_fail(e, GPUD_ENOMEM, 0, "", "no memory for a list of devices");
    n = gpi_device_list(devices, d->set.devices_per_worker, x->name, GPI_SLOTS_MAX, e);
    if (n > 0) {
        pthread_mutex_lock(&d->lock);
        d->now = gpi_now();
        r = add_sets(d, x, (uint32_t)n, e);
        gpi_drive_wake(d);
        pthread_mutex_unlock(&d->lock);
    } else {
        r = n;
    }
    free(x);
    return r;
}

/* ---- drain, return, remove ---- */

static void leave_all(gpud_dispatcher *d, uint32_t device)
{
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (!d->slot[i].removed && gpi_slot_has(&d->slot[i], device))
            gpi_slot_leave(d, &d->slot[i]);
}

static int drain(gpud_dispatcher *d, uint32_t device)
{
    struct gpi_known_device *k = &d->dev.row[device];

    if (k->draining || k->removing)
        return 0;
    k->draining = true;
    k->drained = false;
    gpi_device_tell(d, device, 0, "draining: no new task, by the host's wish");
    leave_all(d, device);
    return 0;
}

/* What was given up is tried again, too. */
static int give_back(gpud_dispatcher *d, uint32_t device)
{
    struct gpi_known_device *k = &d->dev.row[device];

    if (k->removing)
        return GPUD_ENOTFOUND;
    if (k->draining)
        gpi_device_tell(d, device, 0, "returned: by the host's wish");
    k->draining = k->drained = false;
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (s->state != GPUD_SLOT_FAILED || !gpi_slot_has(s, device))
            continue;
        s->restart = (struct gpi_restart){ 0 };
        s->parked = true;
    }
    gpi_slots_come_back(d, device);
    return 0;
}

/* In a set the whole set goes, and so does a device that is in no other one. */
static int take_out(gpud_dispatcher *d, uint32_t device)
{
    struct gpi_known_device *k = &d->dev.row[device];

    if (k->removing)
        return 0;
    k->removing = true;
    gpi_device_tell(d, device, 0, "to be removed, by the host's wish");
    leave_all(d, device);
    return 0;
}

static int with_device(gpud_dispatcher *d, const char *device, int (*verb)(gpud_dispatcher *d, uint32_t device))
{
    uint32_t i;
    int r;

    pthread_mutex_lock(&d->lock);
    d->now = gpi_now();
    i = gpi_device_find(d, device);
    r = i == GPI_NO_DEVICE ? GPUD_ENOTFOUND : verb(d, i);
    gpi_drive_wake(d);
    pthread_mutex_unlock(&d->lock);
    return r;
}

int gpi_device_drain(gpud_dispatcher *d, const char *device)
{
    return with_device(d, device, drain);
}

int gpi_device_return(gpud_dispatcher *d, const char *device)
{
    return with_device(d, device, give_back);
}

int gpi_device_remove(gpud_dispatcher *d, const char *device)
{
    return with_device(d, device, take_out);
}
