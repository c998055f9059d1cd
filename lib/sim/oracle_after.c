/* SPDX-License-Identifier: MIT */
/*
 * oracle_after.c - an event has its consequence at once: these rules hold as soon as the core has
 * no more orders for the event.  Without them, a time limit would repair, and so hide, many an
 * omission of the core.
 */
#include "base/clock.h"
#include "gpudispatch/dispatch.h"
#include "sim/oracle.h"

static void object(struct gpi_oracle *o, bool broken, const char *rule)
{
    if (broken)
        gpi_oracle_object(o, GPI_ORACLE_AFTER, rule);
}

/* ---- states ---- */

static uint32_t expected(const struct gpi_oracle *o, const struct gpi_book_slot *s)
{
    if (s->lost)
        return GPI_LIFE_LOST;
    if (s->kill == GPI_BOOK_KILL)
        return GPI_LIFE_KILL;
    if (s->kill == GPI_BOOK_KILL_AT)
        return GPI_LIFE_DOOMED;
    if (s->sweeping)
        return GPI_LIFE_SWEEP;
    if (s->ending)
        return GPI_LIFE_END;
    if (s->ready)
        return s->life == GPI_LIFE_LEAVE ? GPI_LIFE_LEAVE : GPI_LIFE_UP;
    return o->truth->executed && !s->answered ? GPI_LIFE_BOOT : GPI_LIFE_SETUP;
}

static const char *const wrong_state[GPI_LIVES] = {
    [GPI_LIFE_BOOT] = "a program that has not called yet is not in BOOT",
    [GPI_LIFE_SETUP] = "a worker in its setup is not in SETUP",
    [GPI_LIFE_UP] = "a worker that is ready is not UP",
    [GPI_LIFE_END] = "a worker that was told to end is not in END",
    [GPI_LIFE_DOOMED] = "a worker that may be spared is not DOOMED",
    [GPI_LIFE_KILL] = "a worker that is being killed is not in KILL",
    [GPI_LIFE_SWEEP] = "a worker that is being swept is not in SWEEP",
    [GPI_LIFE_LOST] = "a worker whose keeper is lost is not in LOST",
};

static bool is_well(const struct gpi_oracle *o, uint32_t slot)
{
    for (uint32_t d = 0; d < o->truth->devices; d++)
        if (gpi_book_has(o, slot, d) && o->device[d].may != GPI_MAY_OK)
            return false;
    return !gpi_book_drains(o, slot);
}

static void leaving(struct gpi_oracle *o, uint32_t slot)
{
    const struct gpi_book_slot *s = &o->slot[slot];
    const bool doubted = s->leave && !is_well(o, slot);

    object(o, doubted && s->life == GPI_LIFE_UP, "a worker that is to leave stays");
    object(o, s->life == GPI_LIFE_LEAVE && !s->leave && !o->truth->pooled,
           "a worker leaves, and nobody wants that");
    object(o, s->life == GPI_LIFE_LEAVE && s->sent == 0, "a worker that is to leave has no tasks");
    object(o, s->owes_stay && s->life == GPI_LIFE_LEAVE && !o->truth->pooled,
           "a worker leaves a device that is well again");
    object(o, s->leave && !s->ready && s->start != GPI_START_ONLY && s->kill == GPI_BOOK_SPARE &&
                  !s->lost && !s->sweeping, "a setup goes on where no worker is wanted");
}

static void with_worker(struct gpi_oracle *o, uint32_t slot)
{
    const struct gpi_book_slot *s = &o->slot[slot];
    const uint32_t life = expected(o, s);

    object(o, s->life != life && wrong_state[life], wrong_state[life]);
    object(o, s->owes_kill == GPI_WHY_DEVICE, "a worker on a failed device is not killed");
    object(o, s->owes_kill == GPI_WHY_PROTOCOL, "a worker that broke the protocol is not killed");
    object(o, s->owes_kill == GPI_WHY_CLEANUP, "a worker that cannot be told to end is not killed");
    object(o, s->owes_kill == GPI_WHY_CLOSE, "a worker is not killed at the close limit");
    leaving(o, slot);
}

/* ---- without a worker ---- */

static bool is_removed(const struct gpi_oracle *o, uint32_t slot)
{
    for (uint32_t d = 0; d < o->truth->devices; d++)
        if (gpi_book_has(o, slot, d) && o->device[d].removing)
            return true;
    return false;
}

static bool is_over(uint32_t life)
{
    return life == GPI_LIFE_REMOVED || life == GPI_LIFE_STUCK || life == GPI_LIFE_STOPPED ||
           life == GPI_LIFE_OFF;
}

