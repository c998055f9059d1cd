/* SPDX-License-Identifier: MIT */
/*
 * slot_life.c - the state of the core that a slot's flags stand for, and whether that state has the
 * deadline that it needs.
 */
#include "harness.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/device.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/slot.h"

#define STATE(name) .state = GPUD_SLOT_##name
#define WORKER(name) STATE(name), .started = true
#define KILL(name) .kill = GPI_KILL_##name

static const struct {
    struct gpi_slot slot;
    enum gpi_life life;
} lives[] = {
    { { STATE(STARTING) }, GPI_LIFE_WAIT },
    { { STATE(STARTING), .keeper_asked = true }, GPI_LIFE_WAIT },
    { { STATE(STARTING), .keeper_lost = true, .vacating = true }, GPI_LIFE_WAIT },
    { { STATE(STARTING), .trying = true }, GPI_LIFE_WAIT },
    { { WORKER(STARTING) }, GPI_LIFE_BOOT },
    { { WORKER(STARTING), .answered = true }, GPI_LIFE_SETUP },
    { { WORKER(READY) }, GPI_LIFE_UP },
    { { WORKER(BUSY) }, GPI_LIFE_UP },
    { { WORKER(BUSY), .leaving = true }, GPI_LIFE_LEAVE },
    { { WORKER(READY), .leaving = true }, GPI_LIFE_LEAVE },
    { { WORKER(DRAINING), .leaving = true }, GPI_LIFE_END },
    /* the end of a worker */
    { { WORKER(BUSY), KILL(HARD) }, GPI_LIFE_DOOMED },
    { { WORKER(BUSY), KILL(CANCEL), .leaving = true }, GPI_LIFE_KILL },
    { { WORKER(STARTING), KILL(CLOSE), .leaving = true }, GPI_LIFE_KILL },
    { { WORKER(READY), KILL(SETUP) }, GPI_LIFE_KILL },
    { { WORKER(DRAINING), KILL(CLEANUP) }, GPI_LIFE_KILL },
    { { WORKER(BUSY), .sweeping = true }, GPI_LIFE_SWEEP },
    { { WORKER(BUSY), .sweeping = true, KILL(DEVICE) }, GPI_LIFE_SWEEP },
    { { WORKER(BUSY), .keeper_lost = true }, GPI_LIFE_LOST },
    { { WORKER(BUSY), .keeper_lost = true, KILL(HARD) }, GPI_LIFE_LOST },
    { { WORKER(BUSY), .keeper_lost = true, .sweeping = true }, GPI_LIFE_LOST },
    { { WORKER(QUARANTINED), .survivor = true, .useless = true }, GPI_LIFE_STUCK },
    { { WORKER(QUARANTINED), .survivor = true, .useless = true, .removed = true },
      GPI_LIFE_STUCK },
    { { WORKER(QUARANTINED), .survivor = true, .useless = true, .keeper_lost = true },
      GPI_LIFE_STUCK },
    /* no worker */
    { { STATE(BACKOFF) }, GPI_LIFE_BACKOFF },
    { { STATE(BACKOFF), .parked = true }, GPI_LIFE_PARKED },
    { { STATE(STOPPED), .parked = true, .keeper_asked = true }, GPI_LIFE_PARKED },
    { { STATE(QUARANTINED), .parked = true, .useless = true }, GPI_LIFE_PARKED },
    { { STATE(FAILED), .parked = true, .useless = true }, GPI_LIFE_PARKED },
    { { STATE(FAILED), .useless = true }, GPI_LIFE_FAILED },
    { { STATE(STOPPED), .removed = true, .useless = true, .keeper_lost = true },
      GPI_LIFE_REMOVED },
    /* flags that contradict each other */
    { { STATE(READY) }, GPI_LIVES },
    { { STATE(STOPPED) }, GPI_LIVES },
    { { STATE(STARTING), KILL(CLOSE) }, GPI_LIVES },
    { { STATE(STARTING), .sweeping = true }, GPI_LIVES },
    { { STATE(BACKOFF), .leaving = true }, GPI_LIVES },
    { { STATE(BACKOFF), .useless = true }, GPI_LIVES },
    { { STATE(BACKOFF), .removed = true, .useless = true }, GPI_LIVES },
    { { STATE(STARTING), .parked = true }, GPI_LIVES },
    { { STATE(FAILED) }, GPI_LIVES },
    { { STATE(QUARANTINED), .useless = true }, GPI_LIVES },
    { { WORKER(STOPPED) }, GPI_LIVES },
    { { WORKER(STARTING), .leaving = true }, GPI_LIVES },
    { { WORKER(BUSY), .parked = true }, GPI_LIVES },
    { { WORKER(STARTING), .vacating = true }, GPI_LIVES },
    { { WORKER(STARTING), .keeper_asked = true, .keeper_lost = true }, GPI_LIVES },
    { { WORKER(STOPPED), KILL(CLOSE) }, GPI_LIVES },
    { { WORKER(QUARANTINED), .survivor = true, .useless = true, KILL(CLOSE) }, GPI_LIVES },
    { { WORKER(BUSY), .survivor = true }, GPI_LIVES },
};
enum { LIVES = sizeof lives / sizeof lives[0] };

