/* SPDX-License-Identifier: MIT */
/*
 * oracle_limits.c - upper bounds: each wait ends in an order, and no slot waits without a reason.
 *
 * If the host notices the end of a wait more than 100 ms late, the core extends the wait by one
 * second, once.  The oracle therefore grants each limit that second.  It does not count the time in
 * which the host was stopped.
 */
#include "base/clock.h"
#include "sim/oracle.h"

#define MARGIN_NS (GPI_S + 250 * GPI_MS)
#define SLACK_NS (4 * GPI_S) /* of a close, for waits that the core has extended */

static void object(struct gpi_oracle *o, bool broken, const char *rule)
{
    if (broken)
        gpi_oracle_object(o, GPI_ORACLE_LIMITS, rule);
}

static bool is_over(const struct gpi_oracle *o, uint64_t since, uint64_t limit)
{
    return gpi_oracle_lasts(o, since) > gpi_time_add(limit, MARGIN_NS);
}

/* ---- a worker ---- */

static void worker(struct gpi_oracle *o, uint32_t slot)
{
    const struct gpi_book_slot *s = &o->slot[slot];
    const uint64_t kill_limit = o->truth->slot[slot].kill_limit;

    if (s->lost)
        object(o, is_over(o, s->since, kill_limit), "a lost keeper's worker is not given up");
    else if (s->kill != GPI_BOOK_SPARE)
        object(o, is_over(o, s->since, kill_limit), "a kill without an end");
    else if (s->sweeping)
        object(o, is_over(o, s->since, kill_limit), "a sweep without an end");
    else if (s->ending)
        object(o, is_over(o, s->since, o->truth->cleanup_limit), "a cleanup without an end");
    else if (!s->ready)
        object(o, is_over(o, s->since, gpi_book_setup_limit(o, slot)), "a setup without an end");
}

/* ---- tasks ---- */

static bool is_dying(const struct gpi_book_slot *s)
{
    return s->lost || s->kill != GPI_BOOK_SPARE || s->sweeping || s->still;
}

static void running(struct gpi_oracle *o, uint32_t task)
{
    const struct gpi_book_task *t = &o->task[task];
    const struct gpi_truth_task *truth = &o->truth->task[task];
    const bool cancelled = t->hard || (o->closed && o->close == GPI_CLOSE_NOW);

    if (t->slot == GPI_NOWHERE || !truth->running || is_dying(&o->slot[t->slot]))
        return;
    if (!o->truth->slot[t->slot].stopped && truth->soft_at < o->truth->now)
        object(o, is_over(o, truth->soft_at, o->truth->grace), "a task beyond its limit");
    if (cancelled && t->alarmed)
        object(o, is_over(o, t->alarm, o->truth->grace), "a cancelled task goes on");
    if (cancelled && !t->alarmed)
        object(o, true, "a task that runs is not told of its cancel");
}

static void waiting(struct gpi_oracle *o, uint32_t task)
{
    const struct gpi_book_task *t = &o->task[task];
    const struct gpi_truth_task *truth = &o->truth->task[task];

    if (t->state == GPI_BOOK_LATER || t->state == GPI_BOOK_QUEUED)
        object(o, t->cancel, "a cancelled task waits");
    if (t->state == GPI_BOOK_QUEUED && truth->starts == 0 && truth->expires < o->truth->now)
        object(o, is_over(o, truth->expires, 0), "an expired task waits");
}

/* ---- slots that wait ---- */

static void idle(struct gpi_oracle *o)
{
    if (gpi_book_cancels(o))
        return;
    for (uint32_t i = 0; i < o->truth->slots; i++)
        object(o, !o->truth->pooled && gpi_book_takes(o, i) && o->slot[i].sent == 0 &&
                      o->slot[i].room && gpi_book_queues(o, o->truth->slot[i].class),
               "a task waits beside an idle worker");
}

/* Whether tasks behind a long one must return: this worker is idle, or it works. */
static bool can_help(const struct gpi_oracle *o, uint32_t slot, bool queued)
{
    if (!gpi_book_takes(o, slot))
        return false;
    if (queued)
        return gpi_book_lively(o, slot);
    return o->slot[slot].sent == 0 && o->slot[slot].room && gpi_book_has_life(o, slot);
}

static void behind(struct gpi_oracle *o, uint32_t class)
{
    const bool queued = o->truth->pooled || gpi_book_queues(o, class);
    bool help = o->truth->pooled; /* the plan finds another worker */

    for (uint32_t i = 0; !help && i < o->truth->slots; i++)
        help |= o->truth->slot[i].class == class && can_help(o, i, queued);
    for (uint32_t i = 0; help && i < o->truth->slots; i++) {
        const struct gpi_book_slot *s = &o->slot[i];
        const uint64_t quiet = o->truth->now - s->heard;
        if (o->truth->slot[i].class != class || !gpi_book_takes(o, i) || s->sent < 2 ||
            !gpi_book_unclaimed(o, i))
            continue;
        gpi_oracle_about(o, i, GPI_NOWHERE);
        object(o, !queued && quiet > o->truth->batch_wait + 3 * GPI_MS,
               "a task waits behind a long one, beside an idle worker");
        object(o, queued && gpi_book_stuck(o, i), "tasks wait behind a long one");
    }
}

