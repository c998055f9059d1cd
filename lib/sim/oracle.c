/* SPDX-License-Identifier: MIT */
/* oracle.c - the entries of the oracles, and the core's orders in their books. */
#include "sim/oracle.h"

#include <stdio.h>

#include "base/clock.h"

#define SLOT_NONE GPI_NOWHERE

void gpi_oracle_about(struct gpi_oracle *o, uint32_t slot, uint32_t task)
{
    o->about_slot = slot;
    o->about_task = task;
}

bool gpi_oracle_object(struct gpi_oracle *o, enum gpi_oracle_kind kind, const char *rule)
{
    if (!o->objected) {
        (void)snprintf(o->rule, sizeof o->rule, "%s", rule);
        o->fault_at = o->truth->now;
        o->first = kind;
        o->fault_slot = o->about_slot;
        o->fault_task = o->about_task;
    }
    o->objected |= kind;
    return true;
}

static uint64_t overlap(uint64_t from, uint64_t to, uint64_t since, uint64_t until)
{
    const uint64_t begin = from > since ? from : since, end = to < until ? to : until;

    return end > begin ? end - begin : 0;
}

uint64_t gpi_oracle_lasts(const struct gpi_oracle *o, uint64_t since)
{
    const struct gpi_truth *t = o->truth;
    uint64_t lasts = t->now > since ? t->now - since : 0;

    for (uint32_t i = 0; lasts && i < t->n_stops; i++)
        lasts -= overlap(t->stop[i].from, t->stop[i].to, since, t->now);
    return lasts;
}

void gpi_oracle_init(struct gpi_oracle *o, const struct gpi_truth *truth)
{
    *o = (struct gpi_oracle){ .truth = truth, .close_at = GPI_NEVER };
    for (uint32_t i = 0; i < GPI_TRUTH_TASKS; i++)
        o->task[i].slot = SLOT_NONE;
    for (uint32_t i = 0; i < GPI_TRUTH_SLOTS; i++)
        o->slot[i].room = 64;
}

/* ---- orders of the core ---- */

static void started(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    struct gpi_book_slot *s = &o->slot[a->slot];

    gpi_book_forget_worker(s);
    s->worker = true;
    s->incarnation = a->incarnation;
    s->start = a->how;
    s->canary = a->how != GPI_START_PLAIN;
    s->owed = false;
    s->owes_judge = s->judged = 0;
}

static void ordered_kill(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    struct gpi_book_slot *s = &o->slot[a->slot];

    if (!s->worker)
        return; /* the core fences a keeper that wakes late */
    s->kill = a->kind == GPI_ACT_KILL ? GPI_BOOK_KILL : GPI_BOOK_KILL_AT;
    s->why = a->kind == GPI_ACT_KILL ? a->how : GPI_WHY_LIMIT;
    s->kill_at = a->at;
    if (a->kind == GPI_ACT_KILL)
        s->owes_kill = 0;
}

static void noted(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    if (a->slot != GPI_NOWHERE) {
        o->slot[a->slot].owes_note &= ~(1u << a->how);
        o->slot[a->slot].noted |= 1u << a->how;
        o->slot[a->slot].failures += a->how == GPI_NOTE_SETUP_FAILED ||
                                     a->how == GPI_NOTE_UNMADE || a->how == GPI_NOTE_DIED_IDLE;
    } else if (a->device < o->truth->devices) {
        o->device[a->device].noted = true;
    }
}

/* The removal of a device's last slot removes the device, too. */
static void remove_devices(struct gpi_oracle *o, uint32_t slot)
{
    for (uint32_t d = 0; d < o->truth->devices; d++) {
        bool used = !gpi_book_has(o, slot, d);
        for (uint32_t i = 0; i < o->truth->slots; i++)
            used |= gpi_book_has(o, i, d) && o->slot[i].life != GPI_LIFE_REMOVED &&
                    o->slot[i].life != GPI_LIFE_STUCK;
        o->device[d].noted &= used || o->device[d].removing;
        o->device[d].removing |= !used;
    }
}

/* Whether a canary was due when the core decided.  Later changes by a reply do not count. */
static bool canary_was_due(const struct gpi_oracle *o, uint32_t slot)
{
    for (uint32_t d = 0; d < o->truth->devices; d++)
        if (gpi_book_has(o, slot, d) && (o->device[d].due || o->device[d].was_due))
            return true;
    return false;
}

static bool has_changed(const struct gpi_oracle *o, uint32_t slot)
{
    for (uint32_t d = 0; d < o->truth->devices; d++)
        if (gpi_book_has(o, slot, d) && o->device[d].changed)
            return true;
    return false;
}

/* A canary has begun or ended: no canary of the device is due until the next TRY. */
static void canary_done(struct gpi_oracle *o, uint32_t slot)
{
    for (uint32_t d = 0; d < o->truth->devices; d++)
        o->device[d].due &= !gpi_book_has(o, slot, d);
}

