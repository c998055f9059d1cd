/* SPDX-License-Identifier: MIT */
/* life.c - moves a slot to a state, and orders the start, end or kill of its worker. */
#include "sched/core.h"

/* ---- the effect of a state on the other records ---- */

bool gpi_life_is_hopeless(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    switch (s->life) {
    case GPI_LIFE_OFF:
    case GPI_LIFE_FAILED:
    case GPI_LIFE_STUCK:
    case GPI_LIFE_REMOVED:
        return true;
    case GPI_LIFE_PARKED:
        return gpi_devices_are(c, s, GPI_MAY_DEAD);
    default:
        return false;
    }
}

bool gpi_life_is_settled(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    return s->life == GPI_LIFE_STOPPED || gpi_life_is_hopeless(c, s);
}

bool gpi_life_is_in_setup(const struct gpi_sched_slot *s)
{
    return s->life == GPI_LIFE_BOOT || s->life == GPI_LIFE_SETUP ||
           (gpi_slot_is_dying(s) && s->part == GPI_PART_SETUP);
}

/* The slot's turn to renew ends when it has a worker again, or is to have none for now. */
static void end_turn(struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    const bool over = s->life == GPI_LIFE_UP || s->life == GPI_LIFE_PARKED ||
                      gpi_life_is_settled(c, s);

    if (s->class->renewing != gpi_slot_number(c, s) + 1 || !over)
        return;
    s->class->renewing = 0;
    gpi_spread_refresh_class(c, s->class);
}

void gpi_life_wait_until(struct gpi_sched *c, struct gpi_sched_slot *s, uint64_t at)
{
    s->deadline = at;
    s->extended = false;
    gpi_ring_arm(c, s);
}

void gpi_life_enter(struct gpi_sched *c, struct gpi_sched_slot *s, enum gpi_life life)
{
    c->waiting = c->waiting + (life == GPI_LIFE_WAIT) - (s->life == GPI_LIFE_WAIT);
    s->life = (uint8_t)life;
    s->since = c->now;
    if (life == GPI_LIFE_WAIT && s->memory_by <= c->now)
        s->owed = false; /* it was parked until then */
    s->deadline = life == GPI_LIFE_WAIT && s->owed ? s->memory_by : GPI_NEVER;
    s->extended = false;
    c->undecided |= c->waiting > 0;
    gpi_spread_refresh(c, s);
    gpi_limits_clear(c, s);
    end_turn(c, s);
    gpi_ring_touch(c, s);
    gpi_ring_add_for(c, s, (struct gpi_sched_action){ .kind = GPI_ACT_LIFE, .how = life });
}

bool gpi_life_late(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const bool replies = gpi_slot_has_worker(s); /* else the slot waits for a time alone */

    if (!replies || s->extended || c->now - s->deadline <= GPI_LATE_NS)
        return false;
    gpi_life_wait_until(c, s, gpi_time_add(c->now, GPI_LATE_EXTRA_NS));
    s->extended = true;
    return true;
}

/* ---- the start of a worker ---- */

static void limit_start(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->start_limit = s->class->set.setup_limit;
    if (s->life == GPI_LIFE_BOOT)
        s->start_limit = gpi_time_min(s->start_limit, s->class->set.boot_limit);
    if (s->canary == GPI_START_ONLY)
        s->start_limit = gpi_time_min(s->start_limit, c->set.canary_limit);
    gpi_life_wait_until(c, s, gpi_time_add(s->began, s->start_limit));
}

static enum gpi_start_kind start_kind(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    if (s->only)
        return GPI_START_ONLY;
    return gpi_devices_are(c, s, GPI_MAY_DOUBT) ? GPI_START_FIRST : GPI_START_PLAIN;
}

void gpi_life_start(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->incarnation++;
    s->canary = (uint8_t)start_kind(c, s);
    s->why = GPI_WHY_NO;
    s->part = GPI_PART_SETUP;
    s->leaving = s->still = false;
    s->up_at = 0;
    gpi_tasks_new_worker(s);
    gpi_life_enter(c, s, s->class->set.executed ? GPI_LIFE_BOOT : GPI_LIFE_SETUP);
    gpi_ring_add_for(c, s,
                     (struct gpi_sched_action){
                         .kind = GPI_ACT_START, .incarnation = s->incarnation, .how = s->canary });
}

