/* SPDX-License-Identifier: MIT */
/*
 * slot.c - the table of a slot's life: the rule of each state for each input.
 *
 * A cell without a rule is impossible: sched.c passes on only inputs that concern the slot in its
 * state.  The rule `nothing` accepts the input, and changes nothing.  A function of a lower file
 * may be a rule, too.
 */
#include "sched/core.h"

/* The parameters of each rule.  The event is in "c->heard". */
#define RULE(name) static void name(struct gpi_sched *c, struct gpi_sched_slot *s)

RULE(nothing)
{
    (void)c;
    (void)s;
}

/* ---- the slot has no worker ---- */

RULE(want)
{
    gpi_restart_forget(s->restart);
    gpi_end_again(c, s, 0);
}

/* If its devices bar the slot, it leaves its state. */
RULE(park)
{
    if (gpi_devices_bar(c, s))
        gpi_end_again(c, s, 0);
}

RULE(come_back)
{
    if (!gpi_devices_bar(c, s) || gpi_devices_removed(c, s))
        gpi_end_again(c, s, 0);
    else
        gpi_ring_touch(c, s); /* its devices may be hopeless now, or no longer */
}

RULE(remove_it)
{
    if (gpi_devices_removed(c, s))
        gpi_end_again(c, s, 0);
}

/* If the user returns the device of a slot that has FAILED, the slot starts again. */
RULE(forgive)
{
    if (gpi_devices_removed(c, s) || c->heard->kind != GPI_EV_RETURN)
        return;
    gpi_restart_forget(s->restart);
    gpi_end_again(c, s, 0);
}

RULE(try_canary)
{
    gpi_life_only(c, s, true);
    gpi_life_enter(c, s, GPI_LIFE_WAIT);
}

RULE(wake)
{
    gpi_end_again(c, s, 0);
}

/* The plan has taken the boot back before the slot's turn. */
RULE(vacate)
{
    gpi_end_again(c, s, 0);
}

RULE(stop)
{
    gpi_life_gone(c, s);
    gpi_life_enter(c, s, GPI_LIFE_STOPPED);
}

/* It is the slot's turn to get a keeper or, if it has one, a worker. */
RULE(gate)
{
    if (s->seat.keeper == GPI_KEEPER_UP)
        gpi_life_start(c, s);
    else if (c->spawner_gone)
        gpi_end_unmade(c, s);
    else
        gpi_seat_ask(c, s);
}

/* If a keeper dies before it starts a worker, the core replaces the keeper.  If that happens again
 * and again, or the keeper has reported that it cannot work, it is a failure of the slot. */
RULE(keeper_wasted)
{
    const bool unfit = c->heard->kind == GPI_EV_KEEPER_GONE && c->heard->how == GPI_GONE_UNFIT;

    if (gpi_seat_wasted(c, s) || unfit)
        gpi_end_unmade(c, s);
}

/* ---- the start of a worker ---- */

/* The caller could not send START: the keeper is gone, and the slot will use another keeper. */
RULE(unstart)
{
    gpi_seat_lost(c, s);
    gpi_life_unstart(c, s);
}

/* SETUP_OK carries the result of a canary that preceded setup. */
static void judge_canary(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (c->heard->how & GPI_EXITED_PASSED && s->canary != GPI_START_PLAIN)
        gpi_life_judge(c, s, GPI_JUDGE_PASSED);
}

/* SETUP_OK may overtake ANSWERED, since they use two channels. */
RULE(up)
{
    gpi_life_up(c, s);
    judge_canary(c, s);
}

/* The worker passed setup before the kill, sweep or loss.  The core still awaits its end.  [C10] */
RULE(setup_over)
{
    if (s->part != GPI_PART_SETUP || s->why == GPI_WHY_SETUP)
        return;
    gpi_life_setup_over(c, s);
    judge_canary(c, s);
}

/* ---- the worker is to leave ---- */

RULE(leave)
{
    gpi_life_leave(c, s, true);
}

/* If no device of the slot is in doubt, out of use or drained any more, the worker stays.  In a
 * pooled core it goes all the same: the plan does not count on it any more.              [S4] */
RULE(stay)
{
    if (s->leaving && gpi_devices_well(c, s) && !c->plan)
        gpi_life_leave(c, s, false);
}

/* ---- kills ---- */

RULE(kill_late_setup)
{
    gpi_life_kill(c, s, GPI_WHY_SETUP);
}

