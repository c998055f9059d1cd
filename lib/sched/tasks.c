/* SPDX-License-Identifier: MIT */
/* tasks.c - the queue, retries, expiry, cancels, and the one end of each task.   [C1] [C2] [C3] */
#include <stdlib.h>

#include "sched/place.h"
#include "sched/record.h"

#define AT_A_TIME 4096u  /* due tasks: a million that expire together must not hold the lock */
#define RECALLS 8u       /* in one event: the ring is bounded */

int gpi_tasks_make(struct gpi_sched *c)
{
    const uint32_t n = c->set.tasks;

    c->task = calloc(n, sizeof *c->task);
    c->ended_next = malloc(sizeof *c->ended_next * n);
    c->keep_alive = c->set.pooled ? malloc(sizeof *c->keep_alive * n) : NULL;
    if (!c->task || !c->ended_next || (c->set.pooled && !c->keep_alive))
        return -1;
    return gpi_heap_init(&c->retries, n) == 0 && gpi_heap_init(&c->expiries, n) == 0 ? 0 : -1;
}

void gpi_tasks_free(struct gpi_sched *c)
{
    gpi_heap_fini(&c->retries);
    gpi_heap_fini(&c->expiries);
    free(c->ended_next);
    free(c->keep_alive);
    free(c->task);
}

/* ---- the end of a task ---- */

static void list(struct gpi_sched *c, uint32_t i, uint32_t outcome, uint32_t phase,
                 enum gpi_why why)
{
    struct gpi_sched_record *t = &c->task[i];

    assert(!t->again);
    t->outcome = outcome & 15;
    t->phase = phase & 15;
    t->why = why & 15;
    c->ended_next[i] = 0;
    *(c->ended_tail ? &c->ended_next[c->ended_tail - 1] : &c->ended_head) = i + 1;
    c->ended_tail = i + 1;
}

/* If the list has the end of its last attempt, that entry has the task's end, too: then the task
 * has waited for its next attempt. */
void gpi_tasks_finish(struct gpi_sched *c, uint32_t i, uint32_t outcome, uint32_t phase,
                      enum gpi_why why)
{
    gpi_record_end(c, i);
    if (c->task[i].again)
        c->task[i].then = outcome & 15;
    else
        list(c, i, outcome, phase, why);
}

static void unlist(struct gpi_sched *c)
{
    c->ended_head = c->ended_next[c->ended_head - 1];
    if (c->ended_head == 0)
        c->ended_tail = 0;
}

bool gpi_sched_ended(struct gpi_sched *c, struct gpi_sched_end *ret)
{
    const uint32_t i = c->ended_head;
    struct gpi_sched_record *t;

    if (i == 0)
        return false;
    t = &c->task[i - 1];
    *ret = (struct gpi_sched_end){
        .task = i - 1, .again = t->again, .outcome = t->outcome, .phase = t->phase, .why = t->why,
        .attempts = t->attempts, .held = t->state == GPI_RECORD_HELD
    };
    if (t->again && t->state == GPI_RECORD_FREE) { /* the entry stays, with the task's end */
        t->outcome = t->then;
        t->phase = GPUD_PHASE_QUEUED;
        t->why = GPI_WHY_NO;
    } else {
        unlist(c);
    }
    t->again = false;
    return true;
}

/* ---- the queue ---- */

/* Of equals, the one from before. */
static bool came_before(void *context, uint32_t a, uint32_t b)
{
    const struct gpi_sched *c = context;

    return c->task[a].number <= c->task[b].number;
}

/* The youngest task of all belongs to the end. */
void gpi_tasks_enter(struct gpi_sched *c, uint32_t i)
{
    struct gpi_sched_record *t = &c->task[i];
    struct gpi_queue *q = &gpi_record_class(c, t)->queue;

    c->undecided = true;
    if (t->own) {
        gpi_own_wait(c, i);
        return;
    }
    t->state = GPI_RECORD_QUEUED;
    if (t->number == c->submitted)
        gpi_queue_push(q, i, t->priority);
    else
        gpi_queue_put_back(q, i, t->priority, came_before, c);
}

/* If no task starts any more, the task ends. */
void gpi_tasks_requeue(struct gpi_sched *c, uint32_t i)
{
    struct gpi_sched_record *t = &c->task[i];

    if (gpi_class_cancels(c, gpi_record_class(c, t))) {
        gpi_tasks_finish(c, i, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_QUEUED, GPI_WHY_NO);
    } else if (gpi_none_can_run(gpi_record_class(c, t))) {
        gpi_tasks_finish(c, i, GPUD_OUTCOME_NO_WORKER, GPUD_PHASE_QUEUED, GPI_WHY_NO);
    } else {
        gpi_tasks_enter(c, i);
    }
}

