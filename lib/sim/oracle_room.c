/* SPDX-License-Identifier: MIT */
/*
 * oracle_room.c - the room that external work has on devices: S1, S2 and S7 as far as the books
 * show them.
 */
#include "base/clock.h"
#include "sim/oracle.h"

#define PROMISE_SLACK_NS (300 * GPI_MS) /* of a host that feeds TIME late */

static bool object(struct gpi_oracle *o, bool broken, const char *rule)
{
    return broken && gpi_oracle_object(o, GPI_ORACLE_SAFETY, rule);
}

static void limit(struct gpi_oracle *o, bool broken, const char *rule)
{
    if (broken)
        gpi_oracle_object(o, GPI_ORACLE_LIMITS, rule);
}

/* ---- S1: the use of a device ---- */

struct use {
    uint64_t share, memory;
    uint32_t n, alone; /* leases and workers that have memory; the number with all of it */
};

static const struct gpi_request *need_of(const struct gpi_oracle *o, uint32_t slot)
{
    const uint32_t class = o->truth->slot[slot].class;

    return o->truth->own[class] ? NULL : &o->truth->class[class].need[0];
}

/* The memory of a worker, from its seat on; its share, while it has tasks.  Those of a worker whose
 * tasks have requests of their own do not count. */
static void add_workers(const struct gpi_oracle *o, uint32_t device, struct use *u)
{
    for (uint32_t i = 0; i < o->truth->slots; i++) {
        const struct gpi_request *need = need_of(o, i);
        if (!gpi_book_has(o, i, device) || !need || gpi_book_is_canary(&o->slot[i]) ||
            (o->slot[i].life == GPI_LIFE_STUCK && o->slot[i].start == GPI_START_ONLY))
            continue;
        u->n++;
        u->alone += need->memory == GPI_MEMORY_ALL;
        u->memory += need->memory == GPI_MEMORY_ALL ? 0 : need->memory;
        u->share += o->slot[i].sent ? need->share : 0;
    }
}

static void add_lease(const struct gpi_book_lease *l, uint32_t device, struct use *u)
{
    const bool all = l->has.memory == GPI_MEMORY_ALL;
    const uint64_t bytes = all ? 0 : l->has.memory;

    for (uint32_t k = 0; l->state && k < l->n_devices; k++) {
        if (l->device[k] != device)
            continue;
        u->n++;
        u->alone += all;
        u->memory += bytes > l->observed[k] ? bytes : l->observed[k];
        u->share += l->has.share;
    }
}

static struct use use_of(const struct gpi_oracle *o, uint32_t device,
                         const struct gpi_book_lease *except)
{
    struct use u = { 0 };

    add_workers(o, device, &u);
    for (uint32_t i = 0; i < GPI_TRUTH_SLOTS; i++)
        if (&o->lease[i] != except)
            add_lease(&o->lease[i], device, &u);
    return u;
}

/* A request without memory needs no room there. */
static bool has_too_much(const struct gpi_oracle *o, uint32_t device, const struct use *u,
                         uint64_t memory)
{
    return u->share > GPI_SHARE_ALL || (memory && u->memory > o->truth->usable[device]) ||
           (u->alone && u->n > 1);
}

void gpi_room_machine(struct gpi_oracle *o, const struct gpi_book_lease *l)
{
    uint64_t cpus = 0, bytes = 0;

    for (uint32_t i = 0; i < GPI_TRUTH_SLOTS; i++) {
        cpus += o->lease[i].state ? o->lease[i].has.cpus : 0;
        bytes += o->lease[i].state ? o->lease[i].has.host_memory : 0;
    }
    for (uint32_t i = 0; i < o->truth->slots; i++)
        if (o->slot[i].sent && need_of(o, i))
            cpus += need_of(o, i)->cpus;
    object(o, l->has.cpus && cpus > o->truth->cpus, "a grant of more CPU slots than there are");
    object(o, l->has.host_memory && bytes > o->truth->host_memory,
           "a grant of more memory than the machine has");
}

void gpi_room_device(struct gpi_oracle *o, const struct gpi_book_lease *l, uint32_t device)
{
    const struct use before = use_of(o, device, l), u = use_of(o, device, NULL);
    const uint64_t foreign = o->truth->foreign[device];

    if (object(o, has_too_much(o, device, &before, l->has.memory),
               "a grant on a device that has too much"))
        return;
    object(o, u.share > GPI_SHARE_ALL, "a grant of more than the device");
    object(o, u.alone && u.n > 1, "a grant beside one of all memory");
    object(o, l->has.memory == GPI_MEMORY_ALL && foreign > o->truth->foreign_memory,
           "a grant of all memory beside a foreign process");
    object(o, l->has.memory && l->has.memory != GPI_MEMORY_ALL &&
                  u.memory + foreign > o->truth->usable[device],
           "a grant of more memory than the device has");
}

