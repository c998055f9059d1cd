/* SPDX-License-Identifier: MIT */
/*
 * life.c - which state of the core (sched/event.h) a slot is in, derived from the flags of slot.h.
 *
 * The flags count in this order:
 *
 *   survivor      the slot is out of use for good.  `started` stays set
 *   started       the slot has a worker.  If several things end it, the most final one counts:
 *     keeper_lost   the keeper reads no orders any more, and earlier ones do not matter
 *     sweeping      the worker is dead: a kill that is ordered now changes nothing
 *     kill          the keeper may still spare the worker if it is HARD, else the kill is final
 *     state         `answered` divides STARTING, `leaving` READY and BUSY
 *   removed       the slot has no worker and wants none
 *   parked        the public state only names the reason: STOPPED, BACKOFF or QUARANTINED.  If it
 *                 is FAILED, the user has returned one device of the slot while another one still
 *                 bars it.  When the dispatcher winds down, STOPPED is the end
 *   state         STARTING waits for a worker
 *
 * `keeper_lost` without a worker makes no state: the slot waits for its next keeper or wants none.
 * `useless` follows from the other flags, and `watched` and `trying` decide nothing here.
 */
#include "base/clock.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/slot.h"
#include "sched/event.h"

/* ---- the state ---- */

static enum gpi_life of_survivor(const struct gpi_slot *s)
{
    const bool ends = s->kill != GPI_KILL_NO || s->sweeping || s->leaving || s->parked;

    return s->state == GPUD_SLOT_QUARANTINED && !ends ? GPI_LIFE_STUCK : GPI_LIVES;
}

static enum gpi_life of_state(const struct gpi_slot *s)
{
    switch (s->state) {
    case GPUD_SLOT_STARTING:
        return s->answered ? GPI_LIFE_SETUP : GPI_LIFE_BOOT;
    case GPUD_SLOT_READY:
    case GPUD_SLOT_BUSY:
        return s->leaving ? GPI_LIFE_LEAVE : GPI_LIFE_UP;
    case GPUD_SLOT_DRAINING:
        return GPI_LIFE_END;
    default:
        return GPI_LIVES;
    }
}

static enum gpi_life of_worker(const struct gpi_slot *s)
{
    const enum gpi_life life = of_state(s);

    if (life == GPI_LIVES || s->removed || s->parked || s->vacating || s->keeper_asked)
        return GPI_LIVES;
    if (s->keeper_lost)
        return GPI_LIFE_LOST;
    if (s->sweeping)
        return GPI_LIFE_SWEEP;
    if (s->kill != GPI_KILL_NO)
        return s->kill == GPI_KILL_HARD ? GPI_LIFE_DOOMED : GPI_LIFE_KILL;
    /* A worker that is to leave during its start is killed. */
    return s->leaving && s->state == GPUD_SLOT_STARTING ? GPI_LIVES : life;
}

static enum gpi_life of_parked(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    switch (s->state) {
    case GPUD_SLOT_STOPPED:
        return gpi_winds_down(d) ? GPI_LIFE_STOPPED : GPI_LIFE_PARKED;
    case GPUD_SLOT_BACKOFF:
    case GPUD_SLOT_FAILED:
    case GPUD_SLOT_QUARANTINED:
        return GPI_LIFE_PARKED;
    default:
        return GPI_LIVES;
    }
}

static enum gpi_life of_vacant(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    if (s->kill != GPI_KILL_NO || s->sweeping || s->leaving)
        return GPI_LIVES;
    if (s->removed)
        return s->state == GPUD_SLOT_STOPPED ? GPI_LIFE_REMOVED : GPI_LIVES;
    if (s->parked)
        return of_parked(d, s);
    switch (s->state) {
    case GPUD_SLOT_STARTING:
        return GPI_LIFE_WAIT;
    case GPUD_SLOT_BACKOFF:
        return GPI_LIFE_BACKOFF;
    case GPUD_SLOT_FAILED:
        return GPI_LIFE_FAILED;
    case GPUD_SLOT_STOPPED:
        return d->closing ? GPI_LIFE_STOPPED : GPI_LIVES;
    default:
        return GPI_LIVES;
    }
}

enum gpi_life gpi_slot_life(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    const bool useless = s->removed || s->state == GPUD_SLOT_FAILED ||
                         s->state == GPUD_SLOT_QUARANTINED;

    if (s->useless != useless)
        return GPI_LIVES;
    return s->survivor ? of_survivor(s) : s->started ? of_worker(s) : of_vacant(d, s);
}

/* ---- its deadline ---- */

/*
 * The limit of a stay in the state; GPI_NEVER: there is none.  The user can set each of these
 * limits to GPUD_NEVER, and then the state has no deadline.  Until the keeper has reported the
 * start of its worker, the host waits for this report, for kill_limit.  A backoff is at most
 * backoff_cap.
 */
static uint64_t bound(const gpud_dispatcher *d, const struct gpi_slot *s, enum gpi_life life)
{
    switch (life) {
    case GPI_LIFE_BOOT:
    case GPI_LIFE_SETUP:
        return s->pid ? gpi_start_deadline(d, s) : gpi_kill_limit(d, s);
    case GPI_LIFE_END:
        return d->set.cleanup_limit;
    case GPI_LIFE_DOOMED:
    case GPI_LIFE_KILL:
    case GPI_LIFE_SWEEP:
    case GPI_LIFE_LOST:
        return gpi_kill_limit(d, s);
    case GPI_LIFE_BACKOFF:
        return d->set.restart.cap;
    default:
        return GPI_NEVER;
    }
}

/* A deadline counts only if the heap of timers has it, or an earlier time of the slot. */
static bool has_deadline(const struct gpi_slot *s)
{
    return s->state_deadline != GPI_NEVER && s->timer <= s->state_deadline;
}

static bool holds(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    const enum gpi_life life = gpi_slot_life(d, s);

    return life != GPI_LIVES && (bound(d, s, life) == GPI_NEVER || has_deadline(s));
}

bool gpi_lives_hold(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    if (s)
        return holds(d, s);
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (!holds(d, &d->slot[i]))
            return false;
    return true;
}
