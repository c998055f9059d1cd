/* SPDX-License-Identifier: MIT */
/*
 * oracle_external.c - the rules of external work: its grants, its limits, and its ends.
 *
 * The books have each lease as the events and the core's own actions leave it.  So each REVOKE and
 * each end is compared with the only one that is right at that time.
 */
#include "base/clock.h"
#include "gpudispatch/dispatch.h"
#include "sim/oracle.h"

#define IN_VAIN_MOST 3u /* grants in a row that were not started in time */

static bool object(struct gpi_oracle *o, bool broken, const char *rule)
{
    return broken && gpi_oracle_object(o, GPI_ORACLE_SAFETY, rule);
}

static void after(struct gpi_oracle *o, bool broken, const char *rule)
{
    if (broken)
        gpi_oracle_object(o, GPI_ORACLE_AFTER, rule);
}

/* ---- the books ---- */

/* Returns the lease of the task, or NULL.  Work that was left has none. */
struct gpi_book_lease *gpi_book_lease(struct gpi_oracle *o, uint32_t task)
{
    for (uint32_t i = 0; i < GPI_TRUTH_SLOTS; i++)
        if (o->lease[i].state != GPI_BOOK_UNUSED && o->lease[i].state != GPI_BOOK_LEFT &&
            o->lease[i].task == task)
            return &o->lease[i];
    return NULL;
}

/* One seat of the core is spare. */
static struct gpi_book_lease *free_lease(struct gpi_oracle *o)
{
    for (uint32_t i = 0; i + 1 < o->truth->slots; i++)
        if (o->lease[i].state == GPI_BOOK_UNUSED)
            return &o->lease[i];
    return NULL;
}

bool gpi_book_is_on(const struct gpi_book_lease *l, uint32_t device)
{
    for (uint32_t i = 0; i < l->n_devices; i++)
        if (l->device[i] == device)
            return true;
    return false;
}

uint64_t gpi_book_soft_at(const struct gpi_book_lease *l)
{
    return gpi_time_min(l->limit_at, l->stall_at);
}

struct gpi_book_lease *gpi_book_begin(struct gpi_oracle *o, uint32_t task, uint32_t grant)
{
    struct gpi_book_lease *l = free_lease(o);

    if (object(o, !l, "more grants than there may be runs"))
        return NULL;
    *l = (struct gpi_book_lease){ .state = GPI_BOOK_UNSTARTED,
                                  .task = task,
                                  .grant = grant,
                                  .start_by = GPI_NEVER,
                                  .limit_at = GPI_NEVER,
                                  .stall_at = GPI_NEVER,
                                  .asked_at = GPI_NEVER,
                                  .cancel_at = GPI_NEVER,
                                  .kill_at = GPI_NEVER,
                                  .killed_at = GPI_NEVER,
                                  .give_up_at = GPI_NEVER };
    o->outside[task].grants = grant;
    o->task[task].state = GPI_BOOK_GRANTED;
    o->moved_at = o->truth->now;
    return l;
}

static void free_task(struct gpi_oracle *o, uint32_t task)
{
    o->task[task].state = GPI_BOOK_FREE;
    o->unended--;
}

/* The task waits, until a time at the earliest. */
void gpi_book_wait(struct gpi_oracle *o, uint32_t task, uint64_t until)
{
    o->task[task].state = until > o->truth->now ? GPI_BOOK_LATER : GPI_BOOK_QUEUED;
    o->task[task].until = until;
    o->task[task].queued = o->truth->now;
    if (until > o->truth->now)
        o->outside[task].promise = GPI_NEVER;
}

bool gpi_book_is_barred(const struct gpi_book_device *d)
{
    return d->may >= GPI_MAY_OUT || d->draining || d->removing || d->paused;
}

bool gpi_book_is_on_one(const struct gpi_oracle *o, const struct gpi_book_lease *l,
                  bool (*is)(const struct gpi_book_device *))
{
    for (uint32_t i = 0; i < l->n_devices; i++)
        if (is(&o->device[l->device[i]]))
            return true;
    return false;
}

void gpi_outside_submitted(struct gpi_oracle *o, uint32_t task)
{
    o->outside[task] = (struct gpi_book_outside){ .promise = GPI_NEVER };
}

/* ---- the verdict ---- */

