/* SPDX-License-Identifier: MIT */
/*
 * external.c - work that the caller runs itself.                                 [C1] [C4] [C7]
 *
 * The plan grants devices to a task, and the lease has them until the caller reports the end of the
 * work.  Before the start a grant may come back: then the task waits at its old place, and is not
 * charged.  After it, the lease has the limits of the task.  After one of them the caller is to end
 * the work, and after the grace to kill it.  If it has not ended by the kill limit either, the task
 * has its outcome, and its devices stay taken.
 */
#include <stdlib.h>

#include "sched/plan.h"
#include "sched/record.h"

#define IN_VAIN_MOST 3u /* grants in a row that were not started in time */

int gpi_external_make(struct gpi_sched *c)
{
    struct gpi_external *x = &c->external;
    const uint32_t n = c->set.slots - GPI_SPARE_SEATS;

    if (x->task)
        return 0;
    x->lease = calloc(n, sizeof *x->lease);
    x->task = calloc(c->set.tasks, sizeof *x->task);
    x->n_leases = n;
    if (x->lease && x->task && gpi_heap_init(&x->times, n) == 0)
        return 0;
    gpi_external_free(c);
    c->external = (struct gpi_external){ 0 };
    return -1;
}

void gpi_external_free(struct gpi_sched *c)
{
    gpi_heap_fini(&c->external.times);
    free(c->external.lease);
    free(c->external.task);
}

bool gpi_external_has(const struct gpi_sched *c, uint32_t task)
{
    return c->task[task].state == GPI_RECORD_GRANTED || c->task[task].state == GPI_RECORD_HELD;
}

static struct gpi_lease *lease_of(struct gpi_sched *c, uint32_t task)
{
    return &c->external.lease[c->task[task].slot];
}

static const struct gpi_class_settings *settings_of(const struct gpi_sched *c,
                                                    const struct gpi_lease *l)
{
    return &c->class[c->task[l->task].class].set;
}

/* ---- times ---- */

static uint64_t soft_at(const struct gpi_lease *l)
{
    return gpi_time_min(l->limit_at, l->stall_at);
}

static uint64_t due_of(const struct gpi_lease *l)
{
    if (l->state == GPI_LEASE_GRANTED)
        return gpi_time_min(l->start_by, l->expires);
    if (l->state != GPI_LEASE_STARTED)
        return GPI_NEVER;
    return l->is_late || l->is_killed ? l->kill_at : gpi_time_min(l->kill_at, soft_at(l));
}

static void arm(struct gpi_sched *c, const struct gpi_lease *l)
{
    const uint32_t i = (uint32_t)(l - c->external.lease);
    const uint64_t at = due_of(l);

    if (at == GPI_NEVER)
        gpi_heap_remove(&c->external.times, i);
    else
        gpi_heap_set(&c->external.times, i, at);
}

uint64_t gpi_external_due(const struct gpi_sched *c)
{
    return c->external.task ? gpi_heap_top_key(&c->external.times) : GPI_NEVER;
}

/* ---- a lease begins, and ends ---- */

/* These facts of the plan have no actions. */
static void fed(struct gpi_sched *c)
{
    c->unplanned = c->undecided = true;
}

static struct gpi_lease *begin(struct gpi_sched *c, uint32_t task, uint32_t run,
                               const uint16_t *device, uint32_t n)
{
    struct gpi_lease *l = &c->external.lease[run];

    *l = (struct gpi_lease){ .state = GPI_LEASE_GRANTED,
                             .task = task,
                             .n_devices = n,
                             .since = c->now,
                             .start_by = GPI_NEVER,
                             .expires = GPI_NEVER,
                             .limit_at = GPI_NEVER,
                             .stall_at = GPI_NEVER,
                             .asked_at = GPI_NEVER,
                             .cancel_at = GPI_NEVER,
                             .killed_at = GPI_NEVER,
                             .kill_at = GPI_NEVER };
    for (uint32_t i = 0; i < n; i++)
        l->device[i] = device[i];
    gpi_own_run(c, task);
    c->task[task].state = GPI_RECORD_GRANTED;
    c->task[task].slot = (uint16_t)run;
    return l;
}

/* A device that is drained may wait for this end alone. */
static void note_end(struct gpi_sched *c, const struct gpi_lease *l)
{
    for (uint32_t i = 0; i < l->n_devices; i++)
        gpi_device_note_end(c, l->device[i]);
}

