/* SPDX-License-Identifier: MIT */
/*
 * renew.c - option max_tasks_per_worker: a worker that has ended that number of attempts is due.
 *
 * The first due worker that has no task runs its cleanup, and its slot starts the next one.  That
 * slot has the turn until its next worker is ready, or until the slot is settled or parked.
 *
 * While no slot has the turn, the host sends no worker more than its number: a due worker soon has
 * no task.  While a slot has the turn, the host sends the others tasks beyond their number: they
 * could not be replaced now, and a task must not wait for a start while another worker is idle.
 */
#include "host/dispatcher.h"
#include "host/event.h"
#include "host/slot.h"

bool gpi_renew_due(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return d->set.max_tasks_per_worker && s->served >= d->set.max_tasks_per_worker;
}

uint32_t gpi_renew_left(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    const uint64_t had = (uint64_t)s->served + s->sent, most = d->set.max_tasks_per_worker;

    if (most == 0 || d->renewing)
        return UINT32_MAX;
    return had < most ? (uint32_t)(most - had) : 0;
}

static bool is_idle(const struct gpi_slot *s)
{
    return s->state == GPUD_SLOT_READY && s->kill == GPI_KILL_NO && !s->keeper_lost && !s->leaving;
}

/* Of several the worker that has ended most. */
static struct gpi_slot *next_in_turn(gpud_dispatcher *d)
{
    struct gpi_slot *next = NULL;

    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (is_idle(s) && gpi_renew_due(d, s) && (!next || s->served > next->served))
            next = s;
    }
    return next;
}

void gpi_renew_step(gpud_dispatcher *d)
{
    struct gpi_slot *s = d->renewing || gpi_nothing_to_come(d) ? NULL : next_in_turn(d);

    if (!s)
        return;
    gpi_log(d, GPUD_LEVEL_DEBUG, s->index,
            "slot %u: worker %d has ended %u tasks; the host replaces it (max_tasks_per_worker)",
            s->index, s->pid, s->served);
    d->renewing = s;
    gpi_slot_wind_down(d, s);
}

/* The turn ends when the slot has a worker again, or is to have none for now. */
void gpi_renew_entered(gpud_dispatcher *d, const struct gpi_slot *s, enum gpud_slot_state state)
{
    const bool gone = state == GPUD_SLOT_STOPPED || state == GPUD_SLOT_FAILED ||
                      state == GPUD_SLOT_QUARANTINED || s->parked;

    if (d->renewing == s && (state == GPUD_SLOT_READY || gone))
        d->renewing = NULL;
}
