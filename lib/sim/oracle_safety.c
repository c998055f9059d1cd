/* SPDX-License-Identifier: MIT */
/* oracle_safety.c - rules that the core must never break. */
#include "base/clock.h"
#include "gpudispatch/dispatch.h"
#include "sim/oracle.h"

static void object(struct gpi_oracle *o, bool broken, const char *rule)
{
    if (broken)
        gpi_oracle_object(o, GPI_ORACLE_SAFETY, rule);
}

/* If a wait ended while the host was stopped, the core extends it by one second, because no process
 * could reply.  Returns true within that second. */
static bool is_rushed(const struct gpi_oracle *o, uint64_t since, uint64_t limit)
{
    const uint64_t deadline = gpi_time_add(since, limit);

    for (uint32_t i = 0; i < o->truth->n_stops; i++)
        if (o->truth->stop[i].from <= deadline &&
            o->truth->stop[i].to > gpi_time_add(deadline, 100 * GPI_MS) &&
            o->truth->now < o->truth->stop[i].to + 900 * GPI_MS)
            return true;
    return false;
}

/* ---- keepers and workers ---- */

static void make(struct gpi_oracle *o, const struct gpi_book_slot *s)
{
    object(o, !o->deciding, "MAKE outside of a decision");
    object(o, s->keeper != GPI_BOOK_NONE, "MAKE for a slot that has a keeper");
    object(o, o->spawner_gone, "MAKE, and the spawner is gone");
    object(o, gpi_book_makes(o) >= o->truth->makes, "too many requests to the spawner");
    object(o, !s->wanted, "MAKE for a slot that nobody wanted");
}

static bool has_device(const struct gpi_oracle *o, uint32_t slot, uint32_t may)
{
    for (uint32_t d = 0; d < o->truth->devices; d++)
        if (gpi_book_has(o, slot, d) && o->device[d].may == may)
            return true;
    return false;
}

static void start_on_device(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    const bool out = has_device(o, a->slot, GPI_MAY_OUT);
    const bool watched = o->truth->slot[a->slot].watched;

    object(o, has_device(o, a->slot, GPI_MAY_DEAD) && a->how != GPI_START_ONLY,
           "START on a dead device");
    object(o, out && a->how != GPI_START_ONLY, "START on a device that is out of use");
    object(o, gpi_book_drains(o, a->slot), "START on a device that is drained or removed");
    object(o, gpi_book_on_paused(o, a->slot) && a->how != GPI_START_ONLY,
           "START on a device that is paused");
    object(o, !watched && a->how != GPI_START_PLAIN, "a canary on a CPU slot");
    object(o, a->how == GPI_START_PLAIN && has_device(o, a->slot, GPI_MAY_DOUBT),
           "START without a canary on a doubted device");
}

/* Each class of a seat with the device needs its memory there, or all of it, unless its tasks have
 * requests of their own. */
static void memory(struct gpi_oracle *o, uint32_t device)
{
    uint64_t sum = 0;
    uint32_t n = 0;
    bool alone = false;

    for (uint32_t i = 0; i < o->truth->slots; i++) {
        const struct gpi_request *need = &o->truth->class[o->truth->slot[i].class].need[0];
        if (!gpi_book_has(o, i, device) || o->truth->own[o->truth->slot[i].class] ||
            gpi_book_is_canary(&o->slot[i]) ||
            (o->slot[i].life == GPI_LIFE_STUCK && o->slot[i].start == GPI_START_ONLY))
            continue;
        n++;
        alone |= need->memory == GPI_MEMORY_ALL;
        sum += need->memory == GPI_MEMORY_ALL ? 0 : need->memory;
    }
    object(o, sum > o->truth->usable[device], "more memory than the device has");
    object(o, alone && n > 1, "a worker beside one that has all memory");
}