/* The devices are free.  `run`: how long the task ran, if it succeeded. */
static void release(struct gpi_sched *c, struct gpi_lease *l, bool good, uint64_t run)
{
    const bool had_task = l->state != GPI_LEASE_HELD;

    l->state = GPI_LEASE_NONE;
    arm(c, l);
    gpi_plan_end(c->plan, c->now, gpi_own_number(c, l->task), good, run, 0);
    fed(c);
    gpi_own_over(c, l->task);
    if (had_task)
        note_end(c, l);
}

/* ---- grants ---- */

void gpi_external_grant(struct gpi_sched *c, const struct gpi_plan_action *a)
{
    const uint32_t task = a->task - c->n_streams;
    struct gpi_outside *o = &c->external.task[task];
    struct gpi_lease *l = begin(c, task, a->run, a->device, a->n_devices);
    struct gpi_sched_record *t = &c->task[task];
    struct gpi_sched_action order = { .kind = GPI_ACT_GRANT,
                                      .slot = GPI_NOWHERE,
                                      .device = GPI_NOWHERE,
                                      .task = task,
                                      .incarnation = ++o->grants,
                                      .cell = a->what };

    l->start_by = gpi_time_add(c->now, settings_of(c, l)->setup_limit);
    if (t->expires) {
        l->expires = gpi_heap_key(&c->expiries, task);
        gpi_heap_remove(&c->expiries, task);
    }
    arm(c, l);
    gpi_ring_add(c, order);
    order.kind = GPI_ACT_GRANT_ON;
    for (uint32_t i = 0; i < a->n_devices; i++) {
        order.device = a->device[i];
        gpi_ring_add(c, order);
    }
}

static void revoke(struct gpi_sched *c, const struct gpi_lease *l, enum gpi_revoke how,
                   enum gpi_revoke_why why, uint64_t by)
{
    gpi_ring_add(c, (struct gpi_sched_action){ .kind = GPI_ACT_REVOKE,
                                               .slot = GPI_NOWHERE,
                                               .device = GPI_NOWHERE,
                                               .task = l->task,
                                               .incarnation = c->external.task[l->task].grants,
                                               .how = how,
                                               .what = why,
                                               .at = by });
}

/* The grant has not started, and is over.  The expiry of its task is that of a waiting one. */
static void give_back(struct gpi_sched *c, struct gpi_lease *l)
{
    if (l->expires != GPI_NEVER)
        gpi_heap_set(&c->expiries, l->task, l->expires);
    release(c, l, false, 0);
}

static void take_back(struct gpi_sched *c, struct gpi_lease *l, enum gpi_revoke_why why)
{
    revoke(c, l, GPI_REVOKE_BACK, why, c->now);
    give_back(c, l);
}

static void take_back_again(struct gpi_sched *c, struct gpi_lease *l, enum gpi_revoke_why why)
{
    take_back(c, l, why);
    gpi_tasks_requeue(c, l->task);
}

static void take_back_for_good(struct gpi_sched *c, struct gpi_lease *l, enum gpi_revoke_why why,
                               uint32_t outcome)
{
    take_back(c, l, why);
    gpi_tasks_finish(c, l->task, outcome, GPUD_PHASE_QUEUED,
                     outcome == GPUD_OUTCOME_NO_WORKER ? GPI_WHY_START : GPI_WHY_NO);
}

/* ---- while it runs ---- */

static uint64_t kill_limit(const struct gpi_sched *c, const struct gpi_lease *l)
{
    return gpi_devices_kill_limit(c, l->device, l->n_devices);
}

/* The work is to end, and to be killed at this time, or at the close limit. */
static void soften(struct gpi_sched *c, struct gpi_lease *l, enum gpi_revoke_why why, uint64_t kill)
{
    if (l->is_killed)
        return;
    revoke(c, l, GPI_REVOKE_SOFT, why, gpi_time_min(gpi_time_min(kill, l->kill_at), c->close_at));
    if (kill < l->kill_at) {
        l->kill_at = kill;
        l->why = (uint8_t)why;
    }
    arm(c, l);
}

static void harden(struct gpi_sched *c, struct gpi_lease *l, enum gpi_revoke_why why)
{
    if (l->is_killed)
        return;
    l->is_killed = true;
    l->killed_at = c->now;
    l->why = (uint8_t)why;
    l->kill_at = gpi_time_add(c->now, kill_limit(c, l));
    revoke(c, l, GPI_REVOKE_HARD, why, l->kill_at);
    arm(c, l);
}

