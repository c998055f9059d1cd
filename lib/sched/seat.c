/* SPDX-License-Identifier: MIT */
/* seat.c - keepers, and the spawner that makes them. */
#include "sched/core.h"

#define KEEPERS_IN_VAIN 3u /* replaced at once; one more is a failure of the slot */

static void set(struct gpi_sched *c, struct gpi_sched_slot *s, enum gpi_keeper keeper)
{
    s->seat.keeper = (uint8_t)keeper;
    s->seat.by = GPI_NEVER;
    s->seat.extended = false;
    gpi_ring_arm_seat(c, s);
    c->undecided = true;
}

void gpi_seat_ask(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    set(c, s, GPI_KEEPER_ASKED);
    c->makes++;
    gpi_ring_order(c, s, GPI_ACT_MAKE);
}

void gpi_seat_begun(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->seat.by = gpi_time_add(c->now, c->set.reply_limit);
    gpi_ring_arm_seat(c, s);
}

void gpi_seat_replied(struct gpi_sched *c, struct gpi_sched_slot *s, bool up)
{
    if (s->seat.keeper != GPI_KEEPER_ASKED)
        return;
    c->makes--;
    s->seat.used = false;
    set(c, s, up ? GPI_KEEPER_UP : GPI_KEEPER_NONE);
}

/* The proof of the keeper's end must arrive in this time.  With the keeper, every process that it
 * had started is gone, too. */
static void await_end(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->seat.by = gpi_time_add(c->now, gpi_devices_kill_limit(c, s->device, s->n_devices));
    gpi_ring_arm_seat(c, s);
}

void gpi_seat_dismiss(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (s->seat.keeper != GPI_KEEPER_UP)
        return;
    set(c, s, GPI_KEEPER_DISMISSED);
    await_end(c, s);
    gpi_ring_order(c, s, GPI_ACT_DISMISS);
}

void gpi_seat_lost(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (s->seat.keeper != GPI_KEEPER_UP)
        return;
    set(c, s, GPI_KEEPER_LOST);
    await_end(c, s);
}

void gpi_seat_used(struct gpi_sched_slot *s)
{
    s->seat.used = true;
    s->seat.in_vain = 0;
}

void gpi_seat_gone(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    set(c, s, GPI_KEEPER_NONE);
}

bool gpi_seat_wasted(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const bool vain = s->seat.keeper != GPI_KEEPER_DISMISSED && !s->seat.used;

    set(c, s, GPI_KEEPER_NONE);
    return vain && s->seat.in_vain++ >= KEEPERS_IN_VAIN;
}

void gpi_seat_wanted(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const bool lost = s->seat.keeper == GPI_KEEPER_LOST || s->seat.keeper == GPI_KEEPER_DISMISSED;

    if (lost && s->seat.by == GPI_NEVER)
        await_end(c, s);
}

static void drop_spawner(struct gpi_sched *c)
{
    if (c->spawner_dropped || c->spawner_gone)
        return;
    c->spawner_dropped = true;
    gpi_ring_add(c, (struct gpi_sched_action){ .kind = GPI_ACT_DROP_SPAWNER,
                                               .slot = GPI_NOWHERE,
                                               .device = GPI_NOWHERE });
}

/* A spawner that does not reply may live, but it serves no request: the core drops it. */
bool gpi_seat_timer(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const bool late = c->now - s->seat.by > GPI_LATE_NS && !s->seat.extended;
    const bool asked = s->seat.keeper == GPI_KEEPER_ASKED;

    s->seat.extended |= late;
    s->seat.by = late ? gpi_time_add(c->now, GPI_LATE_EXTRA_NS) : GPI_NEVER;
    gpi_ring_arm_seat(c, s);
    if (late)
        return false;
    if (asked)
        drop_spawner(c);
    else if (gpi_slot_has_worker(s))
        await_end(c, s); /* the core awaits the worker's end this long, too: later */
    return !asked;
}

void gpi_spawner_gone(struct gpi_sched *c)
{
    c->spawner_gone = true;
    c->undecided = true;
}

/* No reply to MAKE and no report about the keeper can arrive any more. */
void gpi_seat_orphaned(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (s->seat.keeper == GPI_KEEPER_ASKED)
        c->makes--;
    if (s->seat.keeper != GPI_KEEPER_UP)
        set(c, s, GPI_KEEPER_NONE);
}