static void start(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    const struct gpi_book_slot *s = &o->slot[a->slot];

    object(o, !o->deciding, "START outside of a decision");
    object(o, s->keeper != GPI_BOOK_UP, "START without a keeper");
    object(o, s->worker, "START beside a living worker");
    object(o, a->incarnation != s->begun + 1, "START with a life that is not the next");
    object(o, s->life == GPI_LIFE_FAILED || s->life == GPI_LIFE_STUCK ||
                  s->life == GPI_LIFE_REMOVED || s->life == GPI_LIFE_STOPPED || !s->wanted,
           "START for a slot that is to have no worker");
    object(o, s->owed && o->truth->now - s->owed_since < o->truth->memory_wait,
           "START before the memory is back");
    object(o, gpi_book_setups(o) >= o->truth->setup_concurrency, "too many setups at a time");
    object(o, gpi_book_cancels(o), "START after a close that starts nothing");
    object(o, o->closed && !o->source && o->unended == 0, "START, and nothing is to come");
    start_on_device(o, a);
    for (uint32_t i = 0; o->truth->pooled && a->how != GPI_START_ONLY &&
                         i < o->truth->slot[a->slot].n_devices;
         i++)
        memory(o, o->truth->slot[a->slot].device[i]);
}

static bool is_cancel_over(const struct gpi_oracle *o, uint32_t slot)
{
    for (uint32_t i = 0; i < o->truth->tasks; i++) {
        const struct gpi_book_task *t = &o->task[i];
        if (t->state == GPI_BOOK_SENT && t->slot == slot && t->alarmed &&
            o->truth->now + GPI_MS >= gpi_time_add(t->alarm, o->truth->grace))
            return true;
    }
    return false;
}

static void kill_order(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    const struct gpi_book_slot *s = &o->slot[a->slot];

    if (s->life == GPI_LIFE_STUCK || s->just_over)
        return; /* for a keeper that wakes late: it must find no reason to spare the worker */
    object(o, !s->worker, "a kill without a worker");
    object(o, s->keeper != GPI_BOOK_UP && !s->just_lost, "a kill without a keeper");
    object(o, s->kill == GPI_BOOK_KILL, "a kill after a kill");
    object(o, a->kind == GPI_ACT_KILL && a->how == GPI_WHY_SETUP &&
                  is_rushed(o, s->began, gpi_book_setup_limit(o, a->slot)),
           "a setup is killed that nobody could report");
    object(o, a->kind == GPI_ACT_KILL && a->how == GPI_WHY_CLEANUP && s->ending &&
                  !o->close_passed && is_rushed(o, s->since, o->truth->cleanup_limit),
           "a cleanup is killed that nobody could report");
    if (a->kind == GPI_ACT_KILL && a->how == GPI_WHY_CANCEL)
        object(o, !is_cancel_over(o, a->slot), "a kill for a cancel before the grace");
    if (a->kind != GPI_ACT_KILL_AT)
        return;
    if (a->task >= o->truth->tasks) {
        object(o, true, "KILL_AT without a task");
        return;
    }
    if (o->task[a->task].slot == GPI_NOWHERE && o->task[a->task].ended >= o->fed_at)
        return; /* it has ended since the core ordered that, and its worker is spared */
    object(o, a->at + GPI_MS < gpi_time_add(o->truth->task[a->task].soft_at, o->truth->grace) &&
                  !o->truth->slot[a->slot].stopped, "KILL_AT before the limit and the grace");
    object(o, o->task[a->task].slot != a->slot, "KILL_AT for a task of another worker");
    object(o, !o->truth->task[a->task].running, "KILL_AT for a task that does not run");
    object(o, o->truth->task[a->task].unclaimed, "KILL_AT for a task that has not begun");
}

static void end_order(struct gpi_oracle *o, const struct gpi_book_slot *s)
{
    object(o, !s->worker || !s->ready, "END without a worker that is ready");
    object(o, s->sent > 0, "END for a worker that has tasks");
    object(o, s->ending || s->kill != GPI_BOOK_SPARE || s->lost || s->sweeping,
           "END for a worker that is ending");
}

