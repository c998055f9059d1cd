/* SPDX-License-Identifier: MIT */
/* tasks.c - from submit to the one end of each task.                             [C1] [C2] [C3] */
#include <stdlib.h>

#include "base/bits.h"
#include "sched/core.h"

#define AT_A_TIME 4096u  /* due tasks: a million that expire together must not hold the lock */
#define RECALLS 8u       /* in one event: the ring is bounded */

static uint32_t words(const struct gpi_sched *c)
{
    return (c->set.slots + 63) / 64;
}

int gpi_tasks_make(struct gpi_sched *c)
{
    const uint32_t n = c->set.tasks;

    c->task = calloc(n, sizeof *c->task);
    c->ended_next = malloc(sizeof *c->ended_next * n);
    c->idle = calloc(words(c), sizeof *c->idle);
    c->open = calloc(words(c), sizeof *c->open);
    return c->task && c->ended_next && c->idle && c->open && gpi_queue_init(&c->queue, n) == 0 &&
                   gpi_heap_init(&c->retries, n) == 0 && gpi_heap_init(&c->expiries, n) == 0
               ? 0
               : -1;
}

void gpi_tasks_free(struct gpi_sched *c)
{
    gpi_heap_fini(&c->retries);
    gpi_heap_fini(&c->expiries);
    gpi_queue_fini(&c->queue);
    free(c->open);
    free(c->idle);
    free(c->ended_next);
    free(c->task);
}

/* ---- which workers take tasks ---- */

/* Returns how many more tasks the worker may get in its life. */
static uint32_t left_of_life(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    const uint64_t had = (uint64_t)s->served + s->sent;

    if (c->set.max_tasks == 0 || c->renewing)
        return UINT32_MAX;
    return had < c->set.max_tasks ? (uint32_t)(c->set.max_tasks - had) : 0;
}

static void set_bit(uint64_t *word, uint64_t bit, bool on)
{
    *word = on ? *word | bit : *word & ~bit;
}

void gpi_tasks_refresh(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const uint32_t i = gpi_slot_number(c, s);
    const bool takes = s->life == GPI_LIFE_UP && !s->still && left_of_life(c, s) > 0;

    set_bit(&c->idle[i / 64], 1ull << i % 64, takes && s->sent == 0);
    set_bit(&c->open[i / 64], 1ull << i % 64, takes && s->sent < c->set.max_sent);
    c->undecided |= takes && c->queue.count;
}

static uint32_t first_idle(const struct gpi_sched *c)
{
    for (uint32_t i = 0; i < words(c); i++)
        if (c->idle[i])
            return i * 64 + gpi_lowest_bit(c->idle[i]);
    return GPI_NOWHERE;
}

static uint32_t least_sent(const struct gpi_sched *c)
{
    uint32_t least = GPI_NOWHERE;

    for (uint32_t w = 0; w < words(c); w++)
        for (uint64_t left = c->open[w]; left; left &= left - 1) {
            const uint32_t i = w * 64 + gpi_lowest_bit(left);
            if (least == GPI_NOWHERE || c->slot[i].sent < c->slot[least].sent)
                least = i;
        }
    return least;
}

/* ---- the end of a task ---- */

/* A sent task is cancelled: the core has ordered its ALARM, or awaits the reply to its RECALL. */
static bool is_cancelled(const struct gpi_sched *c, const struct gpi_sched_record *t)
{
    return c->slot[t->slot].told >> t->cell & 1 || t->wish == GPI_WISH_SOFT ||
           t->wish == GPI_WISH_HARD;
}

static void leave_cell(struct gpi_sched *c, struct gpi_sched_record *t)
{
    struct gpi_sched_slot *s = &c->slot[t->slot];
    const uint64_t bit = 1ull << t->cell;

    s->cells &= ~bit;
    s->told &= ~bit;
    s->cancelled &= ~bit;
    s->sent--;
    t->wish = GPI_WISH_NO;
    gpi_tasks_refresh(c, s);
    if (s->sent == 0)
        gpi_ring_touch(c, s);
}

/* Ends a task that is in no list any more. */
static void finish(struct gpi_sched *c, uint32_t i, uint32_t outcome, uint32_t phase,
                   enum gpi_why why)
{
    struct gpi_sched_record *t = &c->task[i];