RULE(kill_late_cleanup)
{
    gpi_life_kill(c, s, GPI_WHY_CLEANUP);
}

RULE(kill_liar)
{
    gpi_life_kill(c, s, GPI_WHY_PROTOCOL);
}

/* The core does not charge a task that the worker has not begun. */
static void hold(struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    if (s->sent)
        gpi_ring_order(c, s, GPI_ACT_HOLD);
}

RULE(kill_for_device)
{
    hold(c, s);
    gpi_life_kill(c, s, GPI_WHY_DEVICE);
}

RULE(kill_for_close)
{
    hold(c, s);
    gpi_life_kill(c, s, GPI_WHY_CLOSE);
}

/* The worker is in setup, and its device is to get no task.  If the worker runs a canary alone, it
 * goes on: its device needs the result. */
RULE(kill_unwanted)
{
    if (!s->only)
        gpi_life_kill(c, s, GPI_WHY_CLOSE);
}

RULE(kill_late_task)
{
    uint64_t at;
    enum gpi_why why;
    const uint32_t cell = gpi_limits_doom(c, s, &at, &why);

    if (why == GPI_WHY_CANCEL)
        gpi_life_kill(c, s, why);
    else
        gpi_life_kill_at(c, s, cell, at);
}

/* Neither a fence nor the close limit waits, or spares the worker.  The verdict stays. */
RULE(kill_now)
{
    gpi_life_kill(c, s, (enum gpi_why)s->why);
}

/* ---- the worker is dying ---- */

RULE(sweep)
{
    gpi_life_dying(c, s, GPI_LIFE_SWEEP);
}

/* With a spawner, KEEPER_GONE proves the worker's death.  Without a spawner, the host checks a last
 * time. */
RULE(lose)
{
    gpi_life_dying(c, s, GPI_LIFE_LOST);
    if (c->spawner_gone)
        gpi_ring_order(c, s, GPI_ACT_GIVE_UP);
}

/* If the keeper had not read the order, the kill did not happen: the worker dies on its own. */
RULE(lose_doomed)
{
    if (c->heard->kind == GPI_EV_KEEPER_LOST && c->heard->how == GPI_LOST_UNREAD)
        gpi_life_verdict(s, GPI_WHY_NO);
    lose(c, s);
}

RULE(give_up)
{
    gpi_life_wait_until(c, s, GPI_NEVER);
    gpi_ring_order(c, s, GPI_ACT_GIVE_UP);
}

RULE(died)
{
    gpi_end_died(c, s, c->heard->kind == GPI_EV_EXITED ? c->heard->how : 0);
}

RULE(died_with_keeper)
{
    const bool unstarted = c->heard->kind == GPI_EV_KEEPER_GONE &&
                           c->heard->how != GPI_GONE_PLAIN && s->part == GPI_PART_SETUP;

    gpi_seat_gone(c, s);
    if (unstarted)
        gpi_end_unmade(c, s);
    else
        gpi_end_died(c, s, 0);
}

/* A process survives SIGKILL, or no process proves that none does.  On a CPU slot without a
 * spawner, the death of the keeper has killed the worker: no process is left to report that. */
RULE(stuck)
{
    if (s->life == GPI_LIFE_LOST && c->spawner_gone && !gpi_devices_watched(c, s))
        died_with_keeper(c, s);
    else
        gpi_end_stuck(c, s);
}

/* In a pool no worker of the seat's present class was there yet, so its devices are not at fault.
 * The class boots again, in a seat that is ready: one with a lost keeper is chosen last. */
RULE(unproved)
{
    if (c->plan)
        vacate(c, s);
    else
        stuck(c, s);
}

/* ---- the table ---- */

typedef void rule_fn(struct gpi_sched *c, struct gpi_sched_slot *s);

/* Cells that several states share.  LIVING: the worker lives.  STARTING: it has not ended setup.
 * DYING: it dies in any way but DOOMED. */
#define LIVING                                                                      \
    [GPI_EV_KEEPER_LOST] = lose, [GPI_EV_EXITED] = died, [GPI_EV_SWEEPING] = sweep, \
    [GPI_EV_OVERDUE] = gpi_life_overdue, [GPI_EV_BROKE] = kill_liar,                \
    [GPI_IN_KILL] = kill_for_device
