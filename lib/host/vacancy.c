/* SPDX-License-Identifier: MIT */
/*
 * vacancy.c - the successor of a dead worker starts when the memory of its devices is free again: a
 * driver frees it some time after the reap.                                                    [C8]
 *
 * The memory is free again when it is as much as before the dead worker's setup, less the memory
 * that other processes on the device have taken since, within a tolerance, in two readings that
 * agree.  If the driver reports pids, they show how much those processes take.  If no device can be
 * read, no slot waits.  A wait ends with option memory_wait, and then an event reports the holders
 * by pid.
 */
#include <stdio.h>

#include "base/clock.h"
#include "host/act.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/slot.h"
#include "os/process.h"

#define MIB (1ull << 20)
#define TOLERANCE (256 * MIB) /* readings of an unused device differ by this much, or by 2 % */
/* The wait for a first reading: a busy driver must not hold up starts. */
#define FIRST_READING_NS (250 * GPI_MS)
#define LOOK_NS (20 * GPI_MS)           /* between readings, doubling */
#define LOOK_MAX_NS (500 * GPI_MS)

static uint64_t tolerance(const struct gpi_sample *s)
{
    uint64_t part = s->memory_total == GPI_UNKNOWN64 ? 0 : s->memory_total / 50;

    return part > TOLERANCE ? part : TOLERANCE;
}

static bool is_telling(const struct gpi_sample *s)
{
    return s->at && s->reading == GPI_READ_OK && s->memory_free != GPI_UNKNOWN64;
}

static uint32_t listed(const struct gpi_sample *s)
{
    return s->n_users < GPI_PROCESSES_MAX ? s->n_users : GPI_PROCESSES_MAX;
}

/* Returns the memory of all processes but this one. */
static int64_t held_by_others(const struct gpi_sample *s, uint32_t pid)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < listed(s); i++)
        if (s->user[i].pid != pid && s->user[i].memory != GPI_UNKNOWN64)
            sum += (int64_t)s->user[i].memory;
    return sum;
}

void gpi_vacancy_note(gpud_dispatcher *d, struct gpi_slot *s)
{
    for (uint32_t i = 0; gpi_slot_is_read(d, s) && i < s->n_devices; i++) {
        const struct gpi_sample *now = &d->dev.row[s->devices[i]].sample;
        s->before[i] = (struct gpi_ground){ .at = is_telling(now) ? now->at : 0,
                                            .free = (int64_t)now->memory_free,
                                            .others = held_by_others(now, s->dead),
                                            .users_known = now->users_known };
    }
    s->dead = 0;
}

/* ---- waiting ---- */

static bool was_noted(const struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (!s->before[i].at)
            return false;
    return true;
}

static bool can_be_read(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (!gpi_device_reads(d, s->devices[i]) || !is_telling(&d->dev.row[s->devices[i]].sample))
            return false;
    return true;
}

static void ask_again(gpud_dispatcher *d, const struct gpi_slot *s, uint64_t wait)
{
    for (uint32_t i = 0; i < s->n_devices; i++) {
        struct gpi_known_device *k = &d->dev.row[s->devices[i]];
        k->look_at = gpi_time_min(k->look_at, d->now + wait);
    }
    gpi_devices_rouse(d);
}

static void go_on(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->awaits_memory = false;
    s->vacant_by = GPI_NEVER;
    d->stats.count.memory_waits += s->waited_for_memory;
    gpi_hear_slot(d, s, GPI_EV_MEMORY, 0);
}

void gpi_vacancy_begin(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->waited_for_memory = false;
    if (!was_noted(s) || !can_be_read(d, s)) {
        go_on(d, s);
        return;
    }
    s->awaits_memory = true;
    s->awaited_since = s->last.at;
    s->vacant_by =
        gpi_time_add(s->awaited_since, gpi_time_min(d->set.memory_wait, FIRST_READING_NS));
    s->awaited_wait = LOOK_NS;
    for (uint32_t i = 0; i < s->n_devices; i++)
        s->before[i].last = INT64_MIN;
    ask_again(d, s, 0);
    gpi_slot_timer(d, s);
}

/* Returns the bytes that one device still lacks in its last reading; 0 = as before. */
static int64_t lacks(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t i)
{
    const struct gpi_sample *now = &d->dev.row[s->devices[i]].sample;
    const struct gpi_ground *g = &s->before[i];
    const int64_t taken =
        now->users_known && g->users_known ? held_by_others(now, s->dead) - g->others : 0;
    const int64_t wanted = g->free - taken - (int64_t)tolerance(now);

    return (int64_t)now->memory_free < wanted ? wanted - (int64_t)now->memory_free : 0;
}

/* Other workers have started on the device since, and the driver does not report their memory: then
 * the amount of free memory proves nothing. */