static bool all_are_useless(const struct gpi_oracle *o, uint32_t class)
{
    for (uint32_t i = 0; i < o->truth->slots; i++)
        if (o->truth->slot[i].class == class && !gpi_book_useless(o, i))
            return false;
    return true;
}

/* Workers of this class may never go for another class. */
static bool stays(const struct gpi_oracle *o, uint32_t class)
{
    return o->truth->class[class].min_workers || o->truth->class[class].pinned;
}

/* A task of the class waits, and its devices are there. */
static bool could_start(const struct gpi_oracle *o, uint32_t class)
{
    for (uint32_t i = 0; i < o->truth->tasks; i++)
        if (o->task[i].state == GPI_BOOK_QUEUED && o->truth->task[i].class == class &&
            gpi_book_could_fit(o, i))
            return true;
    return false;
}

/* A worker on a paused device stays, and is one of all that max_workers lets its class have. */
static bool is_held_up(const struct gpi_oracle *o, uint32_t slot)
{
    const uint32_t class = o->truth->slot[slot].class;
    uint32_t n = 0;

    for (uint32_t i = 0; i < o->truth->slots; i++)
        n += o->truth->slot[i].class == class && o->slot[i].life == GPI_LIFE_UP;
    return o->slot[slot].life == GPI_LIFE_UP && gpi_book_on_paused(o, slot) &&
           n >= o->truth->class[class].max_workers;
}

/* A class of a pooled core has tasks and could have a worker, no worker runs a task, and for longer
 * than anything may take nothing has happened. */
static bool stands_still(const struct gpi_oracle *o, uint32_t class)
{
    const struct gpi_plan_class *k = &o->truth->class[class];
    const uint64_t longest =
        o->truth->backoff_cap + k->max_wait + k->min_residence + o->truth->memory_wait;

    if (!could_start(o, class) || o->class[class].paused ||
        o->class[class].given_up || gpi_book_cancels(o) || o->spawner_gone)
        return false;
    for (uint32_t i = 0; i < o->truth->classes; i++)
        if (stays(o, i))
            return false;
    for (uint32_t i = 0; i < o->truth->slots; i++)
        if (o->lease[i].state || o->slot[i].sent || o->slot[i].still || !o->slot[i].room ||
            is_held_up(o, i) ||
            (o->slot[i].life != GPI_LIFE_OFF && o->slot[i].life != GPI_LIFE_UP))
            return false;
    return is_over(o, o->moved_at, longest);
}

static bool winds_down(const struct gpi_oracle *o)
{
    return o->closed && !o->source && o->unended == 0;
}

static bool is_owed(const struct gpi_oracle *o, const struct gpi_book_slot *s)
{
    return s->owed && o->truth->now < gpi_time_add(s->owed_since, o->truth->memory_wait) +
                                          MARGIN_NS;
}

/* A slot may wait only for its keeper, for its turn, or for the memory of its devices. */
static void gates(struct gpi_oracle *o, const struct gpi_book_slot *s)
{
    const bool starts = !gpi_book_cancels(o) && !winds_down(o);

    if (s->life != GPI_LIFE_WAIT || !starts)
        return;
    object(o, s->keeper == GPI_BOOK_UP && !is_owed(o, s) &&
                  gpi_book_setups(o) < o->truth->setup_concurrency, "a slot waits for nothing");
    object(o, s->keeper == GPI_BOOK_NONE && !o->spawner_gone &&
                  gpi_book_makes(o) < o->truth->makes, "a slot does not ask for its keeper");
    object(o, s->keeper == GPI_BOOK_NONE && o->spawner_gone,
           "a slot waits for a keeper that never comes");
    object(o, s->keeper == GPI_BOOK_ASKED && !o->spawner_gone &&
                  is_over(o, s->keeper_since, o->truth->reply_limit),
           "a spawner that does not reply is believed in");
}

/* In a pool the next class waits anew. */
static bool is_unproved(const struct gpi_oracle *o, uint32_t slot)
{
    const struct gpi_book_slot *s = &o->slot[slot];
    const bool anew = o->truth->pooled && s->life_since > s->keeper_since;

    return s->keeper == GPI_BOOK_LOST &&
           is_over(o, anew ? s->life_since : s->keeper_since, o->truth->slot[slot].kill_limit);
}