/* The task waits for its next attempt no more. */
static void undefer(struct gpi_sched *c, uint32_t i)
{
    gpi_heap_remove(&c->retries, i);
    gpi_record_class(c, &c->task[i])->deferred--;
}

/* Takes a waiting task out of its list. */
static void withdraw(struct gpi_sched *c, uint32_t i)
{
    const struct gpi_sched_record *t = &c->task[i];

    if (t->state == GPI_RECORD_LATER)
        undefer(c, i);
    else if (t->state == GPI_RECORD_OWN)
        gpi_own_leave(c, i);
    else
        gpi_queue_remove(&gpi_record_class(c, t)->queue, i, t->priority);
}

void gpi_tasks_end_one(struct gpi_sched *c, uint32_t i, uint32_t outcome)
{
    withdraw(c, i);
    gpi_tasks_finish(c, i, outcome, GPUD_PHASE_QUEUED, GPI_WHY_NO);
}

/* Ends the tasks of the class that wait; `all`: also those with requests of their own.  Rare: where
 * some wait outside of its queue it walks over all records. */
static void end_waiting(struct gpi_sched *c, struct gpi_sched_class *k, bool all, uint32_t outcome)
{
    const struct gpi_sched_record *t;
    uint32_t i;

    while ((i = gpi_queue_pop(&k->queue)) != GPI_QUEUE_NONE)
        gpi_tasks_finish(c, i, outcome, GPUD_PHASE_QUEUED, GPI_WHY_NO);
    for (i = 0; (k->deferred || (all && k->n_own)) && i < c->set.tasks; i++) {
        t = &c->task[i];
        if ((t->state == GPI_RECORD_LATER || t->state == GPI_RECORD_OWN) && (all || !t->own) &&
            gpi_record_class(c, t) == k)
            gpi_tasks_end_one(c, i, outcome);
    }
}

void gpi_tasks_end_queued(struct gpi_sched *c, struct gpi_sched_class *k, uint32_t outcome)
{
    end_waiting(c, k, false, outcome);
}

void gpi_tasks_end_waiting(struct gpi_sched *c, struct gpi_sched_class *k, uint32_t outcome)
{
    end_waiting(c, k, true, outcome);
}

/* ---- acceptance and retries ---- */

void gpi_tasks_refuse(struct gpi_sched *c, uint32_t i)
{
    c->task[i].expires = false;
    gpi_tasks_requeue(c, i);
}

static bool may_try_again(const struct gpi_sched *c, const struct gpi_sched_record *t,
                          uint32_t outcome, bool device)
{
    if (gpi_class_cancels(c, gpi_record_class(c, t)))
        return false; /* another attempt would be a new start: this outcome stands */
    if (device && outcome == GPUD_OUTCOME_CRASHED)
        return gpi_retry_after_device(t->causes, t->attempts, t->max_attempts);
    return gpi_retry_allowed(t->causes, outcome, t->attempts, t->max_attempts);
}

void gpi_tasks_defer(struct gpi_sched *c, uint32_t i, uint64_t at)
{
    c->task[i].state = GPI_RECORD_LATER;
    gpi_record_class(c, &c->task[i])->deferred++;
    gpi_heap_set(&c->retries, i, at);
}

static void try_again(struct gpi_sched *c, uint32_t i)
{
    struct gpi_sched_record *t = &c->task[i];
    const uint64_t wait = gpi_retry_wait(&gpi_record_class(c, t)->set.retry, t->attempts);

    if (t->expires) /* the task has started in time */
        gpi_heap_remove(&c->expiries, i);
    t->expires = t->lapsed = false;
    if (wait == 0 || gpi_none_can_run(gpi_record_class(c, t))) {
        gpi_tasks_requeue(c, i);
        return;
    }
    gpi_tasks_defer(c, i, gpi_time_add(c->now, wait));
}

bool gpi_tasks_retry(struct gpi_sched *c, uint32_t i, uint32_t outcome)
{
    if (!may_try_again(c, &c->task[i], outcome, false))
        return false;
    try_again(c, i);
    return true;
}