static uint32_t outcome_of(uint32_t word)
{
    return word == GPI_ENDED_SUCCESS ? GPUD_OUTCOME_SUCCESS
           : word == GPI_ENDED_ERROR ? GPUD_OUTCOME_ERROR
                                     : GPUD_OUTCOME_CRASHED;
}

static struct gpi_sched_end timeout(const struct gpi_book_lease *l, uint32_t phase)
{
    return (struct gpi_sched_end){ .outcome = GPUD_OUTCOME_TIMEOUT,
                                   .phase = phase,
                                   .why = l->stall_at < l->limit_at ? GPI_WHY_STALL
                                                                    : GPI_WHY_LIMIT };
}

static struct gpi_sched_end cancelled(const struct gpi_book_lease *l, bool killed)
{
    struct gpi_sched_end e = { .outcome = GPUD_OUTCOME_CANCELLED, .phase = GPUD_PHASE_PROCESS };

    if (killed) {
        e.phase = GPUD_PHASE_HARD;
        e.why = l->kill_why == GPI_REVOKE_CLOSE ? GPI_WHY_CLOSE : GPI_WHY_CANCEL;
    }
    return e;
}

/* The time at which the work ended decides: first a hard cancel, then the failure of a device, then
 * the limit, then a soft cancel.                                                           [C7] */
static struct gpi_sched_end verdict(const struct gpi_book_lease *l, uint32_t word, uint64_t at)
{
    const bool killed = word == GPI_ENDED_CRASHED && l->killed && at >= l->killed_at;
    const bool by_device = killed && l->kill_why == GPI_REVOKE_DEVICE;

    if (l->cancel_at <= at && l->cancel_at <= gpi_book_soft_at(l))
        return cancelled(l, killed);
    if (at >= gpi_book_soft_at(l) && !by_device)
        return timeout(l, killed ? GPUD_PHASE_HARD : GPUD_PHASE_PROCESS);
    if (by_device)
        return (struct gpi_sched_end){ .outcome = GPUD_OUTCOME_CRASHED,
                                       .phase = GPUD_PHASE_PROCESS,
                                       .why = GPI_WHY_DEVICE };
    if (l->asked_at <= at && word != GPI_ENDED_SUCCESS)
        return cancelled(l, false);
    return (struct gpi_sched_end){ .outcome = outcome_of(word), .phase = GPUD_PHASE_PROCESS };
}

static uint32_t cause_of(const struct gpi_sched_end *e)
{
    switch (e->outcome) {
    case GPUD_OUTCOME_CRASHED:
        return e->why == GPI_WHY_DEVICE ? GPUD_RETRY_DEVICE : GPUD_RETRY_CRASH;
    case GPUD_OUTCOME_ERROR:
        return GPUD_RETRY_ERROR;
    case GPUD_OUTCOME_TIMEOUT:
        return GPUD_RETRY_TIMEOUT;
    default:
        return 0;
    }
}

/* An attempt has ended so: the core reports that at once. */
static void expect(struct gpi_oracle *o, const struct gpi_book_lease *l, struct gpi_sched_end e)
{
    struct gpi_book_outside *x = &o->outside[l->task];
    const struct gpi_truth_task *truth = &o->truth->task[l->task];

    e.task = l->task;
    e.attempts = ++x->attempts;
    e.again = !e.held && l->asked_at == GPI_NEVER && !gpi_book_cancels(o) &&
              !o->class[truth->class].ended && x->attempts < truth->max_attempts &&
              (truth->causes & cause_of(&e));
    x->in_vain = 0;
    x->end = e;
    x->owes_end = true;
}

/* ---- events of the host ---- */

static void started(struct gpi_oracle *o, struct gpi_book_lease *l, uint64_t at)
{
    const struct gpi_truth_task *truth = &o->truth->task[l->task];

    if (l->state != GPI_BOOK_UNSTARTED)
        return;
    l->state = GPI_BOOK_STARTED;
    l->limit_at = gpi_time_add(at, truth->limit);
    l->stall_at = truth->stall ? gpi_time_add(at, truth->stall) : GPI_NEVER;
    o->outside[l->task].in_vain = 0;
}

static void declined(struct gpi_oracle *o, struct gpi_book_lease *l, uint64_t not_before)
{
    if (l->state != GPI_BOOK_UNSTARTED)
        return;
    l->state = GPI_BOOK_UNUSED;
    o->outside[l->task].in_vain = 0;
    gpi_book_wait(o, l->task, not_before);
}

