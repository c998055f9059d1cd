/* SPDX-License-Identifier: MIT */
/*
 * slot_end.c - the end of a slot's worker: counts its death, and chooses the slot's next state.
 *                                                                             [C2] [C9] [C10]
 */
#include "sched/core.h"

#define WELL_NS GPI_S /* a worker that lived this long was well, however short the cap is */

/* Of a pooled core: its class boots the next worker, anywhere, after the wait. */
static void leave_seat(struct gpi_sched *c, struct gpi_sched_slot *s, uint64_t wait)
{
    s->again = wait ? gpi_time_add(c->now, wait) : 0;
    if (wait == GPI_RESTART_GIVE_UP && s->known)
        gpi_ring_note(c, s, GPI_NOTE_GIVEN_UP);
    if (gpi_close_starts_nothing(c)) {
        gpi_life_enter(c, s, GPI_LIFE_STOPPED);
    } else if (s->owed) {
        gpi_life_enter(c, s, GPI_LIFE_COOL);
        gpi_life_wait_until(c, s, s->memory_by);
    } else {
        gpi_life_enter(c, s, GPI_LIFE_OFF);
    }
}

void gpi_end_again(struct gpi_sched *c, struct gpi_sched_slot *s, uint64_t wait)
{
    gpi_life_gone(c, s);
    if (c->plan) {
        leave_seat(c, s, wait);
    } else if (gpi_devices_removed(c, s)) {
        gpi_life_enter(c, s, GPI_LIFE_REMOVED);
        gpi_seat_dismiss(c, s);
        gpi_devices_left(c, s);
    } else if (gpi_close_starts_nothing(c)) {
        gpi_life_enter(c, s, GPI_LIFE_STOPPED);
    } else if (wait == GPI_RESTART_GIVE_UP) {
        gpi_life_enter(c, s, GPI_LIFE_FAILED);
        gpi_ring_note(c, s, GPI_NOTE_GIVEN_UP);
    } else if (gpi_devices_bar(c, s)) {
        gpi_life_enter(c, s, GPI_LIFE_PARKED);
    } else if (wait) {
        gpi_life_enter(c, s, GPI_LIFE_BACKOFF);
        gpi_life_wait_until(c, s, gpi_time_add(c->now, wait));
    } else {
        gpi_life_enter(c, s, GPI_LIFE_WAIT);
    }
}

/* Another worker of its class is up, or may come up yet. */
static bool has_other(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    for (uint32_t i = 0; i < c->n_slots; i++) {
        const struct gpi_sched_slot *o = &c->slot[i];
        if (o != s && o->class == s->class && o->known &&
            (o->life == GPI_LIFE_BOOT || o->life == GPI_LIFE_SETUP || o->life == GPI_LIFE_UP ||
             o->life == GPI_LIFE_DOOMED))
            return true;
    }
    return false;
}

/* A keeper is left that may start workers. */
static bool has_keeper(const struct gpi_sched *c)
{
    for (uint32_t i = 0; i < c->n_slots; i++)
        if (c->slot[i].seat.keeper == GPI_KEEPER_UP && c->slot[i].life != GPI_LIFE_STUCK)
            return true;
    return false;
}

/* Returns GIVE_UP if the class has failed as often as one place may, has ended no task since, and
 * has no other worker.  Workers that had begun before the last failure are part of that: else
 * several that begin together would have no second try.  `wait` is that of the place.     [S8] */
static uint64_t class_failure(const struct gpi_sched *c, const struct gpi_sched_slot *s,
                              enum gpi_sched_note note, uint64_t wait)
{
    struct gpi_sched_class *k = s->class;
    uint64_t again;

    if (k->failed_at != k->successes)
        k->failures = 0;
    k->failed_at = k->successes;
    if (k->failures == 0 || note == GPI_NOTE_UNMADE || s->began >= k->last_failure) {
        k->failures++;
        k->last_failure = c->now;
    }
    if (k->failures >= k->set.restart.failures_in_a_row && !has_other(c, s))
        return GPI_RESTART_GIVE_UP;
    again = gpi_time_doubled(k->set.restart.backoff, k->failures - 1, k->set.restart.cap);
    return wait == GPI_RESTART_GIVE_UP ? k->set.restart.cap : wait > again ? wait : again;
}

/* In a pool, a canary alone is none of the class that runs it: nothing counts against that. */
static uint64_t slot_failure(struct gpi_sched *c, struct gpi_sched_slot *s,
                             enum gpi_sched_note note)
{
    uint64_t wait;

    gpi_ring_note(c, s, note);
    if (c->plan && s->only)
        return 0;
    wait = gpi_restart_slot_failure(s->restart, &s->class->set.restart);
    return c->plan ? class_failure(c, s, note, wait) : wait;
}

