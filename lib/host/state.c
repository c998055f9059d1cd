/* SPDX-License-Identifier: MIT */
/*
 * state.c - the state of a slot that the user sees:
 *
 *   STARTING  a keeper is requested, a turn is awaited (setup_concurrency), a worker is started,
 *             setup runs
 *   READY     a worker without tasks          BUSY  a worker with tasks
 *   DRAINING  END sent: cleanup runs          STOPPED  none, and none wanted
 *   BACKOFF   waiting before the next start   FAILED  given up     QUARANTINED  unkillable
 *   UNLOADING DRAINING, of a pooled dispatcher
 *   COOLING   the worker is gone, and its memory not free again, of a pooled dispatcher
 *
 * While a worker is dying the user sees the state before.
 */
#include <stdio.h>

#include "gpudispatch/sched.h"
#include "host/act.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/slot.h"
#include "wire/control.h"

static void tell_state(gpud_dispatcher *d, const struct gpi_slot *s)
{
    struct gpi_note *n = d->set.slot_events ? gpi_note_new(d, GPUD_EVENT_SLOT, true) : NULL;

    if (!n)
        return;
    n->slot = s->index;
    n->state = s->state;
    n->incarnation = s->incarnation;
    gpi_note_push(d, n);
}

static void enter(gpud_dispatcher *d, struct gpi_slot *s, enum gpud_slot_state state)
{
    const bool to_and_fro = (s->state == GPUD_SLOT_READY && state == GPUD_SLOT_BUSY) ||
                            (s->state == GPUD_SLOT_BUSY && state == GPUD_SLOT_READY);

    if (s->state == state)
        return;
    if (s->state == GPUD_SLOT_READY)
        s->wait_time += d->now - s->idle_since;
    if (state == GPUD_SLOT_READY)
        s->idle_since = d->now;
    s->state = state;
    s->since = d->now;
    if (state == GPUD_SLOT_BUSY && !d->dev.roused && gpi_slot_is_read(d, s))
        gpi_devices_rouse(d);
    if (to_and_fro)
        return;
    gpi_ready_changed(d);
    tell_state(d, s);
}

void gpi_slot_loaded(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (s->state == GPUD_SLOT_READY && s->sent)
        enter(d, s, GPUD_SLOT_BUSY);
    else if (s->state == GPUD_SLOT_BUSY && !s->sent)
        enter(d, s, GPUD_SLOT_READY);
}

/* Returns the first device of the slot that bars it until a reading brings it back, or NULL. */
static const struct gpi_known_device *dead_device(const gpud_dispatcher *d,
                                                  const struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct gpi_known_device *k = &d->dev.row[s->devices[i]];
        if (k->may == GPI_MAY_DEAD)
            return k;
    }
    return NULL;
}

static void enter_parked(gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_known_device *dead = dead_device(d, s);
    const bool was_hopeless = gpi_slot_hopeless(s);
    char why[GPI_FAIL_TEXT_SIZE];

    if (!dead) {
        enter(d, s, gpi_slot_drains(d, s) ? GPUD_SLOT_STOPPED : GPUD_SLOT_BACKOFF);
        return;
    }
    snprintf(why, sizeof why, "%s is %s: %s", dead->id.name, gpud_health_name(dead->health.state),
             dead->health.evidence);
    gpi_slot_failure(s, why);
    enter(d, s, GPUD_SLOT_QUARANTINED);
    if (!was_hopeless)
        gpi_slot_lost_hope(d, s);
}

void gpi_slot_barred(gpud_dispatcher *d, uint32_t device)
{
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (gpi_slot_life(d, &d->slot[i]) == GPI_LIFE_PARKED && gpi_slot_has(&d->slot[i], device))
            enter_parked(d, &d->slot[i]);
}

void gpi_slot_out(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (s->gone)
        return;
    s->gone = true;
    d->n_gone++;
    atomic_fetch_sub(d->places, 1);
    for (uint32_t i = 0; i < s->n_devices; i++)
        d->dev.row[s->devices[i]].slots--;
}

void gpi_device_leaves(gpud_dispatcher *d, uint32_t device)
{
    if (!gpi_sched_is_removed(d->core, device))
        gpi_hear_device(d, device, GPI_EV_REMOVE);
    gpi_slot_barred(d, device);
}

/* The core moves a STUCK slot only when its worker is gone, but the slot leaves the roster now. */
void gpi_slot_strike_off(gpud_dispatcher *d, struct gpi_slot *s)
{
    bool removed = false;

    for (uint32_t i = 0; i < s->n_devices; i++)
        removed |= gpi_sched_is_removed(d->core, s->devices[i]);
    if (!removed)
        return;
    gpi_slot_out(d, s);
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (d->dev.row[s->devices[i]].slots == 0)
            gpi_device_leaves(d, s->devices[i]);
}