static void progressed(const struct gpi_oracle *o, struct gpi_book_lease *l, uint64_t now)
{
    if (l->state == GPI_BOOK_STARTED && l->stall_at != GPI_NEVER && !l->told &&
        gpi_book_soft_at(l) > now)
        l->stall_at = gpi_time_add(now, o->truth->task[l->task].stall);
}

static void ended(struct gpi_oracle *o, struct gpi_book_lease *l, const struct gpi_sched_event *e)
{
    if (l->state == GPI_BOOK_UNFREED)
        o->task[l->task].state = GPI_BOOK_FREE;
    else
        expect(o, l, verdict(l, e->how, e->at));
    l->state = GPI_BOOK_UNUSED;
}

/* The work is to end, and to be killed at a time. */
static void ask(struct gpi_book_lease *l, uint32_t why, uint64_t now, uint64_t kill_at)
{
    l->asked_at = gpi_time_min(l->asked_at, now);
    if (l->killed)
        return;
    l->owes_soft = true;
    l->soft_why = why;
    if (kill_at >= l->kill_at)
        return;
    l->kill_at = kill_at;
    l->kill_why = why;
}

static void cancel(const struct gpi_oracle *o, struct gpi_book_lease *l, bool hard, uint32_t why,
                   uint64_t now)
{
    if (l->state != GPI_BOOK_STARTED || (hard ? l->cancel_at : l->asked_at) != GPI_NEVER)
        return;
    if (hard)
        l->cancel_at = now;
    ask(l, why, now, hard ? gpi_time_add(now, o->truth->grace) : GPI_NEVER);
}

static void kill_for(struct gpi_book_lease *l, uint32_t why)
{
    if (l->state != GPI_BOOK_STARTED || l->killed)
        return;
    l->owes_hard = true;
    l->hard_why = why;
}

static void for_task(struct gpi_oracle *o, const struct gpi_sched_event *e)
{
    struct gpi_book_lease *l = gpi_book_lease(o, e->task);

    if (!l)
        return;
    switch (e->kind) {
    case GPI_EV_STARTED:
        started(o, l, e->at);
        break;
    case GPI_EV_DECLINED:
        declined(o, l, e->at);
        break;
    case GPI_EV_PROGRESS:
        progressed(o, l, e->now);
        break;
    case GPI_EV_ENDED:
        ended(o, l, e);
        break;
    default:
        cancel(o, l, e->how == GPI_CANCEL_HARD, GPI_REVOKE_CANCEL, e->now);
        break;
    }
}

/* ---- the device, the close ---- */

static void device_kills(struct gpi_oracle *o, uint32_t device)
{
    for (uint32_t i = 0; i < GPI_TRUTH_SLOTS; i++) {
        struct gpi_book_lease *l = &o->lease[i];
        if (!l->state || !gpi_book_is_on(l, device))
            continue;
        l->owes_back |= l->state == GPI_BOOK_UNSTARTED;
        kill_for(l, GPI_REVOKE_DEVICE);
    }
}

static void leave(struct gpi_oracle *o, struct gpi_book_lease *l)
{
    if (l->state == GPI_BOOK_STARTED)
        free_task(o, l->task);
    else
        o->task[l->task].state = GPI_BOOK_FREE;
    l->state = GPI_BOOK_LEFT;
}

static void closed(struct gpi_oracle *o, const struct gpi_sched_event *e)
{
    const bool cancels = e->how == GPI_CLOSE_NOW && (!o->closed || o->close < GPI_CLOSE_NOW);

    for (uint32_t i = 0; i < GPI_TRUTH_SLOTS; i++) {
        struct gpi_book_lease *l = &o->lease[i];
        if (cancels)
            cancel(o, l, true, GPI_REVOKE_CLOSE, e->now);
        if (e->how == GPI_CLOSE_LEAVE &&
            (l->state == GPI_BOOK_STARTED || l->state == GPI_BOOK_UNFREED))
            leave(o, l);
    }
}

/* The close limit expires: work that has not ended is to be killed. */
static void close_passes(struct gpi_oracle *o, uint64_t now)
{
    const bool cancels = !o->closed || o->close < GPI_CLOSE_NOW;

    for (uint32_t i = 0; i < GPI_TRUTH_SLOTS; i++) {
        struct gpi_book_lease *l = &o->lease[i];
        if (l->state != GPI_BOOK_STARTED || l->give_up_at <= now)
            continue;
        if (l->kill_at > now)
            kill_for(l, GPI_REVOKE_CLOSE);
        if (!cancels)
            continue;
        l->asked_at = gpi_time_min(l->asked_at, now);
        l->cancel_at = gpi_time_min(l->cancel_at, now);
    }
}