static bool is_dark(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t i)
{
    if (d->dev.row[s->devices[i]].sample.users_known && s->before[i].users_known)
        return false;
    for (uint32_t k = 0; k < d->n_slots; k++)
        if (&d->slot[k] != s && gpi_slot_has_worker(d, &d->slot[k]) &&
            d->slot[k].started_at > s->before[i].at && gpi_slot_has(&d->slot[k], s->devices[i]))
            return true;
    return false;
}

static bool agrees(const gpud_dispatcher *d, struct gpi_slot *s, uint32_t i)
{
    const struct gpi_sample *now = &d->dev.row[s->devices[i]].sample;
    const int64_t last = s->before[i].last;
    const int64_t by = last == INT64_MIN ? INT64_MAX : (int64_t)now->memory_free - last;

    s->before[i].last = (int64_t)now->memory_free;
    return by <= (int64_t)tolerance(now) && -by <= (int64_t)tolerance(now);
}

/* A reading of this device is there.  Returns true if the memory is free again. */
static bool look(gpud_dispatcher *d, struct gpi_slot *s, uint32_t device)
{
    bool vacant = true;

    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct gpi_sample *now = &d->dev.row[s->devices[i]].sample;
        if (now->at <= s->awaited_since) {
            vacant = false;
            continue;
        }
        if (s->devices[i] == device)
            s->before[i].agreed = agrees(d, s, i);
        vacant &= s->before[i].last != INT64_MIN && s->before[i].agreed &&
                  (!lacks(d, s, i) || is_dark(d, s, i));
        s->waited_for_memory |= lacks(d, s, i) > 0;
    }
    return vacant;
}

static void look_again(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->vacant_by = gpi_time_add(s->awaited_since, d->set.memory_wait);
    ask_again(d, s, s->waited_for_memory ? s->awaited_wait : 0);
    if (s->waited_for_memory && s->awaited_wait < LOOK_MAX_NS)
        s->awaited_wait *= 2;
    gpi_slot_timer(d, s);
}

void gpi_vacancy_look(gpud_dispatcher *d, uint32_t device)
{
    const bool reads = gpi_device_reads(d, device) && is_telling(&d->dev.row[device].sample);

    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (!s->awaits_memory || !gpi_slot_has(s, device))
            continue;
        if (!reads || look(d, s, device))
            go_on(d, s);
        else
            look_again(d, s);
    }
}

/* ---- the holders of the memory ---- */

static unsigned long long mib(uint64_t bytes)
{
    return bytes == GPI_UNKNOWN64 ? 0 : bytes / MIB;
}

/* Its name shows a worker of this library: one without a keeper, or the worker that has just
 * died. */
static const char *whose(const struct gpi_slot *s, uint32_t pid, const char *name)
{
    if (pid == s->dead)
        return "the dead worker";
    return gpi_process_is_worker(name) ? "an orphaned worker" : "foreign";
}

static void list_holders(const gpud_dispatcher *d, const struct gpi_slot *s,
                         const struct gpi_sample *now, char *to, size_t size)
{
    size_t n = 0;

    to[0] = '\0';
    if (!now->users_known)
        snprintf(to, size, "by processes that the driver does not report");
    for (uint32_t i = 0; i < listed(now) && n < size; i++) {
        char name[GPI_PROCESS_NAME];
        if (gpi_is_ours(d, now->user[i].pid))
            continue;
        gpi_process_name(now->user[i].pid, name);
        n += (size_t)snprintf(to + n, size - n, "%spid %u (%s, %s, %llu MiB)", n ? ", " : "by ",
                              now->user[i].pid, name, whose(s, now->user[i].pid, name),
                              mib(now->user[i].memory));
    }
    if (now->users_known && !n)
        snprintf(to, size, "by no process that the driver reports");
}

static void tell_late(gpud_dispatcher *d, struct gpi_slot *s)
{
    d->stats.count.memory_late++;
    s->waited_for_memory = true;
    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct gpi_sample *now = &d->dev.row[s->devices[i]].sample;
        char holders[192];
        if (!lacks(d, s, i))
            continue;
        list_holders(d, s, now, holders, sizeof holders);
        gpi_device_tell(d, s->devices[i], 0,
                        "%llu MiB are free %.1f s after a worker's end, %llu MiB before its "
                        "start, held %s; slot %u starts (memory_wait)",
                        mib(now->memory_free), (double)(d->now - s->awaited_since) / 1e9,
                        mib((uint64_t)s->before[i].free), holders, s->index);
    }
}

/* If the slot does not wait for a start any more, late memory is no event. */
void gpi_vacancy_over(gpud_dispatcher *d, struct gpi_slot *s)
{
    const bool whole = d->now >= gpi_time_add(s->awaited_since, d->set.memory_wait);

    s->vacant_by = GPI_NEVER;
    if (!s->awaits_memory)
        return;
    if (whole && gpi_slot_life(d, s) == GPI_LIFE_WAIT)
        tell_late(d, s);
    go_on(d, s);
}