static void give_up(struct gpi_oracle *o, uint32_t slot)
{
    const struct gpi_book_slot *s = &o->slot[slot];
    const uint64_t lasts = o->truth->now > s->since ? o->truth->now - s->since : 0;

    if (s->just_over)
        return;
    object(o, !s->worker, "GIVE_UP without a worker");
    object(o, s->kill == GPI_BOOK_SPARE && !s->lost && !s->sweeping,
           "GIVE_UP on a worker that nobody kills");
    object(o, lasts < o->truth->slot[slot].kill_limit && !(s->lost && o->spawner_gone),
           "GIVE_UP before the kill limit");
    object(o, is_rushed(o, s->since, o->truth->slot[slot].kill_limit) &&
                  !(s->lost && o->spawner_gone), "GIVE_UP of a worker that nobody could report");
}

static void drop_spawner(struct gpi_oracle *o)
{
    bool late = false;

    for (uint32_t i = 0; i < o->truth->slots; i++) {
        const struct gpi_book_slot *s = &o->slot[i];
        if (s->keeper != GPI_BOOK_ASKED && s->keeper != GPI_BOOK_LOST)
            continue;
        late |= o->truth->now - s->keeper_since >= o->truth->reply_limit &&
                !is_rushed(o, s->keeper_since, o->truth->reply_limit);
        late |= s->keeper == GPI_BOOK_LOST &&
                o->truth->now - s->keeper_since >= o->truth->slot[i].kill_limit;
    }
    object(o, !late, "DROP_SPAWNER, and no reply is late");
    object(o, o->spawner_gone, "DROP_SPAWNER, and it is gone");
}

/* ---- reports of the core ---- */

static void judge(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    const struct gpi_book_slot *s = &o->slot[a->slot];

    object(o, !o->truth->slot[a->slot].watched, "JUDGE of a CPU slot");
    object(o, a->how >= 32, "JUDGE of no kind");
    object(o, (a->how == GPI_JUDGE_PASSED || a->how == GPI_JUDGE_FAILED) &&
                  s->start == GPI_START_PLAIN, "JUDGE of a canary that was not run");
}

static bool device_is(const struct gpi_oracle *o, uint32_t device, bool with_worker)
{
    for (uint32_t i = 0; i < o->truth->slots; i++) {
        const struct gpi_book_slot *s = &o->slot[i];
        if (!gpi_book_has(o, i, device))
            continue;
        if (with_worker ? s->worker : s->life != GPI_LIFE_REMOVED && s->life != GPI_LIFE_STUCK)
            return true;
    }
    return false;
}

static void given_up(struct gpi_oracle *o, const struct gpi_book_slot *s)
{
    object(o, !o->truth->pooled && !o->spawner_gone && s->failures < o->truth->failures_in_a_row,
           "a slot is given up before its time");
}

static void note(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    if (a->slot < o->truth->slots) {
        if (a->how == GPI_NOTE_GIVEN_UP)
            given_up(o, &o->slot[a->slot]);
        return;
    }
    if (a->device >= o->truth->devices) {
        object(o, true, "NOTE of no slot and no device");
        return;
    }
    object(o, o->device[a->device].noted, "a device is reported twice");
    object(o, gpi_book_leased(o, a->device), "a device is drained, and has external work");
    object(o, a->how == GPI_NOTE_DRAINED && device_is(o, a->device, true),
           "a device is drained, and has a worker");
    object(o, a->how == GPI_NOTE_REMOVED && device_is(o, a->device, false),
           "a device is removed, and has a slot");
}

static void task_order(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    const struct gpi_book_task *t;

    if (a->task >= o->truth->tasks) {
        object(o, true, "an order for no task");
        return;
    }
    t = &o->task[a->task];
    object(o, t->state != GPI_BOOK_SENT || t->slot != a->slot,
           "an order for a task of another worker");
    if (a->kind != GPI_ACT_ALARM)
        return;
    object(o, !t->cancel && o->close < GPI_CLOSE_NOW, "ALARM for a task that nobody cancels");
    object(o, a->how == GPI_CANCEL_HARD && !t->hard && o->close < GPI_CLOSE_NOW,
           "a hard ALARM for a task that is cancelled softly");
    object(o, a->how == GPI_CANCEL_SOFT && t->hard,
           "a soft ALARM for a task that is to be stopped");
}