void gpi_outside_fed(struct gpi_oracle *o, const struct gpi_sched_event *e)
{
    if (!o->fed_at) {
        o->fed_at = e->now;
        o->is_time = e->kind == GPI_EV_TIME;
    }
    switch (e->kind) {
    case GPI_EV_STARTED:
    case GPI_EV_DECLINED:
    case GPI_EV_PROGRESS:
    case GPI_EV_ENDED:
    case GPI_EV_CANCEL:
        for_task(o, e);
        break;
    case GPI_EV_DEVICE:
        if (e->what == GPI_USE_KILL)
            device_kills(o, e->device);
        break;
    case GPI_EV_CLOSE:
        closed(o, e);
        break;
    case GPI_EV_TIME:
        if (o->close_at <= e->now && !o->close_passed)
            close_passes(o, e->now);
        break;
    default:
        break;
    }
}

void gpi_oracle_adopted(struct gpi_oracle *o, uint32_t task, const struct gpi_truth_adoption *a)
{
    struct gpi_book_lease *l;
    bool out = false;

    gpi_oracle_about(o, GPI_NOWHERE, task);
    l = gpi_book_begin(o, task, a->grant);
    if (!l)
        return;
    l->has = a->has;
    l->adopted = true;
    for (uint32_t i = 0; i < a->has.devices; i++) {
        l->device[l->n_devices++] = a->device[i];
        out |= o->device[a->device[i]].may >= GPI_MAY_OUT;
    }
    o->outside[task].attempts = a->attempts;
    if (a->given_up) {
        free_task(o, task);
        o->task[task].state = GPI_BOOK_HELD;
        l->state = GPI_BOOK_UNFREED;
        return;
    }
    started(o, l, a->started_at);
    if (out)
        kill_for(l, GPI_REVOKE_DEVICE);
}

void gpi_oracle_observed_of(struct gpi_oracle *o, uint32_t task, uint32_t device, uint64_t bytes)
{
    struct gpi_book_lease *l = gpi_book_lease(o, task);

    for (uint32_t i = 0; l && i < l->n_devices; i++)
        if (l->device[i] == device)
            l->observed[i] = bytes;
}

/* ---- ends ---- */

static void is_expected(struct gpi_oracle *o, const struct gpi_sched_end *e,
                        const struct gpi_sched_end *right)
{
    object(o, e->outcome != right->outcome, "external work ends with another outcome");
    object(o, e->phase != right->phase, "external work ends in another phase");
    object(o, e->why != right->why, "external work ends for another reason");
    object(o, e->attempts != right->attempts, "external work has another number of attempts");
    object(o, e->again != right->again, "another attempt, or none, against the task's options");
    object(o, e->held != right->held, "external work holds its devices, or does not");
}

static void attempt_ended(struct gpi_oracle *o, const struct gpi_sched_end *e)
{
    struct gpi_book_outside *x = &o->outside[e->task];
    const uint32_t doublings = x->attempts ? x->attempts - 1 : 0;
    const uint64_t wait =
        gpi_time_doubled(o->truth->retry_backoff, doublings, o->truth->retry_cap);

    is_expected(o, e, &x->end);
    x->owes_end = false;
    if (x->end.again)
        gpi_book_wait(o, e->task, o->fed_at + wait);
    else
        free_task(o, e->task);
}

/* Only work that was to be killed, and has not ended by the kill limit, ends so. */
static void given_up(struct gpi_oracle *o, struct gpi_book_lease *l,
                     const struct gpi_sched_end *e)
{
    struct gpi_sched_end right;

    if (object(o, l->state != GPI_BOOK_STARTED, "an outcome for a task that is granted"))
        return;
    object(o, !l->killed || !o->is_time || l->give_up_at > o->fed_at,
           "external work is given up before the kill limit");
    right = verdict(l, GPI_ENDED_CRASHED, o->fed_at);
    right.phase = GPUD_PHASE_KILL;
    right.held = true;
    right.attempts = ++o->outside[e->task].attempts;
    is_expected(o, e, &right);
    free_task(o, e->task);
    o->task[e->task].state = GPI_BOOK_HELD;
    l->state = GPI_BOOK_UNFREED;
}