#define STARTING                                                                                   \
    LIVING, [GPI_EV_UNSENT] = unstart, [GPI_EV_START_NO] = gpi_end_unmade, [GPI_EV_SETUP_OK] = up, \
            [GPI_IN_LEAVE] = kill_unwanted, [GPI_IN_CHANGED] = nothing,                            \
            [GPI_IN_TIMER] = kill_late_setup, [GPI_IN_WIND_DOWN] = kill_for_close,                 \
            [GPI_IN_KILL_ALL] = kill_for_close, [GPI_IN_EVICT] = kill_unwanted
#define DYING                                                                                 \
    [GPI_EV_KEEPER_LOST] = lose, [GPI_EV_ANSWERED] = nothing, [GPI_EV_SETUP_OK] = setup_over, \
    [GPI_EV_EXITED] = died, [GPI_EV_SURVIVED] = stuck, [GPI_EV_BROKE] = nothing,              \
    [GPI_IN_KILL] = nothing, [GPI_IN_LEAVE] = nothing, [GPI_IN_CHANGED] = nothing,            \
    [GPI_IN_TIMER] = give_up, [GPI_IN_KILL_ALL] = nothing

static rule_fn *const table[GPI_LIVES][GPI_INPUTS] = {
    [GPI_LIFE_OFF] = { [GPI_EV_WANT] = want, [GPI_EV_KEEPER_NO] = nothing,
                       [GPI_EV_KEEPER_GONE] = gpi_seat_gone },
    [GPI_LIFE_WAIT] = { [GPI_EV_KEEPER_NO] = gpi_end_unmade, [GPI_EV_KEEPER_GONE] = keeper_wasted,
                        [GPI_IN_GATE] = gate, [GPI_IN_LEAVE] = park, [GPI_IN_CHANGED] = park,
                        [GPI_IN_TIMER] = gpi_life_pay, [GPI_IN_UNPROVED] = unproved,
                        [GPI_IN_WIND_DOWN] = stop, [GPI_IN_EVICT] = vacate },
    [GPI_LIFE_BOOT] = { STARTING, [GPI_EV_ANSWERED] = gpi_life_answered },
    [GPI_LIFE_SETUP] = { STARTING, [GPI_EV_ANSWERED] = nothing },
    [GPI_LIFE_UP] = { LIVING, [GPI_EV_ANSWERED] = nothing, [GPI_EV_SETUP_OK] = nothing,
                      [GPI_IN_LATE] = kill_late_task, [GPI_IN_RENEW] = gpi_life_renew,
                      [GPI_IN_LEAVE] = leave, [GPI_IN_CHANGED] = nothing,
                      [GPI_IN_WIND_DOWN] = gpi_life_end, [GPI_IN_KILL_ALL] = kill_for_close,
                      [GPI_IN_EVICT] = leave },
    [GPI_LIFE_LEAVE] = { LIVING, [GPI_EV_ANSWERED] = nothing, [GPI_EV_SETUP_OK] = nothing,
                         [GPI_IN_LATE] = kill_late_task, [GPI_IN_EMPTY] = gpi_life_end,
                         [GPI_IN_LEAVE] = nothing, [GPI_IN_CHANGED] = stay,
                         [GPI_IN_KILL_ALL] = kill_for_close },
    [GPI_LIFE_END] = { LIVING, [GPI_EV_UNSENT] = kill_late_cleanup, [GPI_EV_ANSWERED] = nothing,
                       [GPI_EV_SETUP_OK] = nothing, [GPI_IN_LEAVE] = nothing,
                       [GPI_IN_CHANGED] = nothing, [GPI_IN_TIMER] = kill_late_cleanup,
                       [GPI_IN_KILL_ALL] = kill_late_cleanup },
    [GPI_LIFE_DOOMED] = { [GPI_EV_KEEPER_LOST] = lose_doomed, [GPI_EV_ANSWERED] = nothing,
                          [GPI_EV_SETUP_OK] = nothing, [GPI_EV_EXITED] = died,
                          [GPI_EV_SWEEPING] = nothing, [GPI_EV_SPARED] = gpi_life_spared,
                          [GPI_EV_OVERDUE] = gpi_life_overdue, [GPI_EV_SURVIVED] = stuck,
                          [GPI_EV_BROKE] = nothing, [GPI_IN_KILL] = kill_now,
                          [GPI_IN_LEAVE] = leave, [GPI_IN_CHANGED] = stay, [GPI_IN_TIMER] = give_up,
                          [GPI_IN_KILL_ALL] = kill_now },
    [GPI_LIFE_KILL] = { DYING, [GPI_EV_UNSENT] = nothing, [GPI_EV_START_NO] = gpi_end_unmade,
                        [GPI_EV_SWEEPING] = nothing, [GPI_EV_SPARED] = nothing,
                        [GPI_EV_OVERDUE] = nothing },
    [GPI_LIFE_SWEEP] = { DYING },
    [GPI_LIFE_LOST] = { DYING, [GPI_EV_KEEPER_GONE] = died_with_keeper, [GPI_EV_START_NO] = nothing,
                        [GPI_EV_SWEEPING] = nothing, [GPI_EV_SPARED] = nothing,
                        [GPI_EV_OVERDUE] = nothing },
    [GPI_LIFE_BACKOFF] = { [GPI_EV_KEEPER_GONE] = gpi_seat_gone, [GPI_IN_LEAVE] = park,
                           [GPI_IN_CHANGED] = park, [GPI_IN_TIMER] = wake,
                           [GPI_IN_UNPROVED] = stuck, [GPI_IN_WIND_DOWN] = stop },
    [GPI_LIFE_PARKED] = { [GPI_EV_KEEPER_NO] = nothing, [GPI_EV_KEEPER_GONE] = gpi_seat_gone,
                          [GPI_IN_LEAVE] = come_back, [GPI_IN_CHANGED] = come_back,
                          [GPI_IN_TRY] = try_canary, [GPI_IN_UNPROVED] = stuck,
                          [GPI_IN_WIND_DOWN] = stop },
    [GPI_LIFE_FAILED] = { [GPI_EV_KEEPER_GONE] = gpi_seat_gone, [GPI_IN_LEAVE] = remove_it,
                          [GPI_IN_CHANGED] = forgive, [GPI_IN_UNPROVED] = stuck },
    [GPI_LIFE_STUCK] = { [GPI_EV_KEEPER_GONE] = nothing },
    [GPI_LIFE_STOPPED] = { [GPI_EV_KEEPER_NO] = nothing, [GPI_EV_KEEPER_GONE] = gpi_seat_gone,
                           [GPI_IN_LEAVE] = remove_it, [GPI_IN_CHANGED] = nothing },
    [GPI_LIFE_REMOVED] = { [GPI_EV_WANT] = want, [GPI_EV_KEEPER_NO] = nothing,
                           [GPI_EV_KEEPER_GONE] = gpi_seat_gone },
    [GPI_LIFE_COOL] = { [GPI_EV_KEEPER_GONE] = gpi_seat_gone,
                        [GPI_IN_LEAVE] = nothing, [GPI_IN_CHANGED] = nothing,
                        [GPI_IN_TIMER] = gpi_life_pay, [GPI_IN_WIND_DOWN] = stop },
};

