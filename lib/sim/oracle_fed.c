/* SPDX-License-Identifier: MIT */
/* oracle_fed.c - inputs of the core, in the books of the oracles. */
#include "base/clock.h"
#include "sim/oracle.h"

/* ---- a worker's life ---- */

static void judge_canary(struct gpi_book_slot *s, const struct gpi_sched_event *e)
{
    const bool excused = s->why == GPI_WHY_CLOSE || s->why == GPI_WHY_DEVICE;

    if (s->start == GPI_START_PLAIN || !s->canary || excused)
        return;
    if (e->how & GPI_EXITED_PASSED)
        s->owes_judge |= 1u << GPI_JUDGE_PASSED;
    if (e->how & GPI_EXITED_FAILED)
        s->owes_judge |= 1u << GPI_JUDGE_FAILED;
}

/* Whether a worker died without an order of the core, and neither a task nor a device caused it. */
static bool died_alone(const struct gpi_oracle *o, uint32_t slot, const struct gpi_sched_event *e)
{
    const struct gpi_book_slot *s = &o->slot[slot];

    const bool ordered = s->kill == GPI_BOOK_KILL || (s->kill == GPI_BOOK_KILL_AT && s->lost);

    return !ordered && !s->ending && s->ready && s->sent == 0 &&
           !(e->how & (GPI_EXITED_FAULT | GPI_EXITED_SPOILT)) && e->kind == GPI_EV_EXITED &&
           !s->leave;
}

void gpi_book_forget_worker(struct gpi_book_slot *s)
{
    s->worker = s->answered = s->ready = s->ending = s->sweeping = s->lost = s->still = false;
    s->leave = s->canary = s->unread = false;
    s->kill = GPI_BOOK_SPARE;
    s->why = GPI_WHY_NO;
    s->owes_kill = 0;
    s->sent = s->served = s->pending = 0;
    s->ready_at = 0;
}

/* If no process is left to prove a worker's death, the worker may live.  On a CPU slot, the death
 * of the keeper has killed the worker. */
static bool survives(const struct gpi_oracle *o, uint32_t slot, const struct gpi_sched_event *e)
{
    const bool watched = o->truth->slot[slot].watched;

    if (e->kind == GPI_EV_SPAWNER_GONE)
        return watched;
    return e->kind == GPI_EV_SURVIVED && !(o->slot[slot].lost && o->spawner_gone && !watched);
}

/* Whether the worker died since it had overwritten its page.  A kill is the better reason. */
static bool died_spoilt(const struct gpi_book_slot *s, const struct gpi_sched_event *e)
{
    const bool executed = s->lost ? !s->unread : e->how & GPI_EXITED_BY_US; /* a KILL_AT */
    const bool own = s->kill == GPI_BOOK_SPARE || (s->kill == GPI_BOOK_KILL_AT && !executed);

    return e->kind == GPI_EV_EXITED && e->how & GPI_EXITED_SPOILT && own;
}

static void worker_over(struct gpi_oracle *o, uint32_t slot, const struct gpi_sched_event *e)
{
    struct gpi_book_slot *s = &o->slot[slot];
    const bool watched = o->truth->slot[slot].watched, survived = survives(o, slot, e);

    if (!s->worker)
        return;
    judge_canary(s, e);
    if (e->how & GPI_EXITED_FAULT && watched && e->kind == GPI_EV_EXITED)
        s->owes_judge |= 1u << GPI_JUDGE_FAULT;
    if (watched && s->kill != GPI_BOOK_SPARE && !(s->judged & 1u << GPI_JUDGE_KILLED))
        s->owes_judge |= 1u << GPI_JUDGE_KILLED;
    if (survived && watched)
        s->owes_judge |= 1u << GPI_JUDGE_SURVIVED;
    if (survived)
        s->owes_note |= 1u << GPI_NOTE_SURVIVED;
    else
        s->owes_note |= 1u << GPI_NOTE_DIED;
    if (died_alone(o, slot, e))
        s->owes_note |= 1u << GPI_NOTE_DIED_IDLE;
    s->owes_read = watched && !survived;
    s->owed_since = o->truth->now;
    if (s->ready_at && o->truth->now - s->ready_at >= o->truth->backoff_cap &&
        o->truth->now - s->ready_at >= GPI_S)
        s->failures = 0; /* the worker was ready for long enough */
    s->just_over = true;
    gpi_book_charge(o, slot, survived, died_spoilt(s, e));
    gpi_book_forget_worker(s);
}

