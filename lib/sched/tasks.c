/* SPDX-License-Identifier: MIT */
/* tasks.c - from submit to the one end of each task.                             [C1] [C2] [C3] */
#include <stdlib.h>

#include "sched/place.h"
#include "sched/spread.h"

#define AT_A_TIME 4096u  /* due tasks: a million that expire together must not hold the lock */
#define RECALLS 8u       /* in one event: the ring is bounded */

int gpi_tasks_make(struct gpi_sched *c)
{
    const uint32_t n = c->set.tasks;

    c->task = calloc(n, sizeof *c->task);
    c->ended_next = malloc(sizeof *c->ended_next * n);
    return c->task && c->ended_next && gpi_queue_init(&c->queue, n) == 0 &&
                   gpi_heap_init(&c->retries, n) == 0 && gpi_heap_init(&c->expiries, n) == 0
               ? 0
               : -1;
}

void gpi_tasks_free(struct gpi_sched *c)
{
    gpi_heap_fini(&c->retries);
    gpi_heap_fini(&c->expiries);
    gpi_queue_fini(&c->queue);
    free(c->ended_next);
    free(c->task);
}

/* ---- the end of a task ---- */

/* A sent task is cancelled: the core has ordered its ALARM, or awaits the reply to its RECALL. */
static bool is_cancelled(const struct gpi_sched *c, const struct gpi_sched_record *t)
{
    return c->slot[t->slot].told >> t->cell & 1 || t->wish >= GPI_WISH_SOFT;
}

/* The RECALL of the task has its reply.  If the worker keeps the task, the idle worker may get one
 * of another worker. */
static void forget_wish(struct gpi_sched *c, struct gpi_sched_record *t)
{
    if (t->wish == GPI_WISH_RETURN) {
        c->slot[t->slot].recalls--;
        c->undecided = true;
    }
    t->wish = GPI_WISH_NO;
}

/* The worker has no task any more. */
static void leave_last(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (s->stuck)
        gpi_spread_stuck(c, s, false);
    if (s->life == GPI_LIFE_LEAVE)
        gpi_ring_touch(c, s);
}

static inline void leave_cell(struct gpi_sched *c, struct gpi_sched_slot *s,
                              struct gpi_sched_record *t)
{
    const uint64_t others = ~(1ull << t->cell);

    s->cells &= others;
    s->claimed &= others;
    s->told &= others;
    s->cancelled &= others;
    c->n_ahead -= s->sent == 2;
    s->sent--;
    if (t->wish)
        forget_wish(c, t);
    if (s->sent == 0)
        leave_last(c, s);
    gpi_spread_less(c, s, t->slot);
    c->undecided |= c->queue.count > 0;
}

/* One of these tasks may make workers overwrite their pages.  Until all of them have ended, no
 * worker gets more than one task. */
static void be_wary(struct gpi_sched *c, struct gpi_sched_record *t)
{
    if (t->wary)
        return;
    t->wary = true;
    if (c->wary++ == 0)
        gpi_spread_refresh_all(c);
}

static void be_wary_no_more(struct gpi_sched *c, struct gpi_sched_record *t)
{
    t->wary = false;
    if (--c->wary == 0)
        gpi_spread_refresh_all(c);
}

/* The task is in no queue any more, and ends. */
static inline void retire(struct gpi_sched *c, uint32_t i)
{
    struct gpi_sched_record *t = &c->task[i];

    assert(t->state != GPI_RECORD_FREE);
    if (t->expires)
        gpi_heap_remove(&c->expiries, i);
    if (t->wary)
        be_wary_no_more(c, t);
    t->state = GPI_RECORD_FREE;
    c->unended--;
}

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

/* Ends a task that is in no queue any more.  If the list has the end of its last attempt, that
 * entry has the task's end, too: then the task has waited for its next attempt. */