static void empty_seat(struct gpi_oracle *o, uint32_t slot)
{
    const struct gpi_book_slot *s = &o->slot[slot];
    const bool barred = gpi_book_barred(o, slot), drains = gpi_book_drains(o, slot);

    object(o, gpi_life_has_worker(s->life), "a worker is gone, and its slot does not know");
    object(o, s->life == GPI_LIFE_BACKOFF || s->life == GPI_LIFE_PARKED ||
                  s->life == GPI_LIFE_FAILED || s->life == GPI_LIFE_REMOVED,
           "a seat is in a state of a slot");
    object(o, s->life == GPI_LIFE_WAIT && (drains || (barred && !s->only)),
           "a slot waits for a device that is out of use");
    object(o, s->life == GPI_LIFE_OFF && s->owed &&
                  o->truth->now < gpi_time_add(s->owed_since, o->truth->memory_wait),
           "a seat is free before the memory is back");
}

static void without_worker(struct gpi_oracle *o, uint32_t slot)
{
    const struct gpi_book_slot *s = &o->slot[slot];
    const bool barred = gpi_book_barred(o, slot), drains = gpi_book_drains(o, slot);
    const bool failed = s->noted & (1u << GPI_NOTE_SETUP_FAILED | 1u << GPI_NOTE_UNMADE |
                                    1u << GPI_NOTE_DIED_IDLE);

    object(o, gpi_life_has_worker(s->life), "a worker is gone, and its slot does not know");
    object(o, s->owes_life && (s->life == GPI_LIFE_OFF || s->life == GPI_LIFE_REMOVED) &&
                  !is_removed(o, slot), "a slot is wanted, and does not begin");
    object(o, failed && s->life == GPI_LIFE_WAIT && !s->just_parked,
           "a failure is followed by a start at once");
    object(o, failed && s->failures >= o->truth->failures_in_a_row && s->life != GPI_LIFE_FAILED &&
                  !is_over(s->life), "a slot that fails again and again is not given up");
    object(o, s->owes_pardon && s->life == GPI_LIFE_FAILED && !is_removed(o, slot),
           "a slot that had failed is not tried again");
    object(o, s->life == GPI_LIFE_BACKOFF && barred, "a slot does not park");
    object(o, s->life == GPI_LIFE_WAIT && (drains || (barred && !s->only)),
           "a slot waits for a device that is out of use");
    object(o, is_removed(o, slot) && !is_over(s->life),
           "a slot of a removed device is not removed");
    object(o, s->life == GPI_LIFE_REMOVED && s->keeper == GPI_BOOK_UP,
           "a removed slot keeps its keeper");
}

static bool winds_down(const struct gpi_oracle *o)
{
    return o->closed && !o->source && o->unended == 0;
}

static void slot(struct gpi_oracle *o, uint32_t i)
{
    struct gpi_book_slot *s = &o->slot[i];

    if (s->worker)
        with_worker(o, i);
    else if (o->truth->pooled)
        empty_seat(o, i);
    else
        without_worker(o, i);
    object(o, s->owes_judge & 1u << GPI_JUDGE_KILLED, "a kill is not reported to the device");
    object(o, s->owes_judge & 1u << GPI_JUDGE_FAULT, "a fault is not reported to the device");
    object(o, s->owes_judge & 1u << GPI_JUDGE_PASSED, "a canary passed, and nobody is told");
    object(o, s->owes_judge & 1u << GPI_JUDGE_FAILED, "a canary failed, and nobody is told");
    object(o, s->owes_judge & 1u << GPI_JUDGE_SURVIVED, "a survivor is not reported to the device");
    object(o, s->owes_note & 1u << GPI_NOTE_SURVIVED, "a survivor is not noted");
    object(o, s->owes_note & 1u << GPI_NOTE_UNMADE, "a failed start is not noted");
    object(o, s->owes_note & 1u << GPI_NOTE_DIED, "a death is not noted");
    object(o, s->owes_note & 1u << GPI_NOTE_DIED_IDLE, "a death between tasks is not noted");
    object(o, s->owes_reason && !winds_down(o), "a worker is replaced, and nobody is told");
    object(o, s->owes_read, "nobody watches the memory of a dead worker");
    s->owes_judge = s->owes_note = s->noted = 0;
    s->owes_read = s->owes_stay = s->owes_life = s->owes_pardon = s->owes_reason = false;
    s->owes_kill = 0;
}

/* ---- tasks ---- */

static bool lives(const struct gpi_book_slot *s)
{
    return s->kill == GPI_BOOK_SPARE && !s->lost && !s->sweeping;
}

/* As far as the host knows: the report of the worker's end may be on its way. */
static bool may_begin(const struct gpi_book_slot *s)
{
    return s->kill != GPI_BOOK_KILL && !s->lost && !s->sweeping;
}

/* Before a kill for this reason, the host takes back every task not begun, so that the core does
 * not charge it. */