    assert(t->state != GPI_RECORD_FREE);
    if (t->expires)
        gpi_heap_remove(&c->expiries, i);
    t->state = GPI_RECORD_FREE;
    t->outcome = (uint8_t)outcome;
    t->phase = (uint8_t)phase;
    t->why = (uint8_t)why;
    c->unended--;
    c->ended_next[i] = 0;
    *(c->ended_tail ? &c->ended_next[c->ended_tail - 1] : &c->ended_head) = i + 1;
    c->ended_tail = i + 1;
}

bool gpi_sched_ended(struct gpi_sched *c, struct gpi_sched_end *ret)
{
    const uint32_t i = c->ended_head;
    const struct gpi_sched_record *t;

    if (i == 0)
        return false;
    c->ended_head = c->ended_next[i - 1];
    if (c->ended_head == 0)
        c->ended_tail = 0;
    t = &c->task[i - 1];
    *ret = (struct gpi_sched_end){
        .task = i - 1, .outcome = t->outcome, .phase = t->phase, .why = t->why,
        .attempts = t->attempts
    };
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
    gpi_queue_push(&c->queue, i, t->priority);
    c->undecided = true;
}

/* Returns the earliest time at which the hard limit of the task can matter. */
static uint64_t first_look(const struct gpi_sched *c, const struct gpi_sched_record *t)
{
    return gpi_time_add(gpi_time_add(c->now, t->limit), c->set.grace - c->set.lead);
}

bool gpi_tasks_send(struct gpi_sched *c, uint32_t *ret_slot, uint32_t *ret_task,
                    uint32_t *ret_cell)
{
    struct gpi_sched_record *t;
    struct gpi_sched_slot *s;
    uint32_t i, slot;

    if (c->queue.count == 0)
        return false;
    slot = first_idle(c);
    if (slot == GPI_NOWHERE)
        slot = least_sent(c);
    if (slot == GPI_NOWHERE)
        return false;
    i = gpi_queue_pop(&c->queue);
    t = &c->task[i];
    s = &c->slot[slot];
    t->state = GPI_RECORD_SENT;
    t->slot = (uint16_t)slot;
    t->cell = (uint8_t)gpi_lowest_bit(~s->cells);
    s->cells |= 1ull << t->cell;
    s->cell_number[t->cell] = ++s->number;
    s->task[t->cell] = i;
    s->sent++;
    gpi_tasks_refresh(c, s);
    if (t->limit != GPI_NEVER && first_look(c, t) < s->check_at) {
        s->check_at = first_look(c, t);
        gpi_ring_arm(c, s);
    }
    *ret_slot = slot;
    *ret_task = i;
    *ret_cell = t->cell;
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
    t->expires = false;
    if (wait == 0 || none_can_run(c)) {
        requeue(c, i);
        return;
    }
    t->state = GPI_RECORD_LATER;
    gpi_heap_set(&c->retries, i, gpi_time_add(c->now, wait));
}

void gpi_tasks_end(struct gpi_sched *c, uint32_t i, uint32_t outcome, uint32_t phase)
{
    struct gpi_sched_record *t = &c->task[i];
    struct gpi_sched_slot *s = &c->slot[t->slot];
    const bool cancelled = is_cancelled(c, t);
    const bool started = phase != GPUD_PHASE_QUEUED; /* else the worker found the task expired */

    assert(t->state == GPI_RECORD_SENT);
    if (t->state != GPI_RECORD_SENT)
        return;
    if (started) {
        t->attempts++;
        s->served++;
        gpi_restart_good(&s->restart);
        c->successes += outcome == GPUD_OUTCOME_SUCCESS;
    }
    leave_cell(c, t);
    if (started && !cancelled && may_try_again(c, t, outcome, false))
        try_again(c, i);
    else
        finish(c, i, outcome, phase, GPI_WHY_NO);
}

/* ---- recall, cancel ---- */

