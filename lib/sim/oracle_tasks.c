/* SPDX-License-Identifier: MIT */
/* oracle_tasks.c - the books of tasks: submitted, sent, ended. */
#include "base/clock.h"
#include "gpudispatch/dispatch.h"
#include "sim/oracle.h"

#define SLOT_NONE GPI_NOWHERE

static void leave_slot(struct gpi_oracle *o, struct gpi_book_task *t)
{
    if (t->slot != SLOT_NONE)
        o->slot[t->slot].sent--;
    t->slot = SLOT_NONE;
    t->was_alarmed = t->alarmed;
    t->alarmed = false;
}

void gpi_book_came_back(struct gpi_oracle *o, struct gpi_book_task *t)
{
    if (t->state != GPI_BOOK_SENT)
        return;
    leave_slot(o, t);
    t->state = GPI_BOOK_QUEUED;
    t->queued = o->truth->now;
}

void gpi_oracle_submitted(struct gpi_oracle *o, uint32_t task)
{
    const uint64_t given = o->truth->task[task].order, age = given ? given : o->youngest + 1;

    o->youngest = age > o->youngest ? age : o->youngest;
    o->task[task] = (struct gpi_book_task){ .state = GPI_BOOK_QUEUED,
                                            .slot = SLOT_NONE,
                                            .order = ++o->submitted,
                                            .age = age,
                                            .queued = o->truth->now };
    o->moved_at = o->truth->now;
    o->unended++;
    if (gpi_book_is_external(o, o->truth->task[task].class))
        gpi_outside_submitted(o, task);
}

/* The mean of all tasks of the class, as the core learns it. */
static void learn(struct gpi_oracle *o, uint32_t class, uint64_t run)
{
    uint64_t *mean = &o->class[class].mean_run;

    *mean = *mean ? *mean - *mean / 32 + run / 32 : run;
}

void gpi_oracle_attempt_ended(struct gpi_oracle *o, const struct gpi_sched_attempt *a)
{
    struct gpi_book_task *t = &o->task[a->task];
    const bool started = a->phase != GPUD_PHASE_QUEUED;

    if (t->state != GPI_BOOK_SENT) {
        gpi_oracle_object(o, GPI_ORACLE_SAFETY, "a task ended that no worker has");
        return;
    }
    o->slot[t->slot].served += started;
    if (started) {
        o->slot[t->slot].failures = 0;
        learn(o, o->truth->task[a->task].class, a->run);
    }
    o->slot[t->slot].heard = o->truth->now;
    leave_slot(o, t);
    t->state = GPI_BOOK_JUDGED;
    t->ended = o->truth->now;
    t->told = a->outcome;
    t->told_phase = a->phase;
    t->final = a->final;
}

/* The core has dealt with an attempt's end and has not ended the task: another attempt follows. */
void gpi_book_settle_task(struct gpi_oracle *o, uint32_t task)
{
    struct gpi_book_task *t = &o->task[task];
    const uint32_t starts = o->truth->task[task].starts;
    const uint64_t wait = gpi_time_doubled(o->truth->retry_backoff, starts ? starts - 1 : 0,
                                           o->truth->retry_cap);

    t->state = wait ? GPI_BOOK_LATER : GPI_BOOK_QUEUED;
    t->until = t->ended + wait;
    t->queued = o->truth->now;
    t->told = 0;
    t->killed = t->device = t->overdue = t->broke = t->survived = t->unread = t->again = false;
}

void gpi_oracle_ended(struct gpi_oracle *o, const struct gpi_sched_end *e)
{
    struct gpi_book_task *t;

    gpi_oracle_about(o, SLOT_NONE, e->task);
    o->moved_at = o->truth->now;
    if (e->task < o->truth->tasks && o->task[e->task].state != GPI_BOOK_FREE &&
        gpi_book_is_external(o, o->truth->task[e->task].class)) {
        gpi_outside_ended(o, e);
        return;
    }
    gpi_safety_ended(o, e);
    if (e->task >= o->truth->tasks || o->task[e->task].state == GPI_BOOK_FREE)
        return;
    t = &o->task[e->task];
    if (e->again) {
        t->again = true;
        t->wary |= t->broke && e->outcome == GPUD_OUTCOME_CRASHED;
        return;
    }
    gpi_after_ended(o, e);
    leave_slot(o, t);
    t->wary = false;
    t->state = GPI_BOOK_FREE;
    o->unended--;
}

void gpi_oracle_sent(struct gpi_oracle *o, const struct gpi_sched_order *sent)
{
    struct gpi_book_slot *s;
    struct gpi_book_task *t;

    gpi_oracle_about(o, sent->slot, sent->task);
    gpi_safety_sent(o, sent);
    if (sent->task >= o->truth->tasks || sent->slot >= o->truth->slots)
        return;
    t = &o->task[sent->task];
    s = &o->slot[sent->slot];
    if (t->slot != SLOT_NONE)
        return;
    o->moved_at = o->truth->now;
    t->state = GPI_BOOK_SENT;
    t->slot = sent->slot;
    t->number = ++s->number;
    if (s->sent++ == 0)
        s->heard = o->truth->now;
}

/* Charges the slot's tasks with their worker's end.  The tasks not begun came back before. */
void gpi_book_charge(struct gpi_oracle *o, uint32_t slot, bool survived, bool spoilt)
{
    const struct gpi_book_slot *s = &o->slot[slot];
    const bool together = s->sent > 1;

    for (uint32_t i = 0; i < o->truth->tasks; i++) {
        struct gpi_book_task *t = &o->task[i];
        if (t->state != GPI_BOOK_SENT || t->slot != slot)
            continue;
        t->killed = true;
        t->alone |= together;
        t->unread = s->unread;
        t->device = s->why == GPI_WHY_DEVICE;
        t->overdue = s->why == GPI_WHY_STOPPED;
        t->broke = s->why == GPI_WHY_PROTOCOL || spoilt;
        t->breaks += t->broke;
        t->survived = survived;
        leave_slot(o, t);
        t->state = GPI_BOOK_JUDGED;
        t->ended = o->truth->now;
    }
}
