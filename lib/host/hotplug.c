/* SPDX-License-Identifier: MIT */
/* hotplug.c - devices that are added, drained, returned and removed while the dispatcher runs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/failure.h"
#include "host/act.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/slot.h"
#include "os/fds.h"

/* ---- add ---- */

/* Returns the first number from `from` on that no CPU slot has. */
static uint32_t free_number(const gpud_dispatcher *d, uint32_t from)
{
    char name[GPI_DEVICE_NAME];

    for (uint32_t number = from;; number++) {
        snprintf(name, sizeof name, "cpu:%u", number);
        if (gpi_device_find(d, name) == GPI_NO_DEVICE)
            return number;
    }
}

static void number_cpus(const gpud_dispatcher *d, struct gpi_selection *chosen)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < chosen->n; i++) {
        struct gpi_device *id = &chosen->device[i].device;
        if (id->kind != GPUD_DEVICE_CPU)
            continue;
        id->index = free_number(d, next);
        next = id->index + 1;
        snprintf(id->name, sizeof id->name, "cpu:%u", id->index);
        snprintf(id->uuid, sizeof id->uuid, "%s", id->name);
    }
}

/* Returns the number after those of all fakes. */
static uint32_t first_fake(const gpud_dispatcher *d)
{
    uint32_t first = 0;

    for (uint32_t i = 0; i < d->dev.n; i++) {
        const struct gpi_known_device *k = &d->dev.row[i];
        if (k->here && k->id.kind == GPUD_DEVICE_FAKE && k->id.index >= first)
            first = k->id.index + 1;
    }
    return first;
}

/* Fakes got their numbers before this thread took the lock. */
static bool numbers_are_taken(const gpud_dispatcher *d, const struct gpi_selection *chosen)
{
    const uint32_t first = first_fake(d);

    for (uint32_t i = 0; i < chosen->n; i++)
        if (chosen->device[i].device.kind == GPUD_DEVICE_FAKE &&
            chosen->device[i].device.index < first)
            return true;
    return false;
}

/* Another thread may have added the same device meanwhile. */
static const struct gpi_device *one_that_is_here(const gpud_dispatcher *d,
                                                 const struct gpi_selection *chosen)
{
    for (uint32_t i = 0; i < chosen->n; i++)
        if (gpi_device_find(d, chosen->device[i].device.uuid) != GPI_NO_DEVICE)
            return &chosen->device[i].device;
    return NULL;
}

/* Pooled: any class may have a worker there. */
static int check_visible(const gpud_dispatcher *d, const struct gpi_selection *chosen,
                         struct gpud_error *e)
{
    int r = 0;

    for (uint32_t i = 0; d->set.pooled && i < chosen->n && r == 0; i++)
        r = gpi_classes_check_visible(d, &chosen->device[i].device, e);
    return r;
}

static void tell_added(gpud_dispatcher *d, const struct gpi_selection *chosen)
{
    for (uint32_t i = 0; i < chosen->n; i++) {
        uint32_t device = gpi_device_find(d, chosen->device[i].device.uuid);
        gpi_device_tell(d, device, 0, "added");
    }
}

static int add(gpud_dispatcher *d, struct gpi_selection *chosen, struct gpi_gauge *g,
               struct gpud_error *e)
{
    const uint32_t before = d->n_slots;
    uint32_t gauge = GPI_NO_GAUGE;
    uint16_t slot[GPI_SLOTS_MAX];
    const struct gpi_device *here;
    int r;

    if (d->close.closing || d->close.ending || atomic_load(&d->close.stop_asked))
        return gpi_fail(e, GPUD_ECLOSED, 0, "", "%s", gpud_error_text(GPUD_ECLOSED));
    if (d->spawner.gone)
        return gpi_fail(e, GPUD_ESPAWNER, 0, "", "%s", gpud_error_text(GPUD_ESPAWNER));
    if (numbers_are_taken(d, chosen))
        return GPI_DEVICE_ADD_AGAIN;
    number_cpus(d, chosen);
    here = one_that_is_here(d, chosen);
    if (here)
        return gpi_fail(e, GPUD_EDEVICE, 0, "devices", "%s is already a device of this dispatcher",
                        here->name);
    r = check_visible(d, chosen, e);
    if (r)
        return r;
    gpi_gauges_release(d);
    r = g ? gpi_gauge_adopt(d, g, &gauge) : 0;
    if (r)
        return gpi_fail(e, r, 0, "devices",
                        "the maximum is %u monitors per dispatcher: remove devices first",
                        GPI_GAUGES);
    r = gpi_slots_add(d, chosen, gauge, slot);
    if (r && g) {
        d->dev.gauge[gauge] = NULL;
        gpi_drive_unwatch(d, g->m.fd);
    }
    if (r)
        return gpi_fail(e, r, 0, "devices",
                        r != GPUD_EFULL ? "%s"
                        : d->set.pooled ? "the maximum is 1,024 devices per dispatcher"
                                        : "the maximum is 1,024 slots per dispatcher",
                        gpud_error_text(r));
    /* A reused slot already has its share. */
    d->stats.count.payload_budget += (d->n_slots - before) * d->set.result_size;
    tell_added(d, chosen);
    for (uint32_t i = 0; i < chosen->n_slots && !d->set.pooled; i++)
        gpi_hear_slot(d, &d->slot[slot[i]], GPI_EV_WANT, 0);
    gpi_decide(d);
    gpi_devices_rouse(d);
    return 0;
}