static void promise(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    object(o, a->task >= o->truth->tasks || !gpi_book_waits(o, a->task),
           "a promise for a task that does not wait");
    object(o, a->at < o->fed_at, "a promise that has passed");
}

void gpi_safety_ordered(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    if (a->kind == GPI_ACT_DROP_SPAWNER) {
        drop_spawner(o);
        return;
    }
    if (a->kind == GPI_ACT_NOTE) {
        note(o, a);
        return;
    }
    if (a->kind == GPI_ACT_PROMISE) {
        promise(o, a);
        return;
    }
    if (a->slot >= o->truth->slots) {
        object(o, true, "an order for no slot");
        return;
    }
    switch (a->kind) {
    case GPI_ACT_MAKE:
        make(o, &o->slot[a->slot]);
        break;
    case GPI_ACT_DISMISS:
        object(o, o->slot[a->slot].keeper != GPI_BOOK_UP, "DISMISS without a keeper");
        object(o, o->slot[a->slot].worker, "DISMISS of a keeper with a worker");
        break;
    case GPI_ACT_START:
        start(o, a);
        break;
    case GPI_ACT_KILL:
    case GPI_ACT_KILL_AT:
        kill_order(o, a);
        break;
    case GPI_ACT_END:
        end_order(o, &o->slot[a->slot]);
        break;
    case GPI_ACT_GIVE_UP:
        give_up(o, a->slot);
        break;
    case GPI_ACT_LOOK:
    case GPI_ACT_HOLD:
        object(o, !o->slot[a->slot].worker, "a look at no worker");
        break;
    case GPI_ACT_RECALL:
    case GPI_ACT_ALARM:
        task_order(o, a);
        break;
    case GPI_ACT_READ_MEMORY:
        object(o, !o->truth->slot[a->slot].watched, "READ_MEMORY of a CPU slot");
        object(o, o->slot[a->slot].worker, "READ_MEMORY beside a living worker");
        break;
    case GPI_ACT_JUDGE:
        judge(o, a);
        break;
    case GPI_ACT_LIFE:
        object(o, a->how == GPI_LIFE_WAIT && o->slot[a->slot].life == GPI_LIFE_BACKOFF &&
                      o->truth->now - o->slot[a->slot].life_since + GPI_MS < o->truth->backoff,
               "a start before its backoff is over");
        break;
    default:
        break;
    }
}

/* ---- sending ---- */

static void sent_in_order(struct gpi_oracle *o, uint32_t task)
{
    const struct gpi_book_task *t = &o->task[task];
    const int32_t priority = o->truth->task[task].priority;

    for (uint32_t i = 0; i < o->truth->tasks; i++) {
        const struct gpi_book_task *u = &o->task[i];
        if (i == task || u->state != GPI_BOOK_QUEUED ||
            o->truth->task[i].class != o->truth->task[task].class || o->truth->task[i].n_requests)
            continue;
        object(o, o->truth->task[i].priority > priority, "sent before one of a higher priority");
        object(o, u->age < t->age && o->truth->task[i].priority == priority,
               "sent before an older one");
    }
}

/* Returns how many numbers the sends at this worker would span with another one. */
static uint64_t numbers(const struct gpi_oracle *o, uint32_t slot)
{
    uint64_t oldest = o->slot[slot].number + 1;

    for (uint32_t i = 0; i < o->truth->tasks; i++)
        if (o->task[i].state == GPI_BOOK_SENT && o->task[i].slot == slot)
            oldest = gpi_time_min(oldest, o->task[i].number);
    return o->slot[slot].number + 1 - oldest;
}

/* Each worker may have the tasks of the other one.  In a pooled core that depends on the plan. */
static bool compete(const struct gpi_oracle *o, uint32_t a, uint32_t b)
{
    return !o->truth->pooled && o->truth->slot[a].class == o->truth->slot[b].class;
}