static void waits(struct gpi_oracle *o, uint32_t slot)
{
    const struct gpi_book_slot *s = &o->slot[slot];

    gates(o, s);
    switch (s->life) {
    case GPI_LIFE_WAIT:
        object(o, is_unproved(o, slot), "a slot waits for the end of a lost keeper");
        break;
    case GPI_LIFE_PARKED:
        object(o, is_unproved(o, slot), "a slot waits for the end of a lost keeper");
        object(o, !gpi_book_barred(o, slot), "a slot parks without a reason");
        object(o, gpi_book_can_try(o, slot) && !gpi_book_cancels(o) && !winds_down(o),
               "a canary is due, and a slot could run it");
        break;
    case GPI_LIFE_BACKOFF:
        object(o, is_unproved(o, slot), "a slot waits for the end of a lost keeper");
        object(o, is_over(o, s->life_since, o->truth->backoff_cap), "a backoff without an end");
        break;
    case GPI_LIFE_LEAVE:
        object(o, s->sent == 0, "a worker that is to leave has no tasks, and stays");
        break;
    case GPI_LIFE_COOL:
        object(o, is_over(o, s->life_since, o->truth->memory_wait), "memory that never comes back");
        break;
    case GPI_LIFE_OFF:
        object(o, s->wanted, "a slot that is wanted is OFF");
        break;
    case GPI_LIFE_UP:
        object(o, s->sent == 0 && o->truth->max_tasks && s->served >= o->truth->max_tasks &&
                      !gpi_book_renews(o, slot) && !s->still && !gpi_book_cancels(o) &&
                      !winds_down(o),
               "a worker stays beyond its number of tasks");
        break;
    default:
        break;
    }
    if (winds_down(o))
        object(o, s->life == GPI_LIFE_WAIT || s->life == GPI_LIFE_BOOT ||
                      s->life == GPI_LIFE_SETUP || s->life == GPI_LIFE_BACKOFF ||
                      s->life == GPI_LIFE_UP || s->life == GPI_LIFE_COOL ||
                      (s->life == GPI_LIFE_PARKED && !gpi_book_useless(o, slot)),
               "a slot goes on though nothing is to come");
}

static void devices(struct gpi_oracle *o)
{
    for (uint32_t d = 0; d < o->truth->devices; d++) {
        bool worker = false, slot = false, any = false;
        for (uint32_t i = 0; i < o->truth->slots; i++) {
            if (!gpi_book_has(o, i, d))
                continue;
            any = true;
            worker |= o->slot[i].worker;
            slot |= o->slot[i].life != GPI_LIFE_REMOVED && o->slot[i].life != GPI_LIFE_STUCK;
        }
        if ((!any && !o->truth->all_external) || o->device[d].noted)
            continue;
        object(o, o->device[d].removing && !slot && !gpi_book_leased(o, d),
               "a removed device is not reported");
        object(o, o->device[d].draining && !o->device[d].removing && !worker &&
                      !gpi_book_leased(o, d),
               "a drained device is not reported");
    }
}

void gpi_limits_turned(struct gpi_oracle *o)
{
    for (uint32_t i = 0; i < o->truth->slots; i++) {
        gpi_oracle_about(o, i, GPI_NOWHERE);
        if (o->slot[i].worker)
            worker(o, i);
        waits(o, i);
    }
    for (uint32_t i = 0; i < o->truth->tasks; i++) {
        if (o->task[i].state == GPI_BOOK_FREE)
            continue;
        gpi_oracle_about(o, o->task[i].slot, i);
        running(o, i);
        waiting(o, i);
    }
    gpi_oracle_about(o, GPI_NOWHERE, GPI_NOWHERE);
    idle(o);
    for (uint32_t k = 0; k < o->truth->classes; k++)
        behind(o, k);
    gpi_oracle_about(o, GPI_NOWHERE, GPI_NOWHERE);
    devices(o);
    for (uint32_t k = 0; o->truth->pooled && k < o->truth->classes; k++)
        object(o, stands_still(o, k), "a class has tasks, and nothing happens");
    for (uint32_t k = 0; !o->truth->pooled && k < o->truth->classes; k++)
        object(o, all_are_useless(o, k) && gpi_book_queues(o, k) && !o->spawner_gone,
               "a task waits, and no slot can have a worker");
    if (o->closed && o->close_at <= o->truth->now) {
        const uint64_t limit = 2 * o->truth->slot[0].kill_limit + SLACK_NS; /* kill; SURVIVED */
        object(o, is_over(o, o->close_at, limit), "a close without an end");
    }
}

void gpi_oracle_finished(struct gpi_oracle *o)
{
    object(o, !o->closed, "finished, and not closed");
    object(o, o->unended > 0, "finished, and a task has no outcome");
    for (uint32_t i = 0; i < o->truth->slots; i++)
        object(o, o->slot[i].worker, "finished, and a worker is there");
}