static void cancel_hard(struct gpi_sched *c, struct gpi_lease *l, enum gpi_revoke_why why)
{
    l->asked_at = gpi_time_min(l->asked_at, c->now);
    if (l->cancel_at != GPI_NEVER)
        return;
    l->cancel_at = c->now;
    soften(c, l, why, gpi_time_add(c->now, settings_of(c, l)->grace));
}

static void pass_limit(struct gpi_sched *c, struct gpi_lease *l)
{
    const uint64_t at = soft_at(l);

    l->is_late = true;
    l->is_stalled = l->stall_at < l->limit_at;
    soften(c, l, l->is_stalled ? GPI_REVOKE_STALL : GPI_REVOKE_LIMIT,
           gpi_time_add(at, settings_of(c, l)->grace));
}

/* ---- the end ---- */

struct verdict {
    uint32_t outcome, phase;
    enum gpi_why why;
};

static struct verdict late(const struct gpi_lease *l, bool killed)
{
    return (struct verdict){ GPUD_OUTCOME_TIMEOUT, killed ? GPUD_PHASE_HARD : GPUD_PHASE_PROCESS,
                             l->is_stalled || l->stall_at < l->limit_at ? GPI_WHY_STALL
                                                                        : GPI_WHY_LIMIT };
}

static struct verdict cancelled(const struct gpi_lease *l)
{
    return (struct verdict){ GPUD_OUTCOME_CANCELLED, GPUD_PHASE_HARD,
                             l->why == GPI_REVOKE_CLOSE ? GPI_WHY_CLOSE : GPI_WHY_CANCEL };
}

/* The time at which it ended decides, not the time of the event.                           [C7] */
static struct verdict judge(const struct gpi_lease *l, enum gpi_ended how, uint64_t at)
{
    static const uint32_t outcome[] = { GPUD_OUTCOME_SUCCESS, GPUD_OUTCOME_ERROR,
                                        GPUD_OUTCOME_CRASHED };
    const bool was_killed = how == GPI_ENDED_CRASHED && at >= l->killed_at;
    struct verdict v = { outcome[how], GPUD_PHASE_PROCESS, GPI_WHY_NO };

    if (at >= l->cancel_at && l->cancel_at <= soft_at(l)) {
        v.outcome = GPUD_OUTCOME_CANCELLED;
        return was_killed ? cancelled(l) : v;
    }
    if (was_killed && l->why == GPI_REVOKE_DEVICE) {
        v.why = GPI_WHY_DEVICE;
        return v;
    }
    if (at >= soft_at(l))
        return late(l, was_killed);
    if (at >= l->asked_at && how != GPI_ENDED_SUCCESS)
        v.outcome = GPUD_OUTCOME_CANCELLED;
    return v;
}

static void on_started(struct gpi_sched *c, uint32_t task, uint64_t at)
{
    struct gpi_outside *o = &c->external.task[task];
    struct gpi_lease *l = lease_of(c, task);
    const struct gpi_class_settings *set = settings_of(c, l);

    if (l->state != GPI_LEASE_GRANTED)
        return;
    l->state = GPI_LEASE_STARTED;
    l->since = at;
    l->expires = GPI_NEVER;
    l->limit_at = gpi_time_add(at, c->task[task].limit);
    l->stall_at = o->stall ? gpi_time_add(at, o->stall) : GPI_NEVER;
    o->in_vain = 0;
    c->task[task].expires = false;
    arm(c, l);
    gpi_plan_ends_by(c->plan, c->now, gpi_own_number(c, task),
                     gpi_time_add(gpi_time_add(l->limit_at, set->grace), kill_limit(c, l)));
    fed(c);
}

static void on_declined(struct gpi_sched *c, uint32_t task, uint64_t not_before)
{
    struct gpi_lease *l = lease_of(c, task);

    if (l->state != GPI_LEASE_GRANTED)
        return;
    c->external.task[task].in_vain = 0;
    give_back(c, l);
    if (not_before > c->now)
        gpi_tasks_defer(c, task, not_before);
    else
        gpi_tasks_requeue(c, task);
}

/* After its limit has expired, the work is late in any case. */
static void on_progress(struct gpi_sched *c, uint32_t task)
{
    struct gpi_lease *l = lease_of(c, task);

    if (l->stall_at == GPI_NEVER || l->is_late || soft_at(l) <= c->now)
        return;
    l->stall_at = gpi_time_add(c->now, c->external.task[task].stall);
    arm(c, l);
}

/* It had its outcome already. */
static void on_ended_late(struct gpi_sched *c, uint32_t task)
{
    release(c, lease_of(c, task), false, 0);
    c->task[task].state = GPI_RECORD_FREE;
}