void gpi_tasks_came_back(struct gpi_sched *c, uint32_t i)
{
    struct gpi_sched_record *t = &c->task[i];
    const bool cancelled = is_cancelled(c, t), expired = t->wish == GPI_WISH_EXPIRE;

    if (t->state != GPI_RECORD_SENT)
        return;
    leave_cell(c, t);
    if (cancelled)
        finish(c, i, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_QUEUED, GPI_WHY_NO);
    else if (expired)
        finish(c, i, GPUD_OUTCOME_TIMEOUT, GPUD_PHASE_QUEUED, GPI_WHY_NO);
    else
        requeue(c, i);
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
                                               .task = s->task[cell] });
    if (!hard)
        return;
    s->cancelled |= bit;
    s->cancel_at[cell] = c->now;
    s->check_at = gpi_time_min(s->check_at, gpi_time_add(c->now, c->set.grace));
    gpi_ring_arm(c, s);
}

void gpi_tasks_claimed(struct gpi_sched *c, uint32_t i)
{
    struct gpi_sched_record *t = &c->task[i];
    const uint32_t wish = t->wish;

    if (t->state != GPI_RECORD_SENT)
        return;
    t->wish = GPI_WISH_NO;
    if (wish == GPI_WISH_SOFT || wish == GPI_WISH_HARD)
        tell(c, &c->slot[t->slot], t->cell, wish == GPI_WISH_HARD);
}

static void recall(struct gpi_sched *c, uint32_t i, enum gpi_wish wish)
{
    c->task[i].wish = (uint8_t)wish;
    gpi_ring_add(c, (struct gpi_sched_action){ .kind = GPI_ACT_RECALL,
                                               .slot = c->task[i].slot,
                                               .device = GPI_NOWHERE,
                                               .task = i });
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
        recall(c, i, how == GPI_CANCEL_HARD ? GPI_WISH_HARD : GPI_WISH_SOFT);
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
        if (t->wish == GPI_WISH_NO)
            recall(c, i, GPI_WISH_EXPIRE);
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

static void charge(struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t cell, bool survived)
{
    const uint32_t i = s->task[cell];
    struct gpi_sched_record *t = &c->task[i];
    const bool cancelled = is_cancelled(c, t);
    uint32_t phase, outcome = verdict(s, cell, &phase);
    const bool spoils = s->why == GPI_WHY_PROTOCOL && outcome == GPUD_OUTCOME_CRASHED;
    bool again;

    t->attempts++;
    again = !survived && !cancelled && !(t->spoilt && spoils) &&
            may_try_again(c, t, outcome, s->why == GPI_WHY_DEVICE);
    t->spoilt |= spoils;
    leave_cell(c, t);
    if (again)
        try_again(c, i);
    else
        finish(c, i, outcome, survived ? (uint32_t)GPUD_PHASE_KILL : phase,
               (enum gpi_why)s->why);
}

uint32_t gpi_tasks_charge(struct gpi_sched *c, struct gpi_sched_slot *s, bool survived)
{
    const uint32_t charged = s->sent;

    for (uint64_t left = s->cells; left; left &= left - 1)
        charge(c, s, gpi_lowest_bit(left), survived);
    return charged;
}

void gpi_tasks_new_worker(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    assert(s->sent == 0);
    s->served = 0;
    gpi_tasks_refresh(c, s);
}

#ifndef NDEBUG
void gpi_tasks_force(struct gpi_sched *c, uint32_t i, uint32_t state, uint32_t slot, uint32_t cell)
{
    struct gpi_sched_record *t = &c->task[i];
    struct gpi_sched_slot *s = &c->slot[slot];

    c->unended = c->unended + (state != GPI_RECORD_FREE) - (t->state != GPI_RECORD_FREE);
    if (t->state == GPI_RECORD_SENT)
        leave_cell(c, t);
    else if (t->state != GPI_RECORD_FREE)
        withdraw(c, i);
    t->state = (uint8_t)state;
    if (state == GPI_RECORD_QUEUED)
        gpi_queue_push(&c->queue, i, t->priority);
    else if (state == GPI_RECORD_LATER)
        gpi_heap_set(&c->retries, i, GPI_NEVER - 1);
    if (state != GPI_RECORD_SENT)
        return;
    t->slot = (uint16_t)slot;
    t->cell = (uint8_t)cell;
    s->cells |= 1ull << cell;
    s->task[cell] = i;
    s->sent++;
    gpi_tasks_refresh(c, s);
}
#endif