static void end_attempt(struct gpi_sched *c, uint32_t i, uint32_t outcome, uint32_t phase,
                        enum gpi_why why, bool again)
{
    if (!again) {
        gpi_tasks_finish(c, i, outcome, phase, why);
        return;
    }
    list(c, i, outcome, phase, why);
    c->task[i].again = true;
    try_again(c, i);
}

void gpi_tasks_attempt(struct gpi_sched *c, uint32_t i, uint32_t outcome, uint32_t phase,
                       enum gpi_why why, bool again)
{
    struct gpi_sched_record *t = &c->task[i];

    t->attempts++;
    again = again && may_try_again(c, t, outcome, why == GPI_WHY_DEVICE);
    end_attempt(c, i, outcome, phase, why, again);
}

/* ---- recall, cancel ---- */

void gpi_tasks_came_back(struct gpi_sched *c, uint32_t i, bool spoilt)
{
    struct gpi_sched_record *t = &c->task[i];
    const bool cancelled = gpi_record_is_cancelled(c, t);
    const bool expired = t->wish == GPI_WISH_EXPIRE || t->lapsed;

    if (t->state != GPI_RECORD_SENT)
        return;
    gpi_record_leave(c, &c->slot[t->slot], t);
    if (cancelled) {
        gpi_tasks_finish(c, i, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_QUEUED, GPI_WHY_NO);
    } else if (expired) {
        gpi_tasks_finish(c, i, GPUD_OUTCOME_TIMEOUT, GPUD_PHASE_QUEUED, GPI_WHY_NO);
    } else {
        if (spoilt)
            gpi_record_be_wary(c, t);
        gpi_tasks_requeue(c, i);
    }
}

/* Cancels a running task: orders its ALARM, and, if `hard`, sets the time of the kill. */
static void tell(struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t cell, bool hard)
{
    const uint64_t bit = 1ull << cell;

    if (s->cancelled & bit || (s->told & bit && !hard))
        return;
    s->told |= bit;
    gpi_ring_add_for(c, s,
                     (struct gpi_sched_action){ .kind = GPI_ACT_ALARM,
                                                .task = s->task[cell],
                                                .how = hard ? GPI_CANCEL_HARD : GPI_CANCEL_SOFT });
    if (!hard)
        return;
    s->cancelled |= bit;
    s->cancel_at[cell] = c->now;
    s->check_at = gpi_time_min(s->check_at, gpi_time_add(c->now, s->class->set.grace));
    gpi_ring_arm(c, s);
}

/* A worker claims its tasks in the order of their numbers. */
static void claim(struct gpi_sched_slot *s, uint64_t number)
{
    for (uint64_t left = s->cells; left; left &= left - 1)
        if (s->cell_number[gpi_lowest_bit(left)] <= number)
            s->claimed |= left & -left;
}

void gpi_tasks_claimed(struct gpi_sched *c, uint32_t i)
{
    struct gpi_sched_record *t = &c->task[i];
    struct gpi_sched_slot *s = &c->slot[t->slot];
    const uint32_t wish = t->wish;

    if (t->state != GPI_RECORD_SENT)
        return;
    claim(s, s->cell_number[t->cell]);
    gpi_record_forget_wish(c, t);
    t->lapsed |= wish == GPI_WISH_EXPIRE;
    if (wish >= GPI_WISH_SOFT)
        tell(c, s, t->cell, wish == GPI_WISH_HARD);
}

void gpi_tasks_held(struct gpi_sched_slot *s)
{
    s->claimed = s->cells;
}

void gpi_tasks_recall(struct gpi_sched *c, uint32_t i, enum gpi_wish wish)
{
    struct gpi_sched_record *t = &c->task[i];
    struct gpi_sched_slot *s = &c->slot[t->slot];
    const bool returns = wish == GPI_WISH_RETURN;

    gpi_record_forget_wish(c, t);
    s->recalls += returns;
    t->wish = (uint8_t)wish;
    gpi_ring_add_for(
        c, s,
        (struct gpi_sched_action){
            .kind = GPI_ACT_RECALL, .task = i, .how = returns ? GPI_RECALL_BACK : GPI_RECALL_END });
}

void gpi_tasks_cancel(struct gpi_sched *c, uint32_t i, uint32_t how)
{
    struct gpi_sched_record *t = &c->task[i];

    switch (t->state) {
    case GPI_RECORD_QUEUED:
    case GPI_RECORD_LATER:
    case GPI_RECORD_OWN:
        gpi_tasks_end_one(c, i, GPUD_OUTCOME_CANCELLED);
        break;
    case GPI_RECORD_SENT:
        gpi_tasks_recall(c, i, how == GPI_CANCEL_HARD ? GPI_WISH_HARD : GPI_WISH_SOFT);
        break;
    default:
        break; /* the task has ended */
    }
}