/* Whether worker `i` should have got a task instead of the worker of `slot`. */
static bool is_passed_over(const struct gpi_oracle *o, uint32_t i, uint32_t slot)
{
    const struct gpi_book_slot *s = &o->slot[i];
    const bool due = o->truth->max_tasks && s->served >= o->truth->max_tasks;

    if (!compete(o, i, slot) || !gpi_book_takes(o, i) || !gpi_book_has_life(o, i) ||
        s->sent >= gpi_book_least(o, i) ||
        numbers(o, i) >= 64 || (s->sent && !gpi_book_lively(o, i)))
        return false;
    return s->sent < o->slot[slot].sent ||
           (i < slot && !due && s->sent == o->slot[slot].sent);
}

static void sent_to_worker(struct gpi_oracle *o, uint32_t slot)
{
    const struct gpi_book_slot *s = &o->slot[slot];

    object(o, !s->worker || !s->ready, "a send to no worker");
    object(o, s->life != GPI_LIFE_UP, "a send to a slot that is not UP");
    object(o, s->kill != GPI_BOOK_SPARE || s->ending || s->lost || s->sweeping,
           "a send to a worker that is ending");
    object(o, s->still, "a send to a worker that is stopped");
    object(o, gpi_book_paused(o, slot), "a send to a worker that is paused");
    object(o, gpi_book_drains(o, slot), "a send to a device that is drained or removed");
    object(o, s->leave && gpi_book_barred(o, slot), "a send to a worker that is to leave");
    object(o, s->sent >= gpi_book_most(o, slot), "too many tasks at a worker");
    object(o, !gpi_book_has_life(o, slot), "more tasks for a worker than its life may have");
    object(o, numbers(o, slot) >= 64, "a send number that is still in use");
    for (uint32_t i = 0; i < o->truth->slots; i++) {
        object(o, is_passed_over(o, i, slot), "a send to a worker with more tasks than another");
        object(o, compete(o, i, slot) && gpi_book_takes(o, i) && gpi_book_lively(o, i) &&
                      gpi_book_stuck(o, slot),
               "a send to a stuck worker");
    }
}

/* The worker has as many devices as a request of the task. */
static bool is_asked(const struct gpi_oracle *o, uint32_t slot, uint32_t task)
{
    const struct gpi_truth_task *t = &o->truth->task[task];
    bool asked = false;

    for (uint32_t i = 0; i < t->n_requests; i++)
        asked |= t->request[i].devices == o->truth->slot[slot].n_devices;
    return asked;
}

static void sent_with(struct gpi_oracle *o, const struct gpi_sched_order *s)
{
    const struct gpi_book_slot *b = &o->slot[s->slot];
    const uint32_t most = gpi_book_renews(o, s->slot) ? 0 : o->truth->max_tasks;

    object(o, s->alone != (o->task[s->task].alone || gpi_book_wary(o)),
           "a task may share a batch, or may not, against its history");
    object(o, s->last != (most && b->served + b->sent + 1 >= most),
           "a worker is misled about its last task");
}

void gpi_safety_sent(struct gpi_oracle *o, const struct gpi_sched_order *s)
{
    const uint32_t slot = s->slot, task = s->task;
    const struct gpi_book_task *t;

    if (slot >= o->truth->slots || task >= o->truth->tasks || s->cell >= 64) {
        object(o, true, "a send of nothing");
        return;
    }
    t = &o->task[task];
    object(o, o->truth->task[task].class != o->truth->slot[slot].class,
           "a send to a worker of another class");
    object(o, t->slot != GPI_NOWHERE, "a task is sent to two workers");
    object(o, t->state == GPI_BOOK_FREE, "a send of a task that has ended");
    object(o, t->state == GPI_BOOK_LATER && t->until > o->truth->now,
           "another attempt before its time");
    object(o, t->cancel, "a send of a cancelled task");
    object(o, o->truth->task[task].starts >= o->truth->task[task].max_attempts,
           "more attempts than allowed");
    object(o, gpi_book_cancels(o), "a send after a close that starts nothing");
    sent_to_worker(o, slot);
    if (o->truth->task[task].n_requests) /* the plan has chosen it: slow.h has its order */
        object(o, !is_asked(o, slot, task), "a send to devices that the task has not asked for");
    else
        sent_in_order(o, task);
    sent_with(o, s);
    gpi_outside_sent(o, slot);
}