static void enter_removed(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_slot_out(d, s);
    gpi_slot_failure(s, "its device was removed");
    enter(d, s, GPUD_SLOT_STOPPED);
    gpi_slot_lost_hope(d, s);
}

/* Pooled: its worker has passed setup, or is gone. */
static void count_up(gpud_dispatcher *d, struct gpi_slot *s, bool is_up)
{
    struct gpi_class *c = gpi_slot_class(d, s);

    if (!d->set.pooled || s->is_up == is_up)
        return;
    s->is_up = is_up;
    c->up = c->up + is_up - !is_up;
    c->loads &= !is_up;
    if (is_up && c->failed && !gpi_sched_has_failed(d->core, s->class)) { /* it was late */
        c->failed = false;
        c->why = NULL;
        gpi_class_tell(d, s->class, GPUD_CHANGE_RESUMED, "");
    }
    if (c->up == is_up)
        gpi_class_tell(d, s->class, is_up ? GPUD_CHANGE_LOADED : GPUD_CHANGE_UNLOADED, "");
}

static void enter_stuck(gpud_dispatcher *d, struct gpi_slot *s)
{
    count_up(d, s, false);
    if (gpi_sched_has_keeper(d->core, s->index))
        (void)gpi_channel_tell(s, GPI_CTL_KILL, true);
    s->incarnation = gpi_sched_incarnation(d->core, s->index); /* discards later messages */
    enter(d, s, GPUD_SLOT_QUARANTINED);
    gpi_slot_lost_hope(d, s);
    gpi_slot_strike_off(d, s);
}

static void enter_failed(gpud_dispatcher *d, struct gpi_slot *s)
{
    enter(d, s, GPUD_SLOT_FAILED);
    gpi_slot_lost_hope(d, s);
}

static void enter_backoff(gpud_dispatcher *d, struct gpi_slot *s)
{
    const uint32_t deaths = gpi_sched_task_deaths(d->core, s->index);
    char why[96];

    snprintf(why, sizeof why, "%u workers in a row died in a task, while other slots succeeded",
             deaths);
    if (gpi_sched_failures(d->core, s->index) == 0)
        gpi_slot_failure(s, why);
    enter(d, s, GPUD_SLOT_BACKOFF);
}

static void fail_class(gpud_dispatcher *d, const struct gpi_slot *s)
{
    gpi_class_failed(d, s);
    gpi_class_tell(d, s->class, GPUD_CHANGE_FAILED, s->last_failure);
}

/* Pooled: the seat is free. */
static void enter_off(gpud_dispatcher *d, struct gpi_slot *s)
{
    count_up(d, s, false);
    if (gpi_sched_has_failed(d->core, s->class) && !gpi_slot_class(d, s)->failed)
        fail_class(d, s);
    enter(d, s, GPUD_SLOT_STOPPED);
    gpi_slot_unseat(d, s);
}

void gpi_slot_entered(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_life life)
{
    switch (life) {
    case GPI_LIFE_WAIT:
    case GPI_LIFE_BOOT:
    case GPI_LIFE_SETUP:
        enter(d, s, GPUD_SLOT_STARTING);
        break;
    case GPI_LIFE_UP:
    case GPI_LIFE_LEAVE:
        count_up(d, s, true);
        enter(d, s, s->sent ? GPUD_SLOT_BUSY : GPUD_SLOT_READY);
        break;
    case GPI_LIFE_END:
        enter(d, s, d->set.pooled ? GPUD_SLOT_UNLOADING : GPUD_SLOT_DRAINING);
        break;
    case GPI_LIFE_COOL:
        count_up(d, s, false);
        enter(d, s, GPUD_SLOT_COOLING);
        break;
    case GPI_LIFE_OFF:
        enter_off(d, s);
        break;
    case GPI_LIFE_BACKOFF:
        enter_backoff(d, s);
        break;
    case GPI_LIFE_PARKED:
        if (gpi_slot_life(d, s) == life) /* else its canary has just brought it back */
            enter_parked(d, s);
        gpi_devices_rouse(d); /* a canary may be due */
        break;
    case GPI_LIFE_FAILED:
        enter_failed(d, s);
        break;
    case GPI_LIFE_STUCK:
        enter_stuck(d, s);
        break;
    case GPI_LIFE_STOPPED:
        count_up(d, s, false);
        enter(d, s, GPUD_SLOT_STOPPED);
        break;
    case GPI_LIFE_REMOVED:
        enter_removed(d, s);
        break;
    default:
        break; /* the worker is dying */
    }
}