void gpi_slot_input(struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t in)
{
    rule_fn *const rule = table[s->life][in];

    assert(rule);
    if (!rule) {
        c->impossible++;
        return;
    }
#ifdef GPI_SCHED_PROBE
    c->reached[s->life][in]++;
    if (c->mute[s->life][in])
        return;
#endif
    rule(c, s);
}

#ifdef GPI_SCHED_PROBE
#include "sched/probe.h"

uint64_t gpi_sched_reached(const struct gpi_sched *c, uint32_t life, uint32_t input)
{
    return c->reached[life][input];
}

void gpi_sched_mute(struct gpi_sched *c, uint32_t life, uint32_t input)
{
    c->mute[life][input] = true;
}

bool gpi_sched_reacts(uint32_t life, uint32_t input)
{
    return table[life][input] && table[life][input] != nothing;
}

bool gpi_sched_can_be(uint32_t life, uint32_t input)
{
    return table[life][input] != NULL;
}

const char *gpi_sched_input_name(uint32_t input)
{
#define X_EVENT(name, fields, how, bits, what) [GPI_EV_##name] = #name,
#define X_INPUT(name) [GPI_IN_##name] = #name,
    static const char *const names[] = { GPI_EVENT_MAP(X_EVENT) GPI_INPUT_MAP(X_INPUT) };

    return input < GPI_INPUTS ? names[input] : "?";
}

uint32_t gpi_sched_inputs(void)
{
    return GPI_INPUTS;
}
#endif