/* A START failed: the slot never had a worker. */
static void unstarted(struct gpi_book_slot *s, bool never)
{
    if (!s->worker)
        return;
    if (never)
        s->owes_note |= 1u << GPI_NOTE_UNMADE;
    gpi_book_forget_worker(s);
}

static void keeper_gone(struct gpi_oracle *o, uint32_t slot, const struct gpi_sched_event *e)
{
    struct gpi_book_slot *s = &o->slot[slot];

    s->keeper = GPI_BOOK_NONE;
    if (e->how == GPI_GONE_PLAIN || s->ready)
        worker_over(o, slot, e);
    else
        unstarted(s, s->kill != GPI_BOOK_KILL);
}

static void spawner_gone(struct gpi_oracle *o, const struct gpi_sched_event *e)
{
    o->spawner_gone = true;
    for (uint32_t i = 0; i < o->truth->slots; i++) {
        struct gpi_book_slot *s = &o->slot[i];
        if (s->keeper == GPI_BOOK_ASKED)
            s->keeper = GPI_BOOK_NONE;
        if (s->keeper != GPI_BOOK_LOST)
            continue;
        s->keeper = GPI_BOOK_NONE;
        worker_over(o, i, e);
    }
}

static void begun(struct gpi_oracle *o, struct gpi_book_slot *s)
{
    switch (s->pending) {
    case GPI_ACT_START:
        s->begun = s->incarnation;
        s->since = s->began = o->truth->now;
        break;
    case GPI_ACT_END:
        s->ending = true;
        s->since = o->truth->now;
        break;
    case GPI_ACT_KILL:
        s->since = o->truth->now;
        break;
    case GPI_ACT_KILL_AT:
        s->since = s->kill_at > o->truth->now ? s->kill_at : o->truth->now;
        break;
    case GPI_ACT_MAKE:
        s->keeper_since = o->truth->now;
        break;
    default:
        gpi_oracle_object(o, GPI_ORACLE_SAFETY, "an answer without an order");
    }
    s->pending = 0;
}

static void unsent(struct gpi_book_slot *s)
{
    if (s->pending == GPI_ACT_START)
        unstarted(s, false);
    else if (s->pending == GPI_ACT_END)
        s->owes_kill = GPI_WHY_CLEANUP;
    s->pending = 0;
}

static void keeper_lost(struct gpi_oracle *o, struct gpi_book_slot *s, bool unread)
{
    s->unread |= unread && s->kill == GPI_BOOK_KILL_AT && !s->lost && !s->owes_kill &&
                 !o->close_passed; /* else the core has ordered a kill for good */
    if (s->keeper == GPI_BOOK_UP || s->keeper == GPI_BOOK_LOST) {
        s->keeper = GPI_BOOK_LOST;
        s->keeper_since = o->truth->now;
    }
    s->pending = 0;
    s->owes_kill = 0;
    s->just_lost = true;
    if (!s->worker)
        return;
    s->lost = true;
    s->since = o->truth->now;
}

/* A worker that the core kills for its setup limit has failed, even if it then reports SETUP_OK. */
static void setup_over(struct gpi_book_slot *s, const struct gpi_sched_event *e, uint64_t now)
{
    if (s->ready || (s->kill == GPI_BOOK_KILL && s->why == GPI_WHY_SETUP))
        return;
    s->ready = true;
    if (s->kill == GPI_BOOK_SPARE && !s->lost && !s->sweeping)
        s->ready_at = now;
    if (s->canary && e->how & GPI_EXITED_PASSED)
        s->owes_judge |= 1u << GPI_JUDGE_PASSED;
}