static void waiting_ended(struct gpi_oracle *o, const struct gpi_sched_end *e)
{
    const struct gpi_book_outside *x = &o->outside[e->task];
    const bool in_vain = x->in_vain >= IN_VAIN_MOST;

    object(o, e->attempts != x->attempts, "external work has another number of attempts");
    object(o, e->again || e->held, "the end of no attempt");
    object(o, (e->why == GPI_WHY_START) != (in_vain && e->outcome == GPUD_OUTCOME_NO_WORKER),
           "a task that was granted in vain too often, or was not");
    if (!in_vain)
        gpi_safety_ended(o, e);
    free_task(o, e->task);
}

void gpi_outside_ended(struct gpi_oracle *o, const struct gpi_sched_end *e)
{
    struct gpi_book_lease *l = gpi_book_lease(o, e->task);

    if (object(o, o->task[e->task].state == GPI_BOOK_HELD, "an outcome for a task that has ended"))
        return;
    if (o->outside[e->task].owes_end)
        attempt_ended(o, e);
    else if (l)
        given_up(o, l, e);
    else
        waiting_ended(o, e);
}

/* ---- an event has its consequence at once ---- */

static void unstarted(struct gpi_oracle *o, struct gpi_book_lease *l)
{
    const struct gpi_truth_task *truth = &o->truth->task[l->task];

    after(o, l->n_devices != l->has.devices, "a grant of too few devices");
    after(o, gpi_book_is_on_one(o, l, gpi_book_is_barred),
          "a grant stays on a device that starts nothing");
    after(o, l->owes_back, "a grant stays on a device that has failed");
    after(o, o->class[truth->class].paused, "a grant stays in a class that is paused");
    after(o, gpi_book_cancels(o), "a close leaves a grant");
    after(o, o->task[l->task].cancel, "the grant of a cancelled task stays");
    after(o, o->is_time && l->start_by <= o->fed_at, "a grant that is not started stays");
    after(o, o->is_time && truth->starts == 0 && truth->expires <= o->fed_at,
          "the grant of an expired task stays");
}

static void running(struct gpi_oracle *o, struct gpi_book_lease *l)
{
    after(o, l->owes_soft, "external work is not asked to end");
    after(o, l->owes_hard, "external work is not killed");
    l->owes_soft = l->owes_hard = false;
    if (!o->is_time)
        return;
    after(o, l->killed && l->give_up_at <= o->fed_at, "external work is not given up");
    after(o, !l->killed && l->kill_at <= o->fed_at, "external work goes on after its grace");
    after(o, !l->killed && !l->told && gpi_book_soft_at(l) <= o->fed_at,
          "external work goes on after its limit");
}

static void waiting(struct gpi_oracle *o, uint32_t task)
{
    const struct gpi_truth_task *truth = &o->truth->task[task];

    after(o, o->outside[task].in_vain >= IN_VAIN_MOST, "a task is granted in vain once more");
    after(o, o->class[truth->class].ended, "a task of a class that has ended waits");
    after(o, o->is_time && truth->starts == 0 && truth->expires <= o->fed_at,
          "an external task that has expired waits");
}

void gpi_outside_settled(struct gpi_oracle *o)
{
    for (uint32_t i = 0; i < GPI_TRUTH_SLOTS; i++) {
        struct gpi_book_lease *l = &o->lease[i];
        gpi_oracle_about(o, GPI_NOWHERE, l->task);
        if (l->state == GPI_BOOK_UNSTARTED)
            unstarted(o, l);
        else if (l->state == GPI_BOOK_STARTED)
            running(o, l);
    }
    for (uint32_t i = 0; o->truth->pooled && i < o->truth->tasks; i++) {
        const uint32_t state = o->task[i].state;
        gpi_oracle_about(o, GPI_NOWHERE, i);
        if (!gpi_book_is_external(o, o->truth->task[i].class))
            continue;
        after(o, o->outside[i].owes_end, "external work has ended, and nobody is told");
        o->outside[i].owes_end = false;
        if (state == GPI_BOOK_QUEUED || state == GPI_BOOK_LATER)
            waiting(o, i);
    }
    o->fed_at = 0;
    o->is_time = false;
}
