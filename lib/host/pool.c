/* SPDX-License-Identifier: MIT */
/*
 * pool.c - the slots of a pooled dispatcher, called seats: the class and the devices of a seat; and
 * readings for the core: the memory and the use of devices.                            [R4] [S1]
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/act.h"
#include "host/core.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/external.h"
#include "host/slot.h"
#include "os/process.h"

/* ---- seats ---- */

void gpi_slot_unseat(gpud_dispatcher *d, struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++) {
        struct gpi_known_device *k = &d->dev.row[s->devices[i]];
        k->done += gpi_slot_done(s) - s->done_before;
        k->unused_since = d->now;
        k->slots--;
    }
    s->done_before = gpi_slot_done(s);
    s->n_devices = 0;
    (void)snprintf(s->device, sizeof s->device, "cpu");
}

void gpi_slot_seat(gpud_dispatcher *d, struct gpi_slot *s, uint32_t class)
{
    gpi_slot_unseat(d, s);
    s->class = (uint16_t)class;
    if (!s->held)
        s->largest_result = 0; /* of the class before */
}

void gpi_slot_seat_on(gpud_dispatcher *d, struct gpi_slot *s, uint32_t device)
{
    const char *name = d->dev.row[device].id.name;
    const size_t n = s->n_devices ? strlen(s->device) : 0;

    (void)snprintf(s->device + n, sizeof s->device - n, "%s%s", n ? "," : "", name);
    s->devices[s->n_devices++] = (uint16_t)device;
    d->dev.row[device].slots++;
}

/* ---- readings ---- */

bool gpi_pool_waits(const gpud_dispatcher *d)
{
    bool waits = gpi_sched_queued(d->core) > 0;

    for (uint32_t i = 0; i < d->n_classes; i++) {
        const struct gpi_class *c = &d->class[i];
        const uint32_t least = c->plan.min_workers > c->loads ? c->plan.min_workers : c->loads;
        waits |= c->up < least && !gpi_sched_is_paused(d->core, i);
    }
    return waits;
}

/* Its worker, or a process of the worker's or its keeper's session. */
static bool belongs(const struct gpi_slot *s, int32_t pid, int32_t session)
{
    if (s->state == GPUD_SLOT_COOLING) /* the driver may list the dead worker still */
        return (uint32_t)pid == s->dead;
    return s->pid > 0 && (pid == s->pid || session == s->pid ||
                          (s->keeper_pid > 0 && session == s->keeper_pid));
}

static uint64_t memory_of(const struct gpi_user *u)
{
    return u->memory == GPI_UNKNOWN64 ? 0 : u->memory;
}

/* Whose a process of a reading is. */
struct owner {
    int32_t session;
    uint32_t task; /* external work, or GPI_NONE */
};

static void observe(gpud_dispatcher *d, const struct gpi_slot *s, uint32_t device,
                    const struct gpi_sample *now, const struct owner *of)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < now->n_users && i < GPI_PROCESSES_MAX; i++)
        if (belongs(s, (int32_t)now->user[i].pid, of[i].session))
            bytes += memory_of(&now->user[i]);
    gpi_core_observed(d, d->now, s->index, device, bytes);
    d->act(d);
}

static void observe_outside(gpud_dispatcher *d, uint32_t task, uint32_t device,
                            const struct gpi_sample *now, const struct owner *of)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < now->n_users && i < GPI_PROCESSES_MAX; i++)
        if (of[i].task == task)
            bytes += memory_of(&now->user[i]);
    gpi_core_observed_of(d, d->now, task, device, bytes);
    d->act(d);
}

/* Without the processes of a task the plan knows only its reservation. */
static void observe_all_outside(gpud_dispatcher *d, uint32_t device, const struct gpi_sample *now,
                                const struct owner *of)
{
    for (uint32_t k = d->outside.n; k > 0; k--) {
        const uint32_t task = d->outside.task[k - 1];
        const struct gpi_grant *g = &d->outside.of[task];
        if (gpi_family_known(g) && gpi_grant_has(g, device))
            observe_outside(d, task, device, now, of);
    }
}

/* ---- memory of survivors ---- */

/* A device that was removed and added again has a new row.  A worker that survived SIGKILL, or held
 * external work, may still have its memory there, in the name of the row before.  The plan knows
 * these bytes as foreign ones. */
static bool is_before(const gpud_dispatcher *d, uint32_t row, uint32_t device)
{
    const struct gpi_known_device *k = &d->dev.row[row];

    return k->past && strcmp(k->id.uuid, d->dev.row[device].id.uuid) == 0;
}

static bool is_held_by(const gpud_dispatcher *d, const uint16_t *row, uint32_t n, uint32_t device)
{
    bool is = false;

    for (uint32_t i = 0; i < n && !is; i++)
        is = is_before(d, row[i], device);
    return is;
}

/* Its keeper may have no news of its end. */
static bool survives(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    const char state = s->pid > 0 && gpi_slot_life(d, s) == GPI_LIFE_STUCK
                           ? gpi_process_state(s->pid)
                           : 0;

    return state != 0 && state != 'Z' && state != 'X';
}