/* A report from a worker or its keeper counts only if it concerns the current worker. */
static void worker_word(struct gpi_oracle *o, struct gpi_book_slot *s,
                        const struct gpi_sched_event *e)
{
    if (!s->worker || e->incarnation != s->incarnation)
        return;
    switch (e->kind) {
    case GPI_EV_START_NO:
        if (!s->lost) /* else the core awaits the end of the keeper */
            unstarted(s, s->kill != GPI_BOOK_KILL);
        break;
    case GPI_EV_ANSWERED:
        if (!s->answered && !s->ready && s->kill == GPI_BOOK_SPARE && !s->sweeping && !s->lost)
            s->since = o->truth->now;
        s->answered = true;
        break;
    case GPI_EV_SETUP_OK:
        setup_over(s, e, o->truth->now);
        break;
    case GPI_EV_EXITED:
        worker_over(o, (uint32_t)(s - o->slot), e);
        break;
    case GPI_EV_SWEEPING:
        if (s->kill == GPI_BOOK_SPARE && !s->sweeping && !s->lost)
            s->since = o->truth->now;
        s->sweeping = true;
        break;
    case GPI_EV_SPARED:
        if (s->kill == GPI_BOOK_KILL_AT)
            s->kill = GPI_BOOK_SPARE;
        break;
    case GPI_EV_OVERDUE:
        if (s->kill == GPI_BOOK_KILL || s->sweeping || s->lost)
            break;
        s->kill = GPI_BOOK_KILL;
        s->why = GPI_WHY_STOPPED;
        s->since = o->truth->now;
        break;
    case GPI_EV_STILL:
        s->still = e->how;
        break;
    default:
        break;
    }
}

/* ---- devices ---- */

static void for_device(struct gpi_oracle *o, const struct gpi_sched_event *e)
{
    struct gpi_book_device *d = &o->device[e->device];
    bool leave = false, kill = false;

    switch (e->kind) {
    case GPI_EV_DEVICE:
        d->may = e->how;
        d->changed = true;
        leave = e->what == GPI_USE_LEAVE;
        kill = e->what == GPI_USE_KILL;
        break;
    case GPI_EV_DRAIN:
        leave = !d->draining && !d->removing;
        d->noted &= d->draining || d->removing;
        d->draining = true;
        break;
    case GPI_EV_REMOVE:
        leave = !d->removing;
        d->noted &= d->removing;
        d->removing = true;
        break;
    case GPI_EV_PAUSE:
        d->paused = true;
        break;
    case GPI_EV_RETURN:
        d->draining = d->paused = false;
        break;
    case GPI_EV_TRY:
        d->due = d->may == GPI_MAY_OUT && !gpi_book_tries(o, e->device);
        break;
    default:
        break;
    }
    d->due &= d->may == GPI_MAY_OUT;
    for (uint32_t i = 0; i < o->truth->slots; i++) {
        struct gpi_book_slot *s = &o->slot[i];
        if (!gpi_book_has(o, i, e->device))
            continue;
        if (e->kind == GPI_EV_RETURN && s->life == GPI_LIFE_FAILED) {
            s->owes_pardon = true;
            s->failures = 0;
        }
        if (!s->worker)
            continue;
        if (leave && s->start != GPI_START_ONLY)
            s->leave = true;
        if (kill && s->kill != GPI_BOOK_KILL && !s->sweeping && !s->lost)
            s->owes_kill = GPI_WHY_DEVICE;
        s->owes_stay = s->life == GPI_LIFE_LEAVE && !gpi_book_doubted(o, i);
        /* a doomed worker stays, too, if it is spared */
        s->leave &=
            gpi_book_doubted(o, i) || (s->life != GPI_LIFE_LEAVE && s->life != GPI_LIFE_DOOMED);
    }
}

/* ---- inputs of the core ---- */

