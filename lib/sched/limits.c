/* SPDX-License-Identifier: MIT */
/*
 * limits.c - tasks that run too long, judged by the cells alone.                       [C6] [C7]
 *
 * LOOK reads when each running task exceeds its soft limit.  If a task has exceeded this limit and
 * the grace, or is about to, the core orders HOLD.  HOLD first takes back every task that the
 * worker has not begun, so that no other task can start and be hit.  If the same tasks still run
 * then, the core orders the kill.
 */
#include "base/bits.h"
#include "sched/core.h"

void gpi_limits_expect(struct gpi_sched *c, struct gpi_sched_slot *s, uint64_t at)
{
    s->check_at = gpi_time_min(s->check_at, at);
    gpi_ring_arm(c, s);
}

void gpi_limits_clear(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->check_at = GPI_NEVER;
    s->held_for = 0;
    gpi_ring_arm(c, s);
}

void gpi_limits_forget(struct gpi_sched_slot *s)
{
    s->doomed = s->running = 0;
}

/* An idle dispatcher must not wake up for a check.  Nothing else depends on a call of this. */
void gpi_limits_drop(struct gpi_sched *c)
{
    uint32_t i;

    while ((i = gpi_heap_top_item(&c->times)) < c->set.slots) {
        struct gpi_sched_slot *s = &c->slot[i];
        if (s->sent == 0)
            s->check_at = GPI_NEVER;
        if (s->armed >= gpi_time_min(s->deadline, s->check_at))
            return;
        gpi_ring_arm(c, s);
    }
}

void gpi_limits_look(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->check_at = GPI_NEVER;
    s->running = s->held_for = 0;
    gpi_ring_arm(c, s);
    if (s->sent && (s->life == GPI_LIFE_UP || s->life == GPI_LIFE_LEAVE))
        gpi_ring_order(c, s, GPI_ACT_LOOK);
}

void gpi_limits_running(struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t task, uint64_t at)
{
    const struct gpi_sched_record *t = &c->task[task];

    if (t->state != GPI_RECORD_SENT || &c->slot[t->slot] != s)
        return;
    s->running |= 1ull << t->cell;
    s->claimed |= 1ull << t->cell;
    s->soft[t->cell] = at;
}

/* ---- the time of the kill ---- */

static uint64_t cancel_time(const struct gpi_sched_slot *s, uint32_t cell)
{
    return s->cancelled >> cell & 1 ? s->cancel_at[cell] : GPI_NEVER;
}

static uint64_t kill_time(const struct gpi_sched_slot *s, enum gpi_why *ret_why)
{
    uint64_t at = GPI_NEVER;

    *ret_why = GPI_WHY_LIMIT;
    for (uint64_t left = s->running; left; left &= left - 1) {
        const uint32_t cell = gpi_lowest_bit(left);
        const uint64_t cancelled = cancel_time(s, cell);
        const uint64_t kill =
            gpi_time_add(gpi_time_min(s->soft[cell], cancelled), s->class->set.grace);
        if (kill >= at)
            continue;
        at = kill;
        *ret_why = cancelled <= s->soft[cell] ? GPI_WHY_CANCEL : GPI_WHY_LIMIT;
    }
    return at;
}

/* While the worker is stopped, the clock of its tasks does not run.  Only the grace of a cancel can
 * expire. */
static uint64_t next_cancel(const struct gpi_sched_slot *s)
{
    uint64_t at = GPI_NEVER;

    for (uint64_t left = s->running; left; left &= left - 1)
        at = gpi_time_min(at,
                          gpi_time_add(cancel_time(s, gpi_lowest_bit(left)), s->class->set.grace));
    return at;
}

static uint64_t lead(const struct gpi_sched_slot *s, enum gpi_why why)
{
    return why == GPI_WHY_LIMIT && !s->still ? s->class->set.lead : 0;
}

void gpi_limits_looked(struct gpi_sched *c, struct gpi_sched_slot *s, uint64_t again)
{
    enum gpi_why why;
    const uint64_t at = kill_time(s, &why), early = lead(s, why);

    s->check_at = gpi_time_min(s->check_at, again);
    if (at > c->now && at - c->now > early) {
        s->check_at = gpi_time_min(s->check_at, s->still ? next_cancel(s)
                                                : at == GPI_NEVER ? at
                                                                  : at - early);
    } else {
        s->held_for = s->running;
        s->running = 0;
        gpi_ring_order(c, s, GPI_ACT_HOLD);
    }
    gpi_ring_arm(c, s);
}

bool gpi_limits_held(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const bool judged = s->held_for, same = s->running == s->held_for;

    s->held_for = 0;
    if (judged && !same)
        gpi_limits_expect(c, s, c->now); /* a task has just ended: judge again */
    return judged && same;
}

/* Returns the late tasks.  The kill hits the other tasks of their batch, too. */
static uint64_t late_ones(const struct gpi_sched_slot *s, uint64_t at)
{
    uint64_t late = 0;

    for (uint64_t left = s->running; left; left &= left - 1) {
        const uint32_t cell = gpi_lowest_bit(left);
        if (s->soft[cell] <= at && s->soft[cell] < cancel_time(s, cell))
            late |= 1ull << cell;
    }
    return late;
}

static uint32_t first_sent(const struct gpi_sched_slot *s)
{
    uint32_t first = gpi_lowest_bit(s->running);

    for (uint64_t left = s->running; left; left &= left - 1)
        if (s->cell_number[gpi_lowest_bit(left)] < s->cell_number[first])
            first = gpi_lowest_bit(left);
    return first;
}

uint32_t gpi_limits_doom(struct gpi_sched *c, struct gpi_sched_slot *s, uint64_t *ret_at,
                         enum gpi_why *ret_why)
{
    const uint64_t at = kill_time(s, ret_why);

    *ret_at = at > c->now ? at : c->now;
    s->doomed = late_ones(s, *ret_at);
    return first_sent(s);
}

void gpi_limits_stopped(struct gpi_sched_slot *s)
{
    s->doomed = s->cells & ~s->cancelled;
}

void gpi_limits_spared(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->doomed = 0;
    gpi_limits_expect(c, s, c->now);
}

uint64_t gpi_limits_end(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    uint64_t at = c->now;

    for (uint64_t left = s->cells; left; left &= left - 1) {
        const uint32_t cell = gpi_lowest_bit(left);
        const uint64_t soft = s->running >> cell & 1
                                  ? s->soft[cell]
                                  : gpi_time_add(c->now, c->task[s->task[cell]].limit);
        const uint64_t end = gpi_time_add(gpi_time_min(soft, cancel_time(s, cell)),
                                          s->class->set.grace);
        at = end > at ? end : at;
    }
    return at;
}