/* One slot on a CPU, with limits of some seconds. */
static gpud_dispatcher *one_slot(struct gpi_slot **ret_slot)
{
    gpud_dispatcher *d = calloc(1, sizeof *d);

    T_CHECK(d);
    d->slot = calloc(1, sizeof *d->slot);
    d->dev.row = calloc(1, sizeof *d->dev.row);
    T_CHECK(d->slot && d->dev.row);
    d->dev.row[0].id.kind = GPUD_DEVICE_CPU;
    d->n_slots = 1;
    d->set.setup_limit = d->set.cleanup_limit = d->set.kill_limit = 7 * GPI_S;
    d->set.restart.cap = 7 * GPI_S;
    *ret_slot = d->slot;
    return d;
}

static void end(gpud_dispatcher *d)
{
    free(d->slot);
    free(d->dev.row);
    free(d);
}

static void take(struct gpi_slot *s, size_t i)
{
    *s = lives[i].slot;
    s->state_deadline = s->timer = GPI_NEVER;
}

T_CASE(flags_make_a_state)
{
    struct gpi_slot *s;
    gpud_dispatcher *d = one_slot(&s);

    for (size_t i = 0; i < LIVES; i++) {
        take(s, i);
        if (gpi_slot_life(d, s) != lives[i].life)
            T_FAIL("row %zu is state %d, not %d", i, (int)gpi_slot_life(d, s), (int)lives[i].life);
    }
    end(d);
}

/* Each of the states but OFF, which no slot of a host is in, and STOPPED has a row. */
T_CASE(every_state_has_flags)
{
    uint32_t seen = 1u << GPI_LIFE_OFF | 1u << GPI_LIFE_STOPPED | 1u << GPI_LIVES;

    for (size_t i = 0; i < LIVES; i++)
        seen |= 1u << lives[i].life;
    T_EQ(seen, (2u << GPI_LIVES) - 1);
}

T_CASE(stopped_at_the_end)
{
    struct gpi_slot *s;
    gpud_dispatcher *d = one_slot(&s);

    d->closing = true;
    s->state = GPUD_SLOT_STOPPED;
    T_EQ(gpi_slot_life(d, s), GPI_LIFE_STOPPED);
    s->parked = true;
    T_EQ(gpi_slot_life(d, s), GPI_LIFE_STOPPED);
    d->unended = 1;
    T_EQ(gpi_slot_life(d, s), GPI_LIFE_PARKED);
    end(d);
}

static bool ends_by_time(enum gpi_life life)
{
    switch (life) {
    case GPI_LIFE_BOOT:
    case GPI_LIFE_SETUP:
    case GPI_LIFE_END:
    case GPI_LIFE_DOOMED:
    case GPI_LIFE_KILL:
    case GPI_LIFE_SWEEP:
    case GPI_LIFE_LOST:
    case GPI_LIFE_BACKOFF:
        return true;
    default:
        return false;
    }
}

/* A state that time ends has a deadline, which a timer awaits. */
T_CASE(deadlines)
{
    struct gpi_slot *s;
    gpud_dispatcher *d = one_slot(&s);

    for (size_t i = 0; i < LIVES; i++) {
        const bool can_be = lives[i].life != GPI_LIVES;
        take(s, i);
        T_EQ(gpi_lives_hold(d, s), can_be && !ends_by_time(lives[i].life));
        s->state_deadline = 9 * GPI_S;
        T_EQ(gpi_lives_hold(d, s), can_be && !ends_by_time(lives[i].life));
        s->timer = 9 * GPI_S;
        T_EQ(gpi_lives_hold(d, s), can_be);
        s->timer = GPI_S;
        T_EQ(gpi_lives_hold(d, NULL), can_be);
    }
    end(d);
}

/* A limit that is GPUD_NEVER needs none. */
T_CASE(limits_without_end)
{
    struct gpi_slot *s;
    gpud_dispatcher *d = one_slot(&s);

    d->set.cleanup_limit = d->set.kill_limit = d->set.restart.cap = GPI_NEVER;
    for (size_t i = 0; i < LIVES; i++) {
        take(s, i);
        T_EQ(gpi_lives_hold(d, NULL), lives[i].life != GPI_LIVES);
    }
    end(d);
}

/* Before the report of a start kill_limit bounds the wait, then setup_limit.  A program has its own
 * limit until it calls gpud_init. */
T_CASE(limit_of_a_start)
{
    struct gpi_slot *s;
    gpud_dispatcher *d = one_slot(&s);

    d->set.setup_limit = GPI_NEVER;
    *s = (struct gpi_slot){ WORKER(STARTING), .answered = true };
    s->state_deadline = s->timer = GPI_NEVER;
    T_CHECK(!gpi_lives_hold(d, s));
    s->pid = 77;
    T_CHECK(gpi_lives_hold(d, s));
    s->answered = false;
    T_CHECK(!gpi_lives_hold(d, s));
    end(d);
}