static void for_task(struct gpi_oracle *o, const struct gpi_sched_event *e)
{
    struct gpi_book_task *t = &o->task[e->task];

    switch (e->kind) {
    case GPI_EV_CAME_BACK:
        gpi_book_came_back(o, t);
        t->wary |= e->how == GPI_BACK_SPOILT && t->state == GPI_BOOK_QUEUED;
        break;
    case GPI_EV_CANCEL:
        t->cancel = true;
        t->hard |= e->how == GPI_CANCEL_HARD;
        break;
    default:
        break;
    }
}

static void for_slot(struct gpi_oracle *o, const struct gpi_sched_event *e)
{
    struct gpi_book_slot *s = &o->slot[e->slot];

    switch (e->kind) {
    case GPI_EV_WANT:
        s->wanted = s->owes_life = true;
        s->failures = 0;
        break;
    case GPI_EV_KEEPER_UP:
        s->keeper = GPI_BOOK_UP;
        break;
    case GPI_EV_KEEPER_NO:
        s->keeper = GPI_BOOK_NONE;
        s->pending = 0;
        if (s->life == GPI_LIFE_WAIT)
            s->owes_note |= 1u << GPI_NOTE_UNMADE;
        break;
    case GPI_EV_KEEPER_LOST:
        keeper_lost(o, s, e->how == GPI_LOST_UNREAD);
        break;
    case GPI_EV_KEEPER_GONE:
        keeper_gone(o, e->slot, e);
        break;
    case GPI_EV_BROKE:
        if (s->worker && s->kill == GPI_BOOK_SPARE && !s->sweeping && !s->lost)
            s->owes_kill = GPI_WHY_PROTOCOL;
        break;
    case GPI_EV_SURVIVED:
        if (s->worker && !survives(o, e->slot, e))
            s->keeper = GPI_BOOK_NONE;
        worker_over(o, e->slot, e);
        break;
    case GPI_EV_UNSENT:
        unsent(s);
        break;
    case GPI_EV_BEGUN:
        begun(o, s);
        break;
    case GPI_EV_MEMORY:
        s->owed = false;
        break;
    case GPI_EV_ROOM:
        s->room = e->cell;
        break;
    default:
        worker_word(o, s, e);
    }
}

static void for_all(struct gpi_oracle *o, const struct gpi_sched_event *e)
{
    if (e->kind == GPI_EV_SPAWNER_GONE) {
        spawner_gone(o, e);
    } else if (e->kind == GPI_EV_SOURCE) {
        o->source = e->how;
    } else if (e->kind == GPI_EV_CLOSE) {
        const uint32_t how = e->how == GPI_CLOSE_LEAVE ? GPI_CLOSE_RUNNING : e->how;
        if (!o->closed || how > o->close)
            o->close = how;
        o->closed = true;
        o->close_passed &= e->at >= o->close_at;
        o->close_at = gpi_time_min(o->close_at, e->at);
    } else if (e->kind == GPI_EV_TIME && o->close_at <= e->now && !o->close_passed) {
        o->close = GPI_CLOSE_NOW;
        o->close_passed = o->close_passes = true;
        for (uint32_t i = 0; i < o->truth->slots; i++) {
            struct gpi_book_slot *s = &o->slot[i];
            if (s->worker && s->kill != GPI_BOOK_KILL && !s->sweeping && !s->lost)
                s->owes_kill = GPI_WHY_CLOSE;
        }
    }
}

static uint32_t fields_of(uint32_t kind)
{
#define FIELDS(name, fields, how, bits, what) [GPI_EV_##name] = (fields),
    static const uint32_t of[] = { GPI_EVENT_MAP(FIELDS) };
#undef FIELDS

    return of[kind];
}

void gpi_oracle_fed(struct gpi_oracle *o, const struct gpi_sched_event *e)
{
    const uint32_t fields = fields_of(e->kind);

    gpi_outside_fed(o, e);
    if (fields & GPI_F_SLOT)
        for_slot(o, e);
    if (fields & GPI_F_TASK)
        for_task(o, e);
    if (fields & GPI_F_DEVICE)
        for_device(o, e);
    if (!(fields & (GPI_F_SLOT | GPI_F_TASK | GPI_F_DEVICE)))
        for_all(o, e);
}
