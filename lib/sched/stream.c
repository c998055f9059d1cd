/* SPDX-License-Identifier: MIT */
/*
 * stream.c - submit, send, end: the path of every task.                            [C1] [C5]
 *
 * It has no ring and no table.  It meets the rest where a task needs it: a retry, an expiry, a
 * cancel, the last task of a worker that leaves, the end of a close.
 */
#include "sched/place.h"
#include "sched/record.h"

/* ---- submit ---- */

/* The task may end at once, expires, or has an order or a request of its own; or the dispatcher is
 * closed. */
GPI_RARE static bool submit_rarely(struct gpi_sched *c, uint32_t i,
                                   const struct gpi_sched_task *what)
{
    struct gpi_sched_record *t = &c->task[i];
    const bool starts = !gpi_close_cancels(c) && !gpi_none_can_run(gpi_record_class(c, t));

    if (what->order)
        t->number = what->order;
    if (t->number > c->submitted)
        c->submitted = t->number;
    t->keeps = what->keep_alive && c->keep_alive;
    if (t->keeps)
        c->keep_alive[i] = what->keep_alive;
    if (what->n_requests)
        gpi_own_begin(c, i, what);
    if (c->external.task)
        c->external.task[i] = (struct gpi_outside){ .stall = what->stall };
    if (!starts) {
        gpi_tasks_refuse(c, i);
    } else {
        t->expires = what->expires != GPI_NEVER;
        if (t->expires)
            gpi_heap_set(&c->expiries, i, what->expires);
        gpi_tasks_enter(c, i);
    }
    if (c->closing)
        gpi_sched_follow(c);
    return starts;
}

bool gpi_sched_submit(struct gpi_sched *c, uint32_t i, const struct gpi_sched_task *what)
{
    struct gpi_sched_record *t = &c->task[i];
    struct gpi_sched_class *k = &c->class[what->class];

    assert(i < c->set.tasks && t->state == GPI_RECORD_FREE && what->class < c->n_classes);
    *t = (struct gpi_sched_record){
        .number = c->submitted + 1,
        .limit = what->limit,
        .priority = what->priority,
        .max_attempts = (uint8_t)what->max_attempts,
        .causes = (uint8_t)what->causes,
        .state = GPI_RECORD_QUEUED,
        .class = what->class & 255,
    };
    c->unended++;
    c->undecided = true;
    if (c->closing || gpi_none_can_run(k) || what->expires != GPI_NEVER ||
        (what->keep_alive | what->order | what->n_requests) ||
        !gpi_queue_extends(&k->queue, what->priority))
        return submit_rarely(c, i, what);
    c->submitted++;
    gpi_queue_extend(&k->queue, i);
    return true;
}

/* ---- send ---- */

/* The grant of the worker has its first task. */
static inline void use(struct gpi_sched_class *k, struct gpi_sched_slot *s)
{
    k->n_fresh--;
    k->unused -= s->counts;
    s->fresh = s->counts = false;
}

/* The worker has got its first task, or one that waits behind another. */
static inline void expect(const struct gpi_sched *c, struct gpi_sched_class *k,
                          struct gpi_sched_slot *s)
{
    if (s->sent == 1) {
        s->oldest = s->number;
        s->heard = c->now;
        if (s->fresh)
            use(k, s);
        k->stuck_at = gpi_time_min(k->stuck_at, gpi_time_add(c->now, k->patience));
    } else {
        k->recall_at = gpi_time_min(k->recall_at, s->heard + GPI_PLACE_QUIET_NS);
        k->unfreed |= s->stuck;
    }
}

/* The time of a check moves back with each first task of a worker.  `times` learns that later. */
static inline void expect_check(struct gpi_sched *c, const struct gpi_sched_class *k,
                                struct gpi_sched_slot *s, const struct gpi_sched_record *t)
{
    /* the earliest that the limit can matter */
    const uint64_t notice = k->set.grace - k->set.lead;
    const uint64_t at = t->limit == GPI_NEVER
                            ? GPI_NEVER
                            : gpi_time_add(gpi_time_add(c->now, t->limit), notice);

    if (s->sent == 1 || at < s->check_at)
        s->check_at = at;
    if (at < s->armed)
        gpi_ring_arm(c, s);
}