/* Returns the wait after a death before the end of setup. */
static uint64_t after_setup(struct gpi_sched *c, struct gpi_sched_slot *s, enum gpi_why why,
                            uint32_t exited)
{
    const bool tried = s->canary != GPI_START_PLAIN, only = s->canary == GPI_START_ONLY;

    if (why == GPI_WHY_CLOSE || why == GPI_WHY_DEVICE)
        return 0;
    if (tried && exited & (GPI_EXITED_PASSED | GPI_EXITED_FAILED)) {
        const bool passed = exited & GPI_EXITED_PASSED;
        gpi_life_judge(c, s, passed ? GPI_JUDGE_PASSED : GPI_JUDGE_FAILED);
        if (only || !passed)
            return 0; /* the core charges the device, not the slot */
    }
    if (only && c->plan)
        gpi_life_judge(c, s, GPI_JUDGE_FAILED); /* its class is not at fault */
    return slot_failure(c, s, GPI_NOTE_SETUP_FAILED);
}

/* C9: if enough workers die in a row here while other slots do well, the device may be at fault. */
static uint64_t task_death(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const struct gpi_sched_class *k = s->class;
    const uint64_t wait = gpi_restart_task_death(s->restart, &k->set.restart, k->successes);

    if (wait)
        gpi_life_judge(c, s, GPI_JUDGE_DEATHS);
    return wait;
}

/* Returns the wait after the death of a worker that had passed setup. */
static uint64_t after_run(struct gpi_sched *c, struct gpi_sched_slot *s, enum gpi_why why,
                          uint32_t charged, uint32_t exited)
{
    if (why != GPI_WHY_NO && why != GPI_WHY_PROTOCOL)
        return 0;
    if (charged)
        return task_death(c, s);
    return exited & GPI_EXITED_FAULT ? 0 : slot_failure(c, s, GPI_NOTE_DIED_IDLE);
}

/* If the worker has served this long, the earlier failures of its slot do not count any more. */
static void forgive(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const uint64_t lived = s->up_at ? c->now - s->up_at : 0;

    if (lived >= s->class->set.restart.cap && lived >= WELL_NS)
        gpi_restart_lived_long(s->restart);
}

void gpi_end_died(struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t exited)
{
    enum gpi_why why = (enum gpi_why)s->why;
    uint64_t wait = 0;
    uint32_t charged;

    if (s->life == GPI_LIFE_DOOMED && !(exited & GPI_EXITED_BY_US))
        why = GPI_WHY_NO; /* the worker died on its own before that time */
    if (why == GPI_WHY_NO && exited & GPI_EXITED_SPOILT)
        why = GPI_WHY_PROTOCOL;
    gpi_life_verdict(s, why);
    gpi_ring_note(c, s, GPI_NOTE_DIED);
    charged = gpi_tasks_charge(c, s, false);
    forgive(c, s);
    if (why != GPI_WHY_NO)
        gpi_life_judge(c, s, GPI_JUDGE_KILLED);
    if (exited & GPI_EXITED_FAULT)
        gpi_life_judge(c, s, GPI_JUDGE_FAULT);
    if (s->part == GPI_PART_SETUP)
        wait = after_setup(c, s, why, exited);
    else if (s->part == GPI_PART_RUN)
        wait = after_run(c, s, why, charged, exited);
    gpi_life_owe(c, s);
    gpi_end_again(c, s, wait);
}

/* The spawner could make no keeper, or the keeper no worker. */
void gpi_end_unmade(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const bool refused = c->heard->kind == GPI_EV_START_NO; /* even if no worker is wanted now */
    const bool wanted = refused || s->why == GPI_WHY_NO || s->why == GPI_WHY_SETUP;
    const bool orphaned = c->spawner_gone && s->seat.keeper == GPI_KEEPER_NONE;
    uint64_t wait = 0;

    if (wanted && orphaned && c->plan && (has_other(c, s) || has_keeper(c))) {
        gpi_ring_note(c, s, GPI_NOTE_UNMADE);
        wait = s->class->set.restart.backoff; /* by then a seat with a keeper may be free */
        wait = wait > GPI_MS ? wait : GPI_MS;
    } else if (wanted) {
        wait = slot_failure(c, s, GPI_NOTE_UNMADE);
        wait = orphaned ? GPI_RESTART_GIVE_UP : wait; /* no process can make a keeper */
    }
    gpi_end_again(c, s, wait);
}

/* The worker survived SIGKILL, or no process can prove that it has not.                [C10] */
void gpi_end_stuck(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    (void)gpi_tasks_charge(c, s, true);
    gpi_ring_note(c, s, GPI_NOTE_SURVIVED);
    gpi_life_gone(c, s);
    gpi_life_fence(c, s);
    gpi_life_judge(c, s, GPI_JUDGE_SURVIVED);
}