/* ---- outcomes ---- */

static bool can_time_out(const struct gpi_oracle *o, const struct gpi_book_task *t,
                         const struct gpi_truth_task *truth)
{
    if (t->told == GPUD_OUTCOME_TIMEOUT)
        return true;
    if (t->killed)
        return !t->unread && (t->overdue || truth->soft_at <= o->truth->now);
    return t->told == 0 && truth->expires <= o->truth->now && truth->starts == 0;
}

static bool all_are_useless(const struct gpi_oracle *o, uint32_t task)
{
    const uint32_t class = o->truth->task[task].class;

    if (o->truth->pooled)
        return o->class[class].given_up || !gpi_book_could_fit(o, task);
    for (uint32_t i = 0; i < o->truth->slots; i++)
        if (o->truth->slot[i].class == class && !gpi_book_useless(o, i) &&
            o->slot[i].life != GPI_LIFE_STOPPED)
            return false;
    return true;
}

static bool is_phase(const struct gpi_book_task *t, const struct gpi_sched_end *e)
{
    if (e->outcome == GPUD_OUTCOME_NO_WORKER)
        return e->phase == GPUD_PHASE_QUEUED; /* the task waited for its next attempt */
    if (t->told)
        return e->phase == t->told_phase;
    if (!t->killed)
        return e->phase == GPUD_PHASE_QUEUED;
    if (t->survived)
        return e->phase == GPUD_PHASE_KILL;
    if (e->outcome == GPUD_OUTCOME_CANCELLED)
        return e->phase == GPUD_PHASE_HARD || e->phase == GPUD_PHASE_PROCESS;
    return e->phase == (e->outcome == GPUD_OUTCOME_TIMEOUT ? GPUD_PHASE_HARD : GPUD_PHASE_PROCESS);
}

static void plausible(struct gpi_oracle *o, const struct gpi_sched_end *e)
{
    const struct gpi_book_task *t = &o->task[e->task];
    const struct gpi_truth_task *truth = &o->truth->task[e->task];
    const bool cancelled = t->cancel || gpi_book_cancels(o) || o->close_at <= o->truth->now ||
                           (o->closed && truth->starts == 0 && o->source) ||
                           o->class[truth->class].ended;

    switch (e->outcome) {
    case GPUD_OUTCOME_SUCCESS:
    case GPUD_OUTCOME_ERROR:
        object(o, t->told != e->outcome, "an outcome that no worker reported");
        break;
    case GPUD_OUTCOME_TIMEOUT:
        object(o, !can_time_out(o, t, truth), "TIMEOUT, and no limit has passed");
        break;
    case GPUD_OUTCOME_CRASHED:
        object(o, !t->killed, "CRASHED, and its worker did not die");
        break;
    case GPUD_OUTCOME_CANCELLED:
        object(o, t->told != e->outcome && !cancelled, "CANCELLED, and nobody cancelled it");
        break;
    case GPUD_OUTCOME_NO_WORKER:
        object(o, !all_are_useless(o, e->task), "NO_WORKER, and a slot can have one");
        break;
    default:
        object(o, true, "an outcome that is none");
    }
}

void gpi_safety_ended(struct gpi_oracle *o, const struct gpi_sched_end *e)
{
    const struct gpi_book_task *t;

    if (e->task >= o->truth->tasks || o->task[e->task].state == GPI_BOOK_FREE) {
        object(o, true, "an outcome for a task that has ended");
        return;
    }
    t = &o->task[e->task];
    object(o, t->state == GPI_BOOK_SENT, "an outcome for a task that a worker has");
    object(o, e->attempts != o->truth->task[e->task].starts,
           "not as many attempts as workers began");
    object(o, t->told && t->told == GPUD_OUTCOME_SUCCESS && e->outcome != GPUD_OUTCOME_SUCCESS,
           "a success got another outcome");
    object(o, !is_phase(t, e), "a phase that the task was not in");
    object(o, e->again && t->state != GPI_BOOK_JUDGED, "another attempt, and none has ended");
    object(o, e->again && t->again, "the end of an attempt is reported twice");
    plausible(o, e);
}