/* Sends the task to this worker. */
static inline void send_task(struct gpi_sched *c, struct gpi_sched_class *k,
                             struct gpi_sched_slot *s, uint32_t slot, uint32_t task,
                             struct gpi_sched_order *ret)
{
    const uint32_t cell = gpi_lowest_bit(~s->cells);
    const uint64_t number = ++s->number;
    struct gpi_sched_record *t = &c->task[task];

    t->state = GPI_RECORD_SENT;
    t->slot = (uint16_t)slot;
    t->cell = (uint8_t)cell;
    s->cells |= 1ull << cell;
    s->cell_number[cell] = number;
    s->order[number % GPI_SLOT_CELLS] = (uint8_t)cell;
    s->task[cell] = task;
    s->sent++;
    expect(c, k, s);
    expect_check(c, k, s, t);
    *ret = (struct gpi_sched_order){
        .slot = slot,
        .task = task,
        .cell = cell,
        .alone = t->alone || c->wary,
        .last = !gpi_spread_has_life(k, s),
    };
}

/* Sends the next task of the class. */
static inline void send_one(struct gpi_sched *c, struct gpi_sched_class *k,
                            struct gpi_sched_slot *s, uint32_t slot, struct gpi_sched_order *ret)
{
    send_task(c, k, s, slot, gpi_queue_pop(&k->queue), ret);
}

/* Sends tasks to the only worker that takes any, as many as it may have. */
static inline uint32_t send_alone(struct gpi_sched *c, struct gpi_sched_class *k, uint32_t shelf,
                                  struct gpi_sched_order *ret, uint32_t most)
{
    const uint32_t slot = gpi_spread_first(k, shelf);
    struct gpi_sched_slot *s = &c->slot[slot];
    uint32_t n = 0;

    do
        send_one(c, k, s, slot, &ret[n++]);
    while (n < most && k->queue.count && gpi_spread_gets(k, s));
    gpi_spread_put(c, s);
    return n;
}

/* Sends a task to each worker of a shelf, or of its first ones, which move to the next shelf. */
static inline uint32_t send_shelf(struct gpi_sched *c, struct gpi_sched_class *k, uint32_t shelf,
                                  struct gpi_sched_order *ret, uint32_t most)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < k->words; i++) {
        uint64_t *word = k->shelf + (i * GPI_SHELVES + shelf), left = *word, up = 0;
        for (; left && n < most && k->queue.count; left &= left - 1) {
            const uint32_t slot = i * 64 + gpi_lowest_bit(left);
            struct gpi_sched_slot *s = &c->slot[slot];
            send_one(c, k, s, slot, &ret[n]);
            if (gpi_spread_gets(k, s)) {
                up |= left & -left;
                s->shelf++;
            } else {
                s->shelf = GPI_SHELF_NONE;
                gpi_spread_put(c, s); /* its numbers may have room: it finds the oldest one anew */
            }
            n++;
        }
        gpi_spread_shift(k, word, shelf, left, up);
    }
    return n;
}

/* No task is queued.  If a worker is still idle, another decision may find a task for it, or end
 * its grant. */
static void none_queued(struct gpi_sched *c, const struct gpi_sched_class *k)
{
    const bool idle = gpi_spread_has_idle(k);

    c->undecided |= c->plan ? idle || k->n_fresh
                            : idle && k->recall_at <= c->now && c->n_slots > 1;
}

static inline uint32_t send_class(struct gpi_sched *c, struct gpi_sched_class *k,
                                  struct gpi_sched_order *ret, uint32_t most)
{
    uint32_t n = 0;

    while (n < most && k->queue.count) {
        const uint32_t shelf = gpi_spread_lowest_shelf(c, k);
        if (shelf == GPI_SHELF_NONE)
            break;
        n += k->n_takes == 1 ? send_alone(c, k, shelf, &ret[n], most - n)
                             : send_shelf(c, k, shelf, &ret[n], most - n);
    }
    if (k->queue.count == 0)
        none_queued(c, k);
    return n;
}