/* With all of the memory of a device whose size is unknown it has more than R4 tolerates. */
static uint64_t bytes_of(const gpud_dispatcher *d, uint32_t device, uint64_t booked, uint64_t seen)
{
    const uint64_t total = d->dev.row[device].id.memory_total;

    if (booked == GPI_MEMORY_ALL)
        booked = total == GPI_UNKNOWN64 ? d->set.foreign_memory + 1 : total;
    return booked > seen ? booked : seen;
}

static uint64_t seen_of_slot(const struct gpi_slot *s, const struct gpi_sample *now,
                             const struct owner *of)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; of && i < now->n_users && i < GPI_PROCESSES_MAX; i++)
        if (belongs(s, (int32_t)now->user[i].pid, of[i].session))
            bytes += memory_of(&now->user[i]);
    return bytes;
}

static uint64_t seen_of_task(uint32_t task, const struct gpi_sample *now, const struct owner *of)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; of && i < now->n_users && i < GPI_PROCESSES_MAX; i++)
        if (of[i].task == task)
            bytes += memory_of(&now->user[i]);
    return bytes;
}

/* `of`: NULL without a reading. */
static uint64_t held(const gpud_dispatcher *d, uint32_t device, const struct gpi_sample *now,
                     const struct owner *of)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < d->n_slots; i++) {
        const struct gpi_slot *s = &d->slot[i];
        if (is_held_by(d, s->devices, s->n_devices, device) && survives(d, s))
            bytes += bytes_of(d, device, gpi_sched_slot_memory(d->core, i),
                              seen_of_slot(s, now, of));
    }
    for (uint32_t i = 0; i < d->outside.n; i++) {
        const uint32_t task = d->outside.task[i];
        const struct gpi_grant *g = &d->outside.of[task];
        if (is_held_by(d, g->device, g->n_devices, device))
            bytes += bytes_of(d, device, gpi_sched_memory(d->core, task),
                              seen_of_task(task, now, of));
    }
    return bytes;
}

/* ---- foreign processes ---- */

static uint64_t foreign(const gpud_dispatcher *d, const struct gpi_sample *now,
                        const struct owner *of)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < now->n_users && i < GPI_PROCESSES_MAX; i++) {
        bool ours = of[i].task != GPI_NONE;
        for (uint32_t k = 0; k < d->n_slots && !ours; k++)
            ours = belongs(&d->slot[k], (int32_t)now->user[i].pid, of[i].session);
        bytes += ours ? 0 : memory_of(&now->user[i]);
    }
    return bytes;
}

/* Without a worker of ours there, the whole use is foreign. */
static uint32_t foreign_load(const gpud_dispatcher *d, uint32_t device,
                             const struct gpi_sample *now)
{
    if (!d->set.foreign_load)
        return 0;
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slot[i].pid > 0 && gpi_slot_has(&d->slot[i], device))
            return 0;
    for (uint32_t i = 0; i < d->outside.n; i++)
        if (gpi_grant_has(&d->outside.of[d->outside.task[i]], device))
            return 0;
    return now->utilization == GPI_UNKNOWN32 ? 0 : now->utilization * 100;
}

static void tell_foreign(gpud_dispatcher *d, uint32_t device)
{
    struct gpi_known_device *k = &d->dev.row[device];

    d->dev.n_foreign -= k->foreign;
    k->foreign = k->others || k->held || k->load;
    d->dev.n_foreign += k->foreign;
    gpi_core_foreign(d, d->now, device, gpi_time_add(k->others, k->held), k->load);
    d->act(d);
}

static void use_without_reading(gpud_dispatcher *d, uint32_t device)
{
    struct gpi_known_device *k = &d->dev.row[device];
    const uint64_t bytes = held(d, device, &k->sample, NULL);

    if (bytes == k->held)
        return;
    k->held = bytes;
    tell_foreign(d, device);
}

void gpi_device_released(gpud_dispatcher *d, uint32_t device)
{
    for (uint32_t i = 0; i < d->dev.n; i++)
        if (d->dev.row[i].here && is_before(d, device, i))
            gpi_device_usage(d, i);
}

void gpi_device_usage(gpud_dispatcher *d, uint32_t device)
{
    struct gpi_known_device *k = &d->dev.row[device];
    const struct gpi_sample *now = &k->sample;
    struct owner of[GPI_PROCESSES_MAX];

    memset(k->outside, 0, sizeof k->outside);
    if (!d->set.pooled)
        return;
    if (!now->at || now->reading != GPI_READ_OK || !now->users_known) {
        use_without_reading(d, device);
        return;
    }
    for (uint32_t i = 0; i < now->n_users && i < GPI_PROCESSES_MAX; i++) {
        of[i].session = getsid((pid_t)now->user[i].pid);
        of[i].task = gpi_family_of(d, now->user[i].pid);
        k->outside[i] = of[i].task != GPI_NONE;
    }
    k->load = foreign_load(d, device, now);
    k->others = foreign(d, now, of);
    k->held = held(d, device, now, of);
    tell_foreign(d, device);
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slot[i].pid > 0 && gpi_slot_has(&d->slot[i], device))
            observe(d, &d->slot[i], device, now, of);
    observe_all_outside(d, device, now, of);
}