static void on_ended(struct gpi_sched *c, uint32_t task, enum gpi_ended how, uint64_t at)
{
    struct gpi_lease *l = lease_of(c, task);
    const struct verdict v = judge(l, how, at);
    const bool good = v.outcome == GPUD_OUTCOME_SUCCESS;
    const uint64_t run = l->state == GPI_LEASE_STARTED && at > l->since ? at - l->since : 1;
    const bool again = !good && l->asked_at == GPI_NEVER;

    c->external.task[task].in_vain = 0;
    c->task[task].expires = false;
    release(c, l, good, run);
    gpi_tasks_attempt(c, task, v.outcome, v.phase, v.why, again);
}

/* It has not ended by the kill limit.  It is unknown when its devices are free. */
static void give_up(struct gpi_sched *c, struct gpi_lease *l)
{
    const struct verdict v = judge(l, GPI_ENDED_CRASHED, c->now);

    c->task[l->task].attempts++;
    gpi_tasks_finish(c, l->task, v.outcome, GPUD_PHASE_KILL, v.why);
    c->task[l->task].state = GPI_RECORD_HELD;
    l->state = GPI_LEASE_HELD;
    arm(c, l);
    gpi_plan_ends_by(c->plan, c->now, gpi_own_number(c, l->task), GPI_NEVER);
    fed(c);
    note_end(c, l);
}

void gpi_external_event(struct gpi_sched *c, const struct gpi_sched_event *e)
{
    if (!gpi_external_has(c, e->task)) {
        c->late++;
        return;
    }
    switch (e->kind) {
    case GPI_EV_STARTED:
        on_started(c, e->task, e->at);
        break;
    case GPI_EV_DECLINED:
        on_declined(c, e->task, e->at);
        break;
    case GPI_EV_PROGRESS:
        on_progress(c, e->task);
        break;
    default:
        if (c->task[e->task].state == GPI_RECORD_HELD)
            on_ended_late(c, e->task);
        else
            on_ended(c, e->task, (enum gpi_ended)e->how, e->at);
        break;
    }
}

/* ---- the user, the devices, the close ---- */

void gpi_external_cancel(struct gpi_sched *c, uint32_t task, uint32_t how)
{
    struct gpi_lease *l = lease_of(c, task);

    if (l->state == GPI_LEASE_GRANTED) {
        take_back_for_good(c, l, GPI_REVOKE_CANCEL, GPUD_OUTCOME_CANCELLED);
    } else if (l->state == GPI_LEASE_STARTED && how == GPI_CANCEL_HARD) {
        cancel_hard(c, l, GPI_REVOKE_CANCEL);
    } else if (l->state == GPI_LEASE_STARTED && l->asked_at == GPI_NEVER) {
        l->asked_at = c->now;
        soften(c, l, GPI_REVOKE_CANCEL, GPI_NEVER);
    }
}

void gpi_external_device(struct gpi_sched *c, uint32_t device, bool kills)
{
    const struct gpi_sched_device *v = &c->device[device];
    const bool is_out = v->may >= GPI_MAY_OUT || kills;
    const bool bars = is_out || v->paused || v->draining || v->removing;

    for (uint32_t i = 0; i < c->external.n_leases; i++) {
        struct gpi_lease *l = &c->external.lease[i];
        if (!gpi_lease_has(l, device))
            continue;
        if (l->state == GPI_LEASE_GRANTED && bars)
            take_back_again(c, l, is_out ? GPI_REVOKE_DEVICE : GPI_REVOKE_DRAIN);
        else if (l->state == GPI_LEASE_STARTED && kills)
            harden(c, l, GPI_REVOKE_DEVICE);
    }
}

void gpi_external_pause(struct gpi_sched *c, const struct gpi_sched_class *k)
{
    for (uint32_t i = 0; i < c->external.n_leases; i++) {
        struct gpi_lease *l = &c->external.lease[i];
        if (l->state == GPI_LEASE_GRANTED && &c->class[c->task[l->task].class] == k)
            take_back_again(c, l, GPI_REVOKE_DRAIN);
    }
}

/* It is no task any more, and has no outcome. */
static void leave(struct gpi_sched *c, struct gpi_lease *l)
{
    if (l->state == GPI_LEASE_STARTED) {
        gpi_own_end(c, l->task);
        c->unended--;
    }
    c->task[l->task].state = GPI_RECORD_FREE;
    l->state = GPI_LEASE_LEFT;
    arm(c, l);
    note_end(c, l);
}