static void finish(struct gpi_sched *c, uint32_t i, uint32_t outcome, uint32_t phase,
                   enum gpi_why why)
{
    retire(c, i);
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
        .attempts = t->attempts
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

static bool came_before(void *context, uint32_t a, uint32_t b)
{
    const struct gpi_sched *c = context;

    return c->task[a].number < c->task[b].number;
}

static bool none_can_run(const struct gpi_sched *c)
{
    return c->n_hopeless == c->n_slots;
}

/* Puts the task back to its old place.  If no task starts any more, the task ends. */
static void requeue(struct gpi_sched *c, uint32_t i)
{
    struct gpi_sched_record *t = &c->task[i];

    if (gpi_close_cancels(c)) {
        finish(c, i, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_QUEUED, GPI_WHY_NO);
    } else if (none_can_run(c)) {
        finish(c, i, GPUD_OUTCOME_NO_WORKER, GPUD_PHASE_QUEUED, GPI_WHY_NO);
    } else {
        t->state = GPI_RECORD_QUEUED;
        gpi_queue_put_back(&c->queue, i, t->priority, came_before, c);
        c->undecided = true;
    }
}

bool gpi_tasks_wait(const struct gpi_sched *c)
{
    return c->queue.count || c->retries.count;
}

/* Takes a waiting task out of its list. */
static void withdraw(struct gpi_sched *c, uint32_t i)
{
    if (c->task[i].state == GPI_RECORD_LATER)
        gpi_heap_remove(&c->retries, i);
    else
        gpi_queue_remove(&c->queue, i, c->task[i].priority);
}

void gpi_tasks_end_waiting(struct gpi_sched *c, uint32_t outcome)
{
    uint32_t i;

    while ((i = gpi_queue_pop(&c->queue)) != GPI_QUEUE_NONE)
        finish(c, i, outcome, GPUD_PHASE_QUEUED, GPI_WHY_NO);
    while ((i = gpi_heap_top_item(&c->retries)) != GPI_HEAP_NONE) {
        gpi_heap_remove(&c->retries, i);
        finish(c, i, outcome, GPUD_PHASE_QUEUED, GPI_WHY_NO);
    }
}

/* ---- submit, send, end ---- */

void gpi_tasks_accept(struct gpi_sched *c, uint32_t i, const struct gpi_sched_task *what)
{
    struct gpi_sched_record *t = &c->task[i];

    assert(i < c->set.tasks && t->state == GPI_RECORD_FREE);
    *t = (struct gpi_sched_record){ .number = c->submitted++,
                                    .limit = what->limit,
                                    .priority = what->priority,
                                    .max_attempts = (uint8_t)what->max_attempts,
                                    .causes = (uint8_t)what->causes,
                                    .expires = what->expires != GPI_NEVER,
                                    .state = GPI_RECORD_QUEUED };
    c->unended++;
    if (gpi_close_cancels(c) || none_can_run(c)) {
        t->expires = false;
        requeue(c, i);
        return;
    }
    if (t->expires)
        gpi_heap_set(&c->expiries, i, what->expires);
    c->undecided = true;
    gpi_queue_push(&c->queue, i, what->priority);
}

/* Returns the earliest time at which the hard limit of the task can matter. */
static uint64_t first_check(const struct gpi_sched *c, const struct gpi_sched_record *t)
{
    return gpi_time_add(gpi_time_add(c->now, t->limit), c->set.grace - c->set.lead);
}

/* The worker has got its first task, or one that waits behind another. */
static inline void expect(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (s->sent == 1) {
        s->oldest = s->number;
        s->heard = c->now;
        c->stuck_at = gpi_time_min(c->stuck_at, gpi_time_add(c->now, c->patience));
    } else {
        c->n_ahead += s->sent == 2;
        c->recall_at = gpi_time_min(c->recall_at, s->heard + GPI_PLACE_QUIET_NS);
        c->unfreed |= s->stuck;
    }
}

static inline void put_in_cell(struct gpi_sched *c, struct gpi_sched_slot *s,
                               const struct gpi_sched_order *o)
{
    struct gpi_sched_record *t = &c->task[o->task];
    const uint32_t cell = gpi_lowest_bit(~s->cells);
    const uint64_t number = ++s->number;

    t->state = GPI_RECORD_SENT;
    t->slot = (uint16_t)o->slot;
    t->cell = (uint8_t)cell;
    s->cells |= 1ull << cell;
    s->cell_number[cell] = number;
    s->order[number % GPI_SLOT_CELLS] = (uint8_t)cell;
    s->task[cell] = o->task;
    s->sent++;
    expect(c, s);
}

/* The time of a check moves back with each first task of a worker.  `times` learns that later. */
static inline void expect_check(struct gpi_sched *c, struct gpi_sched_slot *s,
                                const struct gpi_sched_record *t)
{
    const uint64_t at = t->limit == GPI_NEVER ? GPI_NEVER : first_check(c, t);

    if (s->sent == 1 || at < s->check_at)
        s->check_at = at;
    if (at < s->armed)
        gpi_ring_arm(c, s);
}

/* No task is queued.  If a worker is still idle, another decision may find a task for it. */
static bool none_queued(struct gpi_sched *c)
{
    const bool idle = (c->in_use[0] | c->in_use[GPI_RANK_DUE]) & 1;

    c->undecided |= idle && c->n_ahead && c->recall_at <= c->now && c->n_slots > 1;
    return false;
}

bool gpi_sched_send(struct gpi_sched *c, uint64_t now, struct gpi_sched_order *ret)
{
    const struct gpi_sched_record *t;
    struct gpi_sched_slot *s;

    gpi_set_time(c, now);
    if (c->queue.count == 0)
        return none_queued(c);
    ret->slot = gpi_spread_next(c);
    if (ret->slot == GPI_NOWHERE)
        return false;
    ret->task = gpi_queue_pop(&c->queue);
    t = &c->task[ret->task];
    s = &c->slot[ret->slot];
    put_in_cell(c, s, ret);
    expect_check(c, s, t);
    ret->cell = t->cell;
    ret->alone = t->alone | (c->wary > 0);
    ret->last = !gpi_spread_more(c, s, ret->slot);
    return true;
}

static bool may_try_again(const struct gpi_sched *c, const struct gpi_sched_record *t,
                          uint32_t outcome, bool device)
{
    if (gpi_close_cancels(c))
        return false; /* another attempt would be a new start: this outcome stands */
    if (device && outcome == GPUD_OUTCOME_CRASHED)
        return gpi_retry_after_device(t->causes, t->attempts, t->max_attempts);
    return gpi_retry_allowed(t->causes, outcome, t->attempts, t->max_attempts);
}

static void try_again(struct gpi_sched *c, uint32_t i)
{
    struct gpi_sched_record *t = &c->task[i];
    const uint64_t wait = gpi_retry_wait(&c->set.retry, t->attempts);

    if (t->expires) /* the task has started in time */
        gpi_heap_remove(&c->expiries, i);
    t->expires = t->lapsed = false;
    if (wait == 0 || none_can_run(c)) {
        requeue(c, i);
        return;
    }
    t->state = GPI_RECORD_LATER;
    gpi_heap_set(&c->retries, i, gpi_time_add(c->now, wait));
}

static inline void count_attempt(struct gpi_sched *c, struct gpi_sched_slot *s,
                                 struct gpi_sched_record *t, bool good)
{
    t->attempts++;
    s->served++;
    gpi_restart_good(&s->restart);
    c->successes += good;
}

/* If the phase is QUEUED, the worker found the task expired: that is no attempt. */
bool gpi_tasks_end(struct gpi_sched *c, const struct gpi_sched_attempt *a)
{
    struct gpi_sched_record *t = &c->task[a->task];
    struct gpi_sched_slot *s = &c->slot[t->slot];
    const bool started = a->phase != GPUD_PHASE_QUEUED, good = a->outcome == GPUD_OUTCOME_SUCCESS;
    bool again;

    assert(t->state == GPI_RECORD_SENT);
    if (t->state != GPI_RECORD_SENT) {
        c->impossible++;
        return true;
    }
    if (started) {
        count_attempt(c, s, t, good);
        gpi_spread_learn(c, s, a->run, a->share);
    }
    again = !good && started && !a->final && !is_cancelled(c, t) &&
            may_try_again(c, t, a->outcome, false);
    gpi_spread_heard(c, s);
    leave_cell(c, s, t);
    if (again)
        try_again(c, a->task);
    else
        retire(c, a->task);
    return again;
}

/* ---- recall, cancel ---- */

void gpi_tasks_came_back(struct gpi_sched *c, uint32_t i, bool spoilt)
{
    struct gpi_sched_record *t = &c->task[i];
    const bool cancelled = is_cancelled(c, t);
    const bool expired = t->wish == GPI_WISH_EXPIRE || t->lapsed;

    if (t->state != GPI_RECORD_SENT)
        return;
    leave_cell(c, &c->slot[t->slot], t);
    if (cancelled) {
        finish(c, i, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_QUEUED, GPI_WHY_NO);
    } else if (expired) {
        finish(c, i, GPUD_OUTCOME_TIMEOUT, GPUD_PHASE_QUEUED, GPI_WHY_NO);
    } else {
        if (spoilt)
            be_wary(c, t);
        requeue(c, i);
    }
}

/* Cancels a running task: orders its ALARM, and, if `hard`, sets the time of the kill. */
static void tell(struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t cell, bool hard)
{
    const uint64_t bit = 1ull << cell;

    if (s->cancelled & bit || (s->told & bit && !hard))
        return;
    s->told |= bit;
    gpi_ring_add(c, (struct gpi_sched_action){ .kind = GPI_ACT_ALARM,
                                               .slot = gpi_slot_number(c, s),
                                               .device = GPI_NOWHERE,
                                               .task = s->task[cell],
                                               .how = hard ? GPI_CANCEL_HARD
                                                           : GPI_CANCEL_SOFT });
    if (!hard)
        return;
    s->cancelled |= bit;
    s->cancel_at[cell] = c->now;
    s->check_at = gpi_time_min(s->check_at, gpi_time_add(c->now, c->set.grace));
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
    forget_wish(c, t);
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

    forget_wish(c, t);
    c->slot[t->slot].recalls += wish == GPI_WISH_RETURN;
    t->wish = (uint8_t)wish;
    gpi_ring_add(c, (struct gpi_sched_action){ .kind = GPI_ACT_RECALL,
                                               .slot = c->task[i].slot,
                                               .device = GPI_NOWHERE,
                                               .task = i,
                                               .how = wish == GPI_WISH_RETURN
                                                          ? GPI_RECALL_BACK
                                                          : GPI_RECALL_END });
}

void gpi_tasks_cancel(struct gpi_sched *c, uint32_t i, uint32_t how)
{
    struct gpi_sched_record *t = &c->task[i];

    switch (t->state) {
    case GPI_RECORD_QUEUED:
    case GPI_RECORD_LATER:
        withdraw(c, i);
        finish(c, i, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_QUEUED, GPI_WHY_NO);
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
    withdraw(c, i);
    finish(c, i, GPUD_OUTCOME_TIMEOUT, GPUD_PHASE_QUEUED, GPI_WHY_NO);
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
        gpi_heap_remove(&c->retries, i);
        requeue(c, i);
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
    const bool cancelled = is_cancelled(c, t);
    uint32_t phase, outcome = verdict(s, cell, &phase);
    const bool spoils = s->why == GPI_WHY_PROTOCOL && outcome == GPUD_OUTCOME_CRASHED;
    bool again;

    t->attempts++;
    t->alone |= batch > 1;
    again = !survived && !cancelled && !(t->spoilt && spoils) &&
            may_try_again(c, t, outcome, s->why == GPI_WHY_DEVICE);
    t->spoilt |= spoils;
    if (spoils)
        be_wary(c, t);
    leave_cell(c, s, t);
    if (!again) {
        finish(c, i, outcome, survived ? (uint32_t)GPUD_PHASE_KILL : phase,
               (enum gpi_why)s->why);
        return;
    }
    list(c, i, outcome, phase, (enum gpi_why)s->why);
    t->again = true;
    try_again(c, i);
}

uint32_t gpi_tasks_charge(struct gpi_sched *c, struct gpi_sched_slot *s, bool survived)
{
    const uint32_t charged = s->sent;

    for (uint64_t left = s->cells; left; left &= left - 1)
        charge(c, s, gpi_lowest_bit(left), charged, survived);
    return charged;
}

void gpi_tasks_new_worker(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    assert(s->sent == 0);
    s->served = 0;
    gpi_spread_put(c, s);
}