/* The caller could not send START: the worker never existed. */
void gpi_life_unstart(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->incarnation--;
    gpi_life_enter(c, s, GPI_LIFE_WAIT);
}

void gpi_life_answered(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    gpi_life_enter(c, s, GPI_LIFE_SETUP);
    limit_start(c, s);
}

void gpi_life_up(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->part = GPI_PART_RUN;
    s->up_at = c->now;
    gpi_life_enter(c, s, GPI_LIFE_UP);
}

void gpi_life_setup_over(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->part = GPI_PART_RUN;
    c->undecided |= c->waiting > 0;
}

void gpi_life_only(struct gpi_sched *c, struct gpi_sched_slot *s, bool only)
{
    if (s->only == only)
        return;
    s->only = only;
    gpi_devices_set_trying(c, s, only);
}

void gpi_life_judge(struct gpi_sched *c, struct gpi_sched_slot *s, enum gpi_judge how)
{
    if (how == GPI_JUDGE_PASSED || how == GPI_JUDGE_FAILED)
        s->canary = GPI_START_PLAIN;
    if (gpi_devices_watched(c, s))
        gpi_ring_add_for(c, s, (struct gpi_sched_action){ .kind = GPI_ACT_JUDGE, .how = how });
}

/* ---- the end of a worker ---- */

void gpi_life_leave(struct gpi_sched *c, struct gpi_sched_slot *s, bool leaving)
{
    s->leaving = leaving;
    if (s->life == GPI_LIFE_DOOMED)
        return;
    gpi_life_enter(c, s, leaving ? GPI_LIFE_LEAVE : GPI_LIFE_UP);
    if (s->sent == 0)
        return;
    if (leaving)
        gpi_ring_order(c, s, GPI_ACT_HOLD);
    gpi_limits_expect(c, s, c->now); /* entering the state cleared the time of the next LOOK */
}

void gpi_life_end(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->part = GPI_PART_CLEANUP;
    gpi_life_enter(c, s, GPI_LIFE_END);
    gpi_ring_order(c, s, GPI_ACT_END);
}

void gpi_life_renew(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    gpi_ring_note(c, s, GPI_NOTE_RENEWED);
    s->class->renewing = gpi_slot_number(c, s) + 1;
    gpi_spread_refresh_class(c, s->class);
    gpi_life_end(c, s);
}

/* ---- kills ---- */

static void add_kill(struct gpi_sched *c, const struct gpi_sched_slot *s, enum gpi_why why)
{
    gpi_ring_add_for(c, s, (struct gpi_sched_action){ .kind = GPI_ACT_KILL, .how = why });
}

void gpi_life_kill(struct gpi_sched *c, struct gpi_sched_slot *s, enum gpi_why why)
{
    s->why = (uint8_t)why;
    gpi_life_enter(c, s, GPI_LIFE_KILL);
    gpi_life_judge(c, s, GPI_JUDGE_KILLED);
    add_kill(c, s, why);
}

void gpi_life_kill_at(struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t cell, uint64_t at)
{
    s->why = GPI_WHY_LIMIT;
    s->leaving = s->life == GPI_LIFE_LEAVE;
    gpi_life_enter(c, s, GPI_LIFE_DOOMED);
    gpi_life_wait_until(c, s, at);
    gpi_life_judge(c, s, GPI_JUDGE_KILLED);
    gpi_ring_add_for(
        c, s,
        (struct gpi_sched_action){ .kind = GPI_ACT_KILL_AT, .task = s->task[cell], .at = at });
}

/* The keeper kills the worker without an order. */
void gpi_life_overdue(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (s->sent)
        gpi_ring_order(c, s, GPI_ACT_HOLD);
    s->why = GPI_WHY_STOPPED;
    gpi_life_dying(c, s, GPI_LIFE_KILL);
    gpi_life_judge(c, s, GPI_JUDGE_KILLED);
}

