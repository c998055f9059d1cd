/* SPDX-License-Identifier: MIT */
/*
 * world_device.c - devices of a world: their health in the host's judgement, and their memory.
 *
 * A small model of device/health.c.  A canary follows a kill.  A failed canary takes the device out
 * of use, and several passed canaries in a row bring it back.  A survivor or an incident takes it
 * out of use, too.
 */
#include "sim/world_state.h"

/* ---- health ---- */

static void report(struct gpi_world *w, uint32_t device, enum gpi_may may, enum gpi_use use)
{
    w->device[device].may = may;
    gpi_host_feed(w, (struct gpi_sched_event){
                         .kind = GPI_EV_DEVICE, .device = device, .how = may, .what = use });
}

static void try_later(struct gpi_world *w, uint32_t device, uint64_t wait)
{
    gpi_agenda_add(w, (struct gpi_fact){ .at = w->now + wait,
                                         .kind = GPI_FACT_TRY,
                                         .device = device,
                                         .token = ++w->device[device].token });
}

static uint64_t wait_for_try(struct gpi_world *w, uint32_t device)
{
    return gpi_time_doubled(50 * GPI_MS, w->device[device].tries, 2 * GPI_S);
}

/* Takes the device out of use until canaries have passed.  A dead device stays out of use unless
 * an incident brings it back. */
static void take_out(struct gpi_world *w, uint32_t device, enum gpi_use use)
{
    struct gpi_world_device *d = &w->device[device];
    const bool dead = gpi_random_chance(&w->random, 200000);

    if (d->may == GPI_MAY_DEAD)
        return;
    d->passes = 0;
    if (dead) {
        d->token++;
        if (gpi_random_chance(&w->random, 600000))
            gpi_agenda_add(w, (struct gpi_fact){
                                  .at = w->now + gpi_world_time(w, 10 * GPI_MS, 10 * GPI_S),
                                  .kind = GPI_FACT_INCIDENT,
                                  .device = device,
                                  .word.how = GPI_MAY_OK });
    } else {
        try_later(w, device, wait_for_try(w, device));
    }
    report(w, device, dead ? GPI_MAY_DEAD : GPI_MAY_OUT, use);
}

static void passed(struct gpi_world *w, uint32_t device)
{
    struct gpi_world_device *d = &w->device[device];

    if (d->may == GPI_MAY_DOUBT)
        report(w, device, GPI_MAY_OK, GPI_USE_NONE);
    if (d->may != GPI_MAY_OUT)
        return;
    if (++d->passes < w->canary_passes) {
        try_later(w, device, 20 * GPI_MS);
        return;
    }
    d->tries = 0;
    d->token++;
    report(w, device, GPI_MAY_OK, GPI_USE_NONE);
}

static void failed(struct gpi_world *w, uint32_t device)
{
    struct gpi_world_device *d = &w->device[device];

    d->passes = 0;
    if (d->may == GPI_MAY_OUT) {
        d->tries++;
        try_later(w, device, wait_for_try(w, device));
    } else {
        take_out(w, device, GPI_USE_LEAVE);
    }
}

static void judge(struct gpi_world *w, uint32_t device, enum gpi_judge how)
{
    const uint32_t may = w->device[device].may;

    switch (how) {
    case GPI_JUDGE_PASSED: passed(w, device); break;
    case GPI_JUDGE_FAILED: failed(w, device); break;
    case GPI_JUDGE_SURVIVED:
        if (may < GPI_MAY_OUT)
            take_out(w, device, GPI_USE_LEAVE);
        break;
    default:
        if (may == GPI_MAY_OK)
            report(w, device, GPI_MAY_DOUBT, GPI_USE_NONE);
        break;
    }
}

void gpi_world_judge(struct gpi_world *w, uint32_t slot, enum gpi_judge how)
{
    const struct gpi_truth_slot *t = &w->truth.slot[slot];

    for (uint32_t i = 0; i < t->n_devices; i++)
        if (w->device[t->device[i]].watched)
            judge(w, t->device[i], how);
}