static void enter(struct gpi_oracle *o, struct gpi_book_slot *s, uint32_t life)
{
    const uint32_t number = (uint32_t)(s - o->slot) + 1;
    const uint32_t class = o->truth->slot[number - 1].class;
    const bool was_only = s->only || (gpi_life_has_worker(s->life) && s->start == GPI_START_ONLY);
    const bool parked = s->life == (o->truth->pooled ? GPI_LIFE_OFF : GPI_LIFE_PARKED);
    const bool begins = parked && canary_was_due(o, number - 1);

    if (life == GPI_LIFE_WAIT && s->life == GPI_LIFE_PARKED && !has_changed(o, number - 1) &&
        gpi_book_barred(o, number - 1) && !gpi_book_can_try(o, number - 1))
        gpi_oracle_object(o, GPI_ORACLE_SAFETY, "a canary that is not due");
    s->only = life == GPI_LIFE_WAIT && (was_only || begins);
    if (s->only || (was_only && !gpi_life_has_worker(life)))
        canary_done(o, number - 1);
    o->moved_at = o->truth->now;
    if (s->life != life)
        s->life_since = o->truth->now;
    if (life == GPI_LIFE_OFF)
        s->wanted = false;
    if (life == GPI_LIFE_STOPPED) /* before the failure of its start, which was fed meanwhile */
        s->owes_note &= ~(1u << GPI_NOTE_UNMADE);
    s->life = life;
    s->just_parked |= life == GPI_LIFE_PARKED;
    if (life == GPI_LIFE_REMOVED)
        remove_devices(o, number - 1);
    if (life == GPI_LIFE_WAIT && o->truth->pooled && parked && !s->only)
        gpi_outside_seated(o, number - 1);
    if (o->class[class].renewing == number &&
        (life == GPI_LIFE_UP || life == GPI_LIFE_OFF ||
         (life >= GPI_LIFE_PARKED && life != GPI_LIFE_COOL)))
        o->class[class].renewing = 0;
}

static void for_order(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    struct gpi_book_slot *s = a->slot < o->truth->slots ? &o->slot[a->slot] : NULL;

    if (a->kind == GPI_ACT_NOTE)
        noted(o, a);
    if (!s)
        return;
    if (a->kind == GPI_ACT_NOTE && a->how == GPI_NOTE_GIVEN_UP)
        o->class[o->truth->slot[a->slot].class].given_up = true;
    switch (a->kind) {
    case GPI_ACT_MAKE:
        s->keeper = GPI_BOOK_ASKED;
        s->keeper_since = o->truth->now;
        s->pending = a->kind;
        break;
    case GPI_ACT_DISMISS:
        s->keeper = GPI_BOOK_LOST;
        s->keeper_since = o->truth->now;
        break;
    case GPI_ACT_START:
        started(o, a);
        s->pending = a->kind;
        break;
    case GPI_ACT_KILL:
    case GPI_ACT_KILL_AT:
        ordered_kill(o, a);
        s->pending = a->kind;
        break;
    case GPI_ACT_END:
        s->pending = a->kind;
        if (s->noted & 1u << GPI_NOTE_RENEWED)
            o->class[o->truth->slot[a->slot].class].renewing = a->slot + 1;
        else
            s->owes_reason = o->deciding && s->sent == 0 && !s->leave && !o->truth->pooled;
        break;
    case GPI_ACT_READ_MEMORY:
        s->owed = true;
        s->owes_read = false;
        break;
    case GPI_ACT_JUDGE:
        s->judged |= 1u << a->how;
        s->owes_judge &= ~(1u << a->how);
        if (a->how == GPI_JUDGE_PASSED || a->how == GPI_JUDGE_FAILED)
            s->canary = false;
        break;
    case GPI_ACT_SEAT:
        s->wanted = true;
        break;
    case GPI_ACT_LIFE:
        enter(o, s, a->how);
        break;
    default:
        break;
    }
}

static void alarmed(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    if (a->task >= o->truth->tasks)
        return;
    o->task[a->task].alarmed = true;
    o->task[a->task].alarm = o->truth->now;
}

void gpi_oracle_ordered(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    gpi_oracle_about(o, a->slot, SLOT_NONE);
    if (!o->fed_at)
        o->fed_at = o->truth->now;
    if (a->kind == GPI_ACT_GRANT || a->kind == GPI_ACT_GRANT_ON || a->kind == GPI_ACT_REVOKE) {
        gpi_oracle_about(o, SLOT_NONE, a->task);
        gpi_outside_ordered(o, a);
        return;
    }
    gpi_safety_ordered(o, a);
    if (a->kind == GPI_ACT_PROMISE)
        gpi_outside_promised(o, a);
    for_order(o, a);
    if (a->kind == GPI_ACT_ALARM) /* the alarm's time is new if a hard cancel follows a soft one */
        alarmed(o, a);
}

void gpi_oracle_decides(struct gpi_oracle *o, bool deciding)
{
    o->deciding = deciding;
    o->decided_at = o->truth->now;
}

void gpi_oracle_settled(struct gpi_oracle *o)
{
    gpi_after_settled(o);
    gpi_outside_settled(o);
    o->close_passes = false;
    for (uint32_t i = 0; i < o->truth->slots; i++)
        o->slot[i].just_lost = o->slot[i].just_over = o->slot[i].just_parked = false;
    for (uint32_t i = 0; i < o->truth->devices; i++)
        {
        o->device[i].was_due = o->device[i].due;
        o->device[i].changed = false;
    }
    for (uint32_t i = 0; i < o->truth->tasks; i++)
        if (o->task[i].state == GPI_BOOK_JUDGED)
            gpi_book_settle_task(o, i);
}

void gpi_oracle_turned(struct gpi_oracle *o)
{
    for (uint32_t i = 0; i < o->truth->tasks; i++)
        if (o->task[i].state == GPI_BOOK_LATER &&
            o->task[i].until + 100 * GPI_US <= o->truth->now) {
            o->task[i].state = GPI_BOOK_QUEUED;
            o->task[i].queued = o->truth->now;
        }
    gpi_limits_turned(o);
    gpi_outside_turned(o);
}