void gpi_life_spared(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->why = GPI_WHY_NO;
    gpi_life_enter(c, s, s->leaving ? GPI_LIFE_LEAVE : GPI_LIFE_UP);
    gpi_limits_spared(c, s);
}

/* SWEEP, LOST, or KILL without an order of the core: a fact reports that the worker is dying, and
 * the core awaits its end. */
void gpi_life_dying(struct gpi_sched *c, struct gpi_sched_slot *s, enum gpi_life life)
{
    const uint64_t limit = gpi_devices_kill_limit(c, s->device, s->n_devices);

    if (s->life != life)
        gpi_life_enter(c, s, life);
    gpi_life_wait_until(c, s, gpi_time_add(c->now, limit));
}

/* Every wait counts from the sending: the host may have been stopped since the decision. */
void gpi_life_begun(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const uint64_t kill_limit = gpi_devices_kill_limit(c, s->device, s->n_devices);

    switch (s->life) {
    case GPI_LIFE_BOOT:
    case GPI_LIFE_SETUP:
        s->began = c->now;
        limit_start(c, s);
        break;
    case GPI_LIFE_END:
        gpi_life_wait_until(c, s, gpi_time_add(c->now, s->class->set.cleanup_limit));
        break;
    case GPI_LIFE_DOOMED:
        gpi_life_wait_until(
            c, s, gpi_time_add(s->deadline > c->now ? s->deadline : c->now, kill_limit));
        break;
    case GPI_LIFE_KILL:
        gpi_life_wait_until(c, s, gpi_time_add(c->now, kill_limit));
        break;
    default:
        break;
    }
}

void gpi_life_gone(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    gpi_life_only(c, s, false);
    gpi_limits_forget(s);
    s->why = GPI_WHY_NO;
    s->canary = GPI_START_PLAIN;
    s->leaving = s->still = false;
}

/* The slot moves to the next incarnation: the core drops every later message of the worker. */
void gpi_life_fence(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->incarnation++;
    gpi_life_enter(c, s, GPI_LIFE_STUCK);
    if (s->seat.keeper == GPI_KEEPER_UP) /* a keeper that wakes late must not spare its worker */
        add_kill(c, s, GPI_WHY_DEVICE);
}

void gpi_life_verdict(struct gpi_sched_slot *s, enum gpi_why why)
{
    s->why = (uint8_t)why;
}

/* ---- conditions ---- */

/* Its class or a device of it is paused, or no more. */
void gpi_life_pause(struct gpi_sched *c, struct gpi_sched_slot *s, bool paused)
{
    gpi_spread_refresh(c, s);
    gpi_ring_touch(c, s);
    if (paused && s->sent && (s->life == GPI_LIFE_UP || s->life == GPI_LIFE_LEAVE))
        gpi_ring_order(c, s, GPI_ACT_HOLD);
}

void gpi_life_owe(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (!gpi_devices_watched(c, s))
        return;
    s->owed = true;
    s->memory_by = gpi_time_add(c->now, c->set.memory_wait);
    gpi_ring_order(c, s, GPI_ACT_READ_MEMORY);
}

void gpi_life_pay(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->owed = false;
    c->undecided = true;
    if (s->life == GPI_LIFE_WAIT)
        gpi_life_wait_until(c, s, GPI_NEVER);
    else if (s->life == GPI_LIFE_COOL)
        gpi_life_enter(c, s, GPI_LIFE_OFF);
}

void gpi_life_still(struct gpi_sched *c, struct gpi_sched_slot *s, bool still)
{
    s->still = still;
    gpi_spread_refresh(c, s);
    if (c->plan) /* its grant may be over */
        gpi_ring_touch(c, s);
    if (s->sent == 0 || (s->life != GPI_LIFE_UP && s->life != GPI_LIFE_LEAVE))
        return;
    if (still)
        gpi_ring_order(c, s, GPI_ACT_HOLD);
    gpi_limits_expect(c, s, c->now); /* anew: a running task may be cancelled */
}