static bool is_held(uint32_t why)
{
    return why == GPI_WHY_DEVICE || why == GPI_WHY_CLOSE || why == GPI_WHY_LIMIT ||
           why == GPI_WHY_CANCEL || why == GPI_WHY_STOPPED;
}

static void sent(struct gpi_oracle *o, uint32_t task)
{
    const struct gpi_book_task *t = &o->task[task];
    const struct gpi_truth_task *truth = &o->truth->task[task];
    const struct gpi_book_slot *s = &o->slot[t->slot];
    const bool now = o->closed && o->close == GPI_CLOSE_NOW;

    if (truth->unclaimed && may_begin(s)) {
        object(o, t->cancel, "a cancelled task can still begin");
        object(o, gpi_book_cancels(o), "a close leaves tasks that can still begin");
        object(o, s->life == GPI_LIFE_LEAVE, "a worker that is to leave can still begin tasks");
        object(o, s->still && lives(s), "a stopped worker keeps what it has not begun");
        object(o, s->kill == GPI_BOOK_KILL_AT, "a doomed worker can still begin tasks");
    } else if (truth->unclaimed) {
        object(o, s->kill == GPI_BOOK_KILL && is_held(s->why),
               "a worker that is being killed can still begin tasks");
    } else if (truth->running && lives(s) && !t->alarmed) {
        object(o, t->cancel, "a cancelled task is not told");
        object(o, now, "a close does not cancel what runs");
    }
}

static void task(struct gpi_oracle *o, uint32_t i)
{
    const struct gpi_book_task *t = &o->task[i];
    const struct gpi_truth_task *truth = &o->truth->task[i];

    switch (t->state) {
    case GPI_BOOK_SENT:
        sent(o, i);
        break;
    case GPI_BOOK_QUEUED:
    case GPI_BOOK_LATER:
        object(o, t->cancel, "a cancelled task is still queued");
        object(o, gpi_book_cancels(o), "a close leaves tasks in the queue");
        break;
    case GPI_BOOK_JUDGED: /* without an outcome, the core plans another attempt */
        object(o, !t->again, "an attempt ends, and nobody is told");
        object(o, t->final, "another attempt after an invalid result");
        object(o, t->cancel, "another attempt of a cancelled task");
        object(o, gpi_book_cancels(o), "another attempt after a close that starts nothing");
        object(o, t->broke && t->breaks > 1, "another attempt of a task that breaks workers");
        object(o, t->survived, "another attempt of a task that may still run");
        object(o, truth->starts >= truth->max_attempts, "another attempt, more than allowed");
        object(o, t->told == GPUD_OUTCOME_SUCCESS, "a success has no outcome");
        object(o, t->told == GPUD_OUTCOME_CANCELLED, "a cancelled task has no outcome");
        object(o, t->told == GPUD_OUTCOME_ERROR && !(truth->causes & GPUD_RETRY_ERROR),
               "another attempt after an error that allows none");
        object(o, t->told == GPUD_OUTCOME_TIMEOUT && !(truth->causes & GPUD_RETRY_TIMEOUT),
               "another attempt after a limit that allows none");
        object(o, t->killed && !truth->causes, "another attempt of a task that allows none");
        break;
    default:
        break;
    }
}

/* Objects to an outcome if the task's options allow another attempt. */
void gpi_after_ended(struct gpi_oracle *o, const struct gpi_sched_end *e)
{
    const struct gpi_book_task *t = &o->task[e->task];
    const struct gpi_truth_task *truth = &o->truth->task[e->task];
    uint32_t cause = 0;

    if (t->cancel || t->alarmed || t->was_alarmed || gpi_book_cancels(o) ||
        o->class[truth->class].ended)
        return;
    if (t->survived || t->breaks > 1 || t->final)
        return;
    if (truth->starts >= truth->max_attempts || e->phase == GPUD_PHASE_QUEUED)
        return;
    if (e->outcome == GPUD_OUTCOME_CRASHED)
        cause = t->device ? GPUD_RETRY_DEVICE : GPUD_RETRY_CRASH;
    else if (e->outcome == GPUD_OUTCOME_ERROR)
        cause = GPUD_RETRY_ERROR;
    else if (e->outcome == GPUD_OUTCOME_TIMEOUT)
        cause = GPUD_RETRY_TIMEOUT;
    object(o, truth->causes & cause, "no further attempt, though it is allowed");
}

void gpi_after_settled(struct gpi_oracle *o)
{
    for (uint32_t i = 0; i < o->truth->slots; i++) {
        gpi_oracle_about(o, i, GPI_NOWHERE);
        slot(o, i);
    }
    for (uint32_t i = 0; i < o->truth->tasks; i++) {
        gpi_oracle_about(o, o->task[i].slot, i);
        task(o, i);
    }
}