/* Sends each task that the plan has chosen to its worker, if that takes it now. */
GPI_RARE static uint32_t send_chosen(struct gpi_sched *c, struct gpi_sched_order *ret,
                                     uint32_t most)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n_slots; i += 64)
        for (uint64_t left = c->own.bound[i / 64]; left && n < most; left &= left - 1) {
            const uint32_t slot = i + gpi_lowest_bit(left);
            struct gpi_sched_slot *s = &c->slot[slot];
            if (!gpi_spread_takes_chosen(c, s))
                continue;
            gpi_own_sent(c, s);
            send_task(c, s->class, s, slot, s->stream - c->n_streams, &ret[n++]);
        }
    return n;
}

uint32_t gpi_sched_send(struct gpi_sched *c, uint64_t now, struct gpi_sched_order *ret,
                        uint32_t most)
{
    uint32_t n = 0;

    gpi_set_time(c, now);
    if (c->own.n_bound)
        n = send_chosen(c, ret, most);
    for (uint32_t i = 0; i < c->n_classes && n < most; i++)
        n += send_class(c, &c->class[i], &ret[n], most - n);
    return n;
}

/* ---- end ---- */

/* The worker is well, and its device: it has ended an attempt. */
static inline void count_attempt(struct gpi_sched_class *k, struct gpi_sched_slot *s,
                                 struct gpi_sched_record *t, bool good)
{
    t->attempts++;
    s->served++;
    gpi_restart_good(s->restart);
    k->successes += good;
}

static inline void leave(struct gpi_sched *c, struct gpi_sched_slot *s, struct gpi_sched_record *t)
{
    gpi_spread_heard(c, s);
    gpi_record_leave(c, s, t);
}

static inline void follow(struct gpi_sched *c)
{
    if (c->touched || c->closing)
        gpi_sched_follow(c);
}

static inline void keep(const struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t task)
{
    s->keep = c->task[task].keeps ? c->keep_alive[task] : 0;
}

/* If the phase is QUEUED, the worker found the task expired: that is no attempt. */
bool gpi_sched_end(struct gpi_sched *c, uint64_t now, const struct gpi_sched_attempt *a)
{
    struct gpi_sched_record *t = &c->task[a->task];
    struct gpi_sched_slot *s = &c->slot[t->slot];
    const bool good = a->outcome == GPUD_OUTCOME_SUCCESS;
    bool again = false;

    gpi_set_time(c, now);
    assert(t->state == GPI_RECORD_SENT);
    if (t->state != GPI_RECORD_SENT) {
        c->impossible++;
        return true;
    }
    if (a->phase != GPUD_PHASE_QUEUED) {
        count_attempt(s->class, s, t, good);
        gpi_spread_learn(s->class, s, a->run, a->share);
        s->last_run = good ? a->run | 1 : s->last_run;
        keep(c, s, a->task);
        again = !good && !a->final && !gpi_record_is_cancelled(c, t);
    }
    leave(c, s, t);
    again = again && gpi_tasks_retry(c, a->task, a->outcome);
    if (!again)
        gpi_record_end(c, a->task);
    follow(c);
    return again;
}

/* The task is not as most are, or the worker, or it is the worker's last one. */
GPI_RARE static void succeed_rarely(struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t task)
{
    keep(c, s, task);
    leave(c, s, &c->task[task]);
    gpi_record_end(c, task);
    follow(c);
}

void gpi_sched_success(struct gpi_sched *c, uint64_t now, uint32_t task, uint64_t run)
{
    struct gpi_sched_record *t = &c->task[task];
    struct gpi_sched_slot *s = &c->slot[t->slot];
    struct gpi_sched_class *const k = s->class;

    gpi_set_time(c, now);
    assert(t->state == GPI_RECORD_SENT);
    count_attempt(k, s, t, true);
    gpi_spread_learn(k, s, run, run);
    s->last_run = run | 1;
    s->keep = 0;
    if (gpi_record_is_plain(t) && s->sent > 1 && !s->stuck && !(s->claimed | s->told) &&
        !c->touched && !c->closing) {
        s->heard = c->now;
        s->cells ^= 1ull << t->cell;
        s->sent--;
        gpi_spread_less(k, s, t->slot);
        c->undecided |= k->queue.count > 0;
        t->state = GPI_RECORD_FREE;
        c->unended--;
        return;
    }
    succeed_rarely(c, s, task);
}