void gpi_outside_seated(struct gpi_oracle *o, uint32_t slot)
{
    const struct gpi_request *need = need_of(o, slot);

    for (uint32_t i = 0; need && i < o->truth->slot[slot].n_devices; i++) {
        const uint32_t device = o->truth->slot[slot].device[i];
        const struct use u = use_of(o, device, NULL);
        object(o, need->memory && (u.memory > o->truth->usable[device] || (u.alone && u.n > 1)),
               "a seat beside external work, without room");
    }
}

/* A run that a worker had before an adoption goes on beside it. */
void gpi_outside_sent(struct gpi_oracle *o, uint32_t slot)
{
    const struct gpi_request *need = need_of(o, slot);

    for (uint32_t i = 0; o->truth->pooled && i < o->truth->slot[slot].n_devices; i++) {
        const uint32_t device = o->truth->slot[slot].device[i];
        struct use u = use_of(o, device, NULL);
        bool leased = false, adopted = false;
        for (uint32_t k = 0; k < GPI_TRUTH_SLOTS; k++) {
            const struct gpi_book_lease *l = &o->lease[k];
            leased |= l->state && gpi_book_is_on(l, device);
            adopted |= l->state && gpi_book_is_on(l, device) && l->adopted;
        }
        u.share += o->slot[slot].sent || !need ? 0 : need->share;
        object(o, leased && !adopted && u.share > GPI_SHARE_ALL,
               "a send to a device that has too much");
    }
}

/* ---- nothing waits without a reason ---- */

static bool is_free(const struct gpi_oracle *o, uint32_t device)
{
    const struct use u = use_of(o, device, NULL);

    return !gpi_book_is_barred(&o->device[device]) && u.n == 0 && u.share == 0 &&
           o->truth->foreign[device] == 0 && !gpi_book_tries(o, device);
}

/* Devices that nothing uses have all that the request needs. */
static bool could_start(const struct gpi_oracle *o, const struct gpi_request *r)
{
    uint64_t cpus = r->cpus, bytes = r->host_memory;
    uint32_t n = 0;

    for (uint32_t d = 0; d < o->truth->devices; d++)
        n += is_free(o, d) && (r->memory == GPI_MEMORY_ALL || r->memory <= o->truth->usable[d]);
    for (uint32_t i = 0; i < GPI_TRUTH_SLOTS; i++) {
        cpus += o->lease[i].state ? o->lease[i].has.cpus : 0;
        bytes += o->lease[i].state ? o->lease[i].has.host_memory : 0;
    }
    return n >= r->devices && cpus <= o->truth->cpus && bytes <= o->truth->host_memory;
}

static uint32_t count_waiting(const struct gpi_oracle *o)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < o->truth->tasks; i++)
        n += o->task[i].state == GPI_BOOK_QUEUED || o->task[i].state == GPI_BOOK_LATER;
    return n;
}

/* S7, where it is simple: nothing has workers, and no other task waits. */
static void stranded(struct gpi_oracle *o, uint32_t task)
{
    const struct gpi_truth_task *truth = &o->truth->task[task];
    bool could = false;

    if (o->task[task].state != GPI_BOOK_QUEUED || o->class[truth->class].paused)
        return;
    for (uint32_t i = 0; i < truth->n_requests; i++)
        could |= could_start(o, &truth->request[i]);
    for (uint32_t i = 0; i + 1 < o->truth->slots; i++)
        if (!o->lease[i].state)
            limit(o, could, "an external task waits beside devices that nothing uses");
}

void gpi_outside_turned(struct gpi_oracle *o)
{
    const bool alone = o->truth->all_external && count_waiting(o) == 1;

    for (uint32_t i = 0; i < o->truth->tasks && o->truth->all_external; i++) {
        gpi_oracle_about(o, GPI_NOWHERE, i);
        if (o->task[i].state != GPI_BOOK_QUEUED && o->task[i].state != GPI_BOOK_LATER)
            continue;
        if (alone)
            stranded(o, i);
        if (o->task[i].state == GPI_BOOK_QUEUED)
            limit(o, gpi_oracle_lasts(o, o->outside[i].promise) > PROMISE_SLACK_NS,
                  "a promise is not kept");
    }
}