int gpi_device_add(gpud_dispatcher *d, struct gpi_selection *chosen, struct gpi_gauge *g,
                   struct gpud_error *e)
{
    int r;

    pthread_mutex_lock(&d->lock);
    d->now = gpi_now();
    r = add(d, chosen, g, e);
    gpi_drive_wake(d);
    pthread_mutex_unlock(&d->lock);
    return r;
}

uint32_t gpi_devices_present(gpud_dispatcher *d, struct gpi_device *ret, uint32_t max,
                             uint32_t *ret_first_fake, int *ret_connection)
{
    uint32_t n = 0;

    pthread_mutex_lock(&d->lock);
    *ret_first_fake = first_fake(d);
    for (uint32_t i = 0; i < d->dev.n && n < max; i++) {
        const struct gpi_known_device *k = &d->dev.row[i];
        if (k->here && k->id.kind != GPUD_DEVICE_CPU)
            ret[n++] = k->id;
    }
    *ret_connection =
        d->spawner.fd < 0 ? -EPIPE : gpi_fd_lift(fcntl(d->spawner.fd, F_DUPFD_CLOEXEC, 3));
    if (*ret_connection == -1)
        *ret_connection = -errno;
    pthread_mutex_unlock(&d->lock);
    return n;
}

/* ---- drain, return, remove ---- */

static int drain(gpud_dispatcher *d, uint32_t device)
{
    if (gpi_sched_drains(d->core, device))
        return 0;
    gpi_device_tell(d, device, 0, "draining at the host's request: no new task");
    d->dev.row[device].unused_since = d->now;
    gpi_hear_device(d, device, GPI_EV_DRAIN);
    gpi_slot_barred(d, device);
    return 0;
}

static int pause_device(gpud_dispatcher *d, uint32_t device)
{
    if (gpi_sched_is_removed(d->core, device))
        return GPUD_ENOTFOUND;
    if (gpi_sched_pauses(d->core, device))
        return 0;
    gpi_device_tell(d, device, 0, "paused at the host's request: no new task");
    gpi_hear_device(d, device, GPI_EV_PAUSE);
    return 0;
}

/* Also tries slots and devices again that the host had given up. */
static int give_back(gpud_dispatcher *d, uint32_t device)
{
    if (gpi_sched_is_removed(d->core, device))
        return GPUD_ENOTFOUND;
    if (gpi_sched_drains(d->core, device) || gpi_sched_pauses(d->core, device))
        gpi_device_tell(d, device, 0, "returned at the host's request");
    if (gpi_sched_drains(d->core, device))
        d->dev.row[device].unused_since = d->now;
    gpi_hear_device(d, device, GPI_EV_RETURN);
    gpi_judge_return(d, device);
    gpi_slot_barred(d, device);
    gpi_decide(d);
    return 0;
}

/* A set leaves as a whole, and so does each of its devices that is in no other set. */
static int take_out(gpud_dispatcher *d, uint32_t device)
{
    if (gpi_sched_is_removed(d->core, device))
        return 0;
    gpi_device_tell(d, device, 0, "leaving at the host's request: no new task");
    gpi_device_leaves(d, device);
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (gpi_slot_life(d, &d->slot[i]) == GPI_LIFE_STUCK && gpi_slot_has(&d->slot[i], device))
            gpi_slot_strike_off(d, &d->slot[i]);
    return 0;
}

static int with_device(gpud_dispatcher *d, const char *device,
                       int (*verb)(gpud_dispatcher *d, uint32_t device))
{
    uint32_t i;
    int r;

    pthread_mutex_lock(&d->lock);
    d->now = gpi_now();
    i = gpi_device_find(d, device);
    r = i == GPI_NO_DEVICE ? GPUD_ENOTFOUND : verb(d, i);
    gpi_ready_changed(d); /* a worker that still runs a task counts now, or no longer */
    gpi_drive_wake(d);
    pthread_mutex_unlock(&d->lock);
    return r;
}

int gpi_device_drain(gpud_dispatcher *d, const char *device)
{
    return with_device(d, device, drain);
}

int gpi_device_pause(gpud_dispatcher *d, const char *device)
{
    return with_device(d, device, pause_device);
}

int gpi_device_return(gpud_dispatcher *d, const char *device)
{
    return with_device(d, device, give_back);
}

int gpi_device_remove(gpud_dispatcher *d, const char *device)
{
    return with_device(d, device, take_out);
}