void gpi_external_close(struct gpi_sched *c, enum gpi_close how)
{
    for (uint32_t i = 0; i < c->external.n_leases; i++) {
        struct gpi_lease *l = &c->external.lease[i];
        const bool is_open = l->state == GPI_LEASE_STARTED || l->state == GPI_LEASE_HELD;
        if (l->state == GPI_LEASE_GRANTED && how != GPI_CLOSE_ALL)
            take_back_again(c, l, GPI_REVOKE_CLOSE); /* it ends: none starts */
        else if (l->state == GPI_LEASE_STARTED && how == GPI_CLOSE_NOW)
            cancel_hard(c, l, GPI_REVOKE_CLOSE);
        else if (is_open && how == GPI_CLOSE_LEAVE)
            leave(c, l);
    }
}

void gpi_external_kill_all(struct gpi_sched *c)
{
    for (uint32_t i = 0; i < c->external.n_leases; i++)
        if (c->external.lease[i].state == GPI_LEASE_STARTED)
            harden(c, &c->external.lease[i], GPI_REVOKE_CLOSE);
}

/* ---- time ---- */

static void not_started(struct gpi_sched *c, struct gpi_lease *l)
{
    struct gpi_outside *o = &c->external.task[l->task];

    if (l->expires <= c->now) {
        c->task[l->task].expires = false;
        l->expires = GPI_NEVER;
        take_back_for_good(c, l, GPI_REVOKE_LIMIT, GPUD_OUTCOME_TIMEOUT);
    } else if (++o->in_vain >= IN_VAIN_MOST) {
        take_back_for_good(c, l, GPI_REVOKE_START, GPUD_OUTCOME_NO_WORKER);
    } else {
        take_back_again(c, l, GPI_REVOKE_START);
    }
}

void gpi_external_time(struct gpi_sched *c)
{
    while (gpi_external_due(c) <= c->now) {
        struct gpi_lease *l = &c->external.lease[gpi_heap_top_item(&c->external.times)];
        if (l->state == GPI_LEASE_GRANTED)
            not_started(c, l);
        else if (l->is_killed)
            give_up(c, l);
        else if (l->kill_at <= c->now)
            harden(c, l, (enum gpi_revoke_why)l->why);
        else
            pass_limit(c, l);
    }
}

/* ---- readings ---- */

void gpi_external_observed(struct gpi_sched *c, uint32_t task, uint32_t device, uint64_t bytes)
{
    if (!gpi_external_has(c, task))
        return;
    gpi_plan_observed(c->plan, c->now, c->task[task].slot, device, bytes);
    fed(c);
}

/* ---- work that runs already ---- */

bool gpi_sched_has_run(const struct gpi_sched *c)
{
    return gpi_plan_has_run(c->plan);
}

bool gpi_sched_can_adopt(const struct gpi_sched *c, uint32_t task)
{
    const struct gpi_sched_record *t = &c->task[task];

    return t->state == GPI_RECORD_OWN && c->class[t->class].plan.residence == GPI_EXTERNAL &&
           (c->own.task[task].known == GPI_OWN_NOTHING || c->own.task[task].is_gone);
}

void gpi_external_adopt(struct gpi_sched *c, uint32_t task, const struct gpi_sched_adoption *a)
{
    struct gpi_sched_record *t = &c->task[task];
    struct gpi_outside *o = &c->external.task[task];
    const struct gpi_plan_adoption what = { .class = t->class,
                                            .has = a->has,
                                            .device = a->device,
                                            .limit = t->limit,
                                            .ends_by = GPI_NEVER };
    struct gpi_lease *l;
    bool is_out = false;

    assert(gpi_sched_can_adopt(c, task));
    (void)gpi_own_withdraw(c, task); /* the task that had the record before */
    l = begin(c, task, gpi_plan_adopt(c->plan, c->now, gpi_own_number(c, task), &what), a->device,
              a->has.devices);
    o->grants = a->grant;
    t->attempts = (uint8_t)a->attempts;
    t->expires = false;
    gpi_heap_remove(&c->expiries, task);
    fed(c);
    if (a->given_up) {
        gpi_record_end(c, task);
        t->state = GPI_RECORD_HELD;
        l->state = GPI_LEASE_HELD;
        return;
    }
    on_started(c, task, a->started_at);
    for (uint32_t i = 0; i < l->n_devices; i++)
        is_out |= c->device[l->device[i]].may >= GPI_MAY_OUT;
    if (is_out)
        harden(c, l, GPI_REVOKE_DEVICE);
}