void gpi_tasks_cancel_at(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    for (uint64_t left = s->cells; left; left &= left - 1)
        tell(c, s, gpi_lowest_bit(left), true);
}

/* ---- time ---- */

uint64_t gpi_tasks_due(const struct gpi_sched *c)
{
    return gpi_time_min(gpi_heap_top_key(&c->retries), gpi_heap_top_key(&c->expiries));
}

/* Returns true if the task was sent, and a RECALL must fetch it. */
static bool expire(struct gpi_sched *c, uint32_t i)
{
    struct gpi_sched_record *t = &c->task[i];

    gpi_heap_remove(&c->expiries, i);
    t->expires = false;
    if (t->state == GPI_RECORD_SENT) {
        if (t->wish <= GPI_WISH_RETURN)
            gpi_tasks_recall(c, i, GPI_WISH_EXPIRE);
        return true;
    }
    gpi_tasks_end_one(c, i, GPUD_OUTCOME_TIMEOUT);
    return false;
}

void gpi_tasks_time(struct gpi_sched *c)
{
    uint32_t recalls = 0;

    for (uint32_t n = 0; n < AT_A_TIME && recalls < RECALLS; n++) {
        if (gpi_heap_top_key(&c->expiries) > c->now)
            break;
        recalls += expire(c, gpi_heap_top_item(&c->expiries));
    }
    for (uint32_t n = 0; n < AT_A_TIME && gpi_heap_top_key(&c->retries) <= c->now; n++) {
        const uint32_t i = gpi_heap_top_item(&c->retries);
        undefer(c, i);
        gpi_tasks_requeue(c, i);
    }
}

/* ---- the end of a worker, the start of the next ---- */

/* Returns the outcome of a task that ran when its worker died, unless the core retries the task.
 * If the kill was for the limit or cancel of another task of the batch, this task has only lost its
 * worker. */
static uint32_t verdict(const struct gpi_sched_slot *s, uint32_t cell, uint32_t *ret_phase)
{
    const bool asked = s->cancelled >> cell & 1;
    const bool ladder =
        s->why == GPI_WHY_LIMIT || s->why == GPI_WHY_CANCEL || s->why == GPI_WHY_STOPPED;

    *ret_phase = GPUD_PHASE_HARD;
    if (ladder && s->doomed >> cell & 1)
        return GPUD_OUTCOME_TIMEOUT;
    if ((ladder && asked) || s->why == GPI_WHY_CLOSE)
        return GPUD_OUTCOME_CANCELLED;
    *ret_phase = GPUD_PHASE_PROCESS;
    return asked ? GPUD_OUTCOME_CANCELLED : GPUD_OUTCOME_CRASHED; /* cancelled before the death */
}

/* A task that was charged in a batch runs alone later: so the task that kills workers is found. */
static void charge(struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t cell, uint32_t batch,
                   bool survived)
{
    const uint32_t i = s->task[cell];
    struct gpi_sched_record *t = &c->task[i];
    const bool cancelled = gpi_record_is_cancelled(c, t);
    uint32_t phase, outcome = verdict(s, cell, &phase);
    const bool spoils = s->why == GPI_WHY_PROTOCOL && outcome == GPUD_OUTCOME_CRASHED;
    bool again;

    t->attempts++;
    t->alone |= batch > 1;
    again = !survived && !cancelled && !(t->spoilt && spoils) &&
            may_try_again(c, t, outcome, s->why == GPI_WHY_DEVICE);
    t->spoilt |= spoils;
    if (spoils)
        gpi_record_be_wary(c, t);
    gpi_record_leave(c, s, t);
    end_attempt(c, i, outcome, survived ? (uint32_t)GPUD_PHASE_KILL : phase,
                (enum gpi_why)s->why, again);
}

uint32_t gpi_tasks_charge(struct gpi_sched *c, struct gpi_sched_slot *s, bool survived)
{
    const uint32_t charged = s->sent;

    for (uint64_t left = s->cells; left; left &= left - 1)
        charge(c, s, gpi_lowest_bit(left), charged, survived);
    return charged;
}

void gpi_tasks_new_worker(struct gpi_sched_slot *s)
{
    assert(s->sent == 0);
    s->served = 0;
}