void gpi_world_returned(struct gpi_world *w, uint32_t device)
{
    if (w->device[device].may != GPI_MAY_OUT)
        return;
    w->device[device].tries = w->device[device].passes = 0;
    try_later(w, device, 0);
}

/* ---- incidents ---- */

static void incident(struct gpi_world *w, const struct gpi_fact *f)
{
    struct gpi_world_device *d = &w->device[f->device];
    const enum gpi_use use = gpi_random_chance(&w->random, 500000) ? GPI_USE_KILL : GPI_USE_LEAVE;

    if (f->word.how == GPI_MAY_OK) { /* a reading shows the device again */
        if (d->may != GPI_MAY_DEAD)
            return;
        d->tries = 0;
        if (gpi_random_chance(&w->random, 500000)) {
            try_later(w, f->device, 0);
            report(w, f->device, GPI_MAY_OUT, GPI_USE_NONE);
        } else {
            report(w, f->device, GPI_MAY_DOUBT, GPI_USE_NONE);
        }
    } else if (f->word.how == GPI_MAY_DOUBT && d->may < GPI_MAY_OUT) {
        report(w, f->device, GPI_MAY_DOUBT, use);
    } else if (f->word.how == GPI_MAY_OUT) {
        if (gpi_random_chance(&w->random, 300000))
            d->sick = true;
        gpi_agenda_add(w, (struct gpi_fact){
                              .at = w->now + gpi_world_time(w, 10 * GPI_MS, 3 * GPI_S),
                              .kind = GPI_FACT_HEALS,
                              .device = f->device });
        take_out(w, f->device, use);
    } else if (f->word.how == GPI_MAY_DEAD) { /* revoked: running tasks continue */
        take_out(w, f->device, GPI_USE_NONE);
    }
}

/* Feeds TRY each second until the core has judged a canary, or until the device changes state. */
static void try_again(struct gpi_world *w, const struct gpi_fact *f)
{
    if (f->token != w->device[f->device].token || w->device[f->device].may != GPI_MAY_OUT ||
        w->device[f->device].removed)
        return;
    gpi_agenda_add(w, (struct gpi_fact){ .at = w->now + GPI_S,
                                         .kind = GPI_FACT_TRY,
                                         .device = f->device,
                                         .token = f->token });
    gpi_host_feed(w, (struct gpi_sched_event){ .kind = GPI_EV_TRY, .device = f->device });
}

/* ---- memory ---- */

void gpi_world_read_memory(struct gpi_world *w, uint32_t slot)
{
    const uint64_t at = w->slot[slot].memory_at, reading = gpi_world_time(w, GPI_US, 20 * GPI_MS);
    uint64_t wait = at > w->now ? at - w->now + reading : reading;

    w->slot[slot].host.memory++;
    if (gpi_random_chance(&w->random, 100000)) { /* the host cannot read the memory */
        gpi_host_feed_slot(w, GPI_EV_MEMORY, slot, 0);
        return;
    }
    if (at == GPI_NEVER)
        wait = GPI_NEVER;
    gpi_world_soon(w, GPI_FACT_MEMORY, slot, w->slot[slot].host.memory, wait);
}

void gpi_device_fact(struct gpi_world *w, const struct gpi_fact *f)
{
    w->device[f->device].sick = false;
}

void gpi_device_hear(struct gpi_world *w, const struct gpi_fact *f)
{
    switch (f->kind) {
    case GPI_FACT_TRY: try_again(w, f); break;
    case GPI_FACT_INCIDENT:
        if (w->device[f->device].watched && !w->device[f->device].removed)
            incident(w, f);
        break;
    case GPI_FACT_MEMORY:
        if (f->token == w->slot[f->slot].host.memory)
            gpi_host_feed_slot(w, GPI_EV_MEMORY, f->slot, 0);
        break;
    default: break;
    }
}
