/* SPDX-License-Identifier: MIT */
/*
 * dispatch.c - from the queue into cells, a bell for workers that sleep, and back by recall.
 *
 * Whether a task that was sent is still the worker's is decided by the claim word alone. [C2]
 */
#include <errno.h>
#include <sched.h>

#include "base/bits.h"
#include "base/clock.h"
#include "host/dispatcher.h"
#include "host/shadow.h"
#include "host/slot.h"
#include "host/task.h"
#include "os/fds.h"
#include "sched/place.h"
#include "wire/frame.h"

#define PEEK_NS GPI_MS

/* Whether its worker may be sent tasks. */
static bool takes(const struct gpi_slot *s)
{
    return (s->state == GPUD_SLOT_READY || s->state == GPUD_SLOT_BUSY) && s->kill == GPI_KILL_NO &&
           !s->keeper_lost && !s->leaving && !s->still;
}

/* How many tasks this worker may have now.  With large results, no more than its share of the
 * budget surely holds. */
static uint32_t depth(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    uint32_t n = d->set.sent_ahead ? d->set.sent_ahead : gpi_place_depth(s->mean_run);
    uint64_t left = d->set.result_size - s->held;

    if (n < d->set.least_ahead)
        n = d->set.least_ahead; /* a batch, and the next where that is ours to choose */
    if (d->wary)
        n = 1; /* the one that spoils the page can wipe out the ends before its own */
    if (s->largest_result && left / s->largest_result < n)
        n = (uint32_t)(left / s->largest_result);
    if (n == 0 && s->held == s->kept)
        n = 1; /* there may never be more room: what the host keeps it may keep for ever */
    return n;
}

/* Send numbers in flight span less than the order ring, else an entry that is still needed would
 * be overwritten: a long task, with others sent and recalled behind it, can hold them apart. */
static uint32_t numbers_left(const struct gpi_slot *s)
{
    uint64_t span = s->sent ? s->number + 1 - s->oldest : 0;

    return span < GPI_CELLS ? GPI_CELLS - (uint32_t)span : 0;
}

static bool stuck(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return s->sent > 0 && d->now >= gpi_place_stuck_at(s->last_heard + d->set.batch_wait, d->mean_run);
}

/* Whether some worker that takes tasks is not stuck in a long one. */
static bool others_work(const gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (takes(&d->slot[i]) && !stuck(d, &d->slot[i]))
            return true;
    return false;
}

/* Tasks are sent in FIFO order: one that waits behind a long task goes back to its place, unless
 * every worker is in one.                                                                [C5] */
static void free_the_stuck(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (s->sent >= 2 && takes(s) && stuck(d, s))
            d->count.recalled += gpi_recall_all(d, s);
    }
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* How many more tasks this worker may be sent now. */
static uint32_t room_at(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    uint32_t most = depth(d, s);

    return s->sent < most ? least(most - s->sent, least(numbers_left(s), gpi_renew_left(d, s))) : 0;
}

/* Appends those workers to the loads that are due to be replaced, or that are not. */
static uint32_t list_loads_of(gpud_dispatcher *d, uint32_t n, bool skip_stuck, bool due)
{
    for (uint32_t i = 0; i < d->n_slots; i++) {
        const struct gpi_slot *s = &d->slot[i];
        uint32_t room;
        if (!takes(s) || (skip_stuck && stuck(d, s)) || gpi_renew_due(d, s) != due)
            continue;
        room = room_at(d, s);
        if (room)
            d->loads[n++] = (struct gpi_load){ .slot = i, .sent = s->sent, .room = room };
    }
    return n;
}

/* Of workers with as many tasks each, one that is due to be replaced gets the next task last. */
static uint32_t list_loads(gpud_dispatcher *d, bool skip_stuck)
{
    uint32_t n = list_loads_of(d, 0, skip_stuck, false);

    return d->set.max_tasks_per_worker ? list_loads_of(d, n, skip_stuck, true) : n;
}

/* What the worker reads of a task before it claims it. */
static uint8_t order_entry(const gpud_dispatcher *d, const struct gpi_slot *s,
                           const struct gpi_task *t, uint8_t cell)
{
    const uint32_t alone = t->alone || d->wary ? GPI_ALONE : 0;
    const uint32_t last = gpi_renew_left(d, s) == 1 ? GPI_LAST : 0;

    return (uint8_t)(cell | alone | last);
}

static void put_in_cell(gpud_dispatcher *d, struct gpi_slot *s, struct gpi_task *t)
{
    uint8_t cell = (uint8_t)gpi_lowest_bit(~s->inflight);
    struct gpi_cell *c = &s->ch.page->cell[cell];
    uint64_t number = ++s->number;
    uint64_t look = gpi_task_first_look(d, t);

    if (look < s->check_at)
        s->check_at = look; /* at the earliest; the look itself finds the true time */
    if (s->told >> cell & 1) { /* of the one that was here before */
        s->told &= ~(1ull << cell);
        s->cancelled &= s->told;
        atomic_store(&s->ch.page->cancel, s->told);
    }
    c->task_id = t->id;
    c->tag = t->tag;
    c->limit = t->limit;
    atomic_store_explicit(&c->data_off, t->data_off, memory_order_relaxed);
    c->data_size = t->size;
    c->attempt = t->attempts + 1u;
    c->has_label = t->has_label;
    c->stalls = t->stalls;
    if (t->stalls)
        s->ch.page->extra[cell].stall_limit = d->stall_limit[gpi_task_index(d, t)];
    if (d->set.start_events) /* else it may read as a start of this task */
        atomic_store_explicit(&c->started_at, 0, memory_order_relaxed);
    c->expires_at = t->expires ? gpi_heap_key(&d->expiries, gpi_task_index(d, t)) : 0;
    atomic_store_explicit(&c->claim, gpi_claim_word(number, GPI_SENT), memory_order_release);
    s->order[number % GPI_CELLS] = order_entry(d, s, t, cell);
    atomic_store_explicit(&s->ch.page->order[number % GPI_CELLS], s->order[number % GPI_CELLS], memory_order_relaxed);
    if (s->sent == 0)
        s->oldest = number;
    s->inflight |= 1ull << cell;
    s->cell_task[cell] = gpi_task_index(d, t);
    s->cell_number[cell] = number;
    t->state = GPI_TASK_SENT;
    t->slot = (uint16_t)s->index;
    t->has_slot = 1;
    t->cell = cell;
    t->incarnation = s->incarnation;
    t->sent_at = d->now;
    gpi_shadow_task(d, t);
    if (s->sent++ == 0)
        s->last_heard = d->now;
    s->unrung = true;
}

/* Empties a cell that the worker has not claimed; false: the task is running or has ended. */
static bool take_cell(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, enum gpi_claim to)
{
    if (!gpi_cell_take(&s->ch.page->cell[cell], s->cell_number[cell], to))
        return false;
    s->inflight &= ~(1ull << cell);
    if (--s->sent == 0 && s->state == GPUD_SLOT_BUSY)
        gpi_slot_enter(d, s, GPUD_SLOT_READY);
    return true;
}

bool gpi_take_back(gpud_dispatcher *d, struct gpi_task *t)
{
    return take_cell(d, gpi_task_slot(d, t), t->cell, GPI_CANCELLED);
}

static bool recall(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell)
{
    if (!take_cell(d, s, cell, GPI_RECALLED))
        return false;
    gpi_task_requeue(d, &d->task[s->cell_task[cell]]);
    return true;
}

uint32_t gpi_recall_all(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint32_t n = 0;

    for (uint64_t left = s->inflight; left; left &= left - 1)
        n += recall(d, s, gpi_lowest_bit(left));
    return n;
}

/* Tasks were sent: when must we look, whatever the worker says? */
static void expect(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (s->sent >= 2)
        s->peek_at = d->now + PEEK_NS;
    gpi_slot_expect(d, s);
}

/* A bell that the system has no memory for is rung again soon. */
void gpi_slot_ring_for(gpud_dispatcher *d, struct gpi_slot *s, _Atomic uint32_t *sleeps,
                       uint32_t what)
{
    const struct gpi_frame f = {
        .magic = GPI_ORDER_MAGIC,
        .incarnation = s->incarnation,
        .what = what,
    };

    if (!gpi_page_must_ring(sleeps))
        return;
    if (gpi_fd_write(s->ch.orders, &f, sizeof f) == 0 || errno == EAGAIN)
        return; /* EAGAIN: the pipe is full of bells that wake it as well */
    atomic_store(sleeps, 1);
    s->peek_at = d->now + PEEK_NS;
    gpi_slot_timer(d, s);
}

void gpi_slot_ring(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_slot_ring_for(d, s, &s->ch.page->worker_sleeps, GPI_ORDER_TASKS);
}

/* Makes what was put into cells known to the worker, with a bell if it sleeps. */
static void announce(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->unrung = false;
    atomic_store_explicit(&s->ch.page->host_cpu, (uint32_t)sched_getcpu(), memory_order_relaxed);
    atomic_store_explicit(&s->ch.page->sent_number, s->number, memory_order_release);
    gpi_slot_ring(d, s);
    if (s->state == GPUD_SLOT_READY)
        gpi_slot_enter(d, s, GPUD_SLOT_BUSY);
    expect(d, s);
}

/* The cell of what was sent last, or NONE. */
static uint32_t last_cell(const struct gpi_slot *s)
{
    uint32_t last = GPI_NONE;

    for (uint64_t left = s->inflight; left; left &= left - 1) {
        uint32_t cell = gpi_lowest_bit(left);
        if (last == GPI_NONE || s->cell_number[cell] > s->cell_number[last])
            last = cell;
    }
    return last;
}

/* Whether an idle worker should have what was sent last to this one.  While a batch gathers, silence means nothing. */
static bool can_give(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    uint64_t quiet = d->now - s->last_heard;
    uint32_t last;

    if (!takes(s) || !gpi_place_recall(s->sent, quiet > d->set.batch_wait ? quiet - d->set.batch_wait : 0))
        return false;
    last = last_cell(s);
    return atomic_load(&s->ch.page->cell[last].claim) == gpi_claim_word(s->cell_number[last], GPI_SENT);
}

/* The one that holds most behind a long task, or NULL. */
static struct gpi_slot *recall_victim(gpud_dispatcher *d)
{
    struct gpi_slot *best = NULL;

    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if ((!best || s->sent > best->sent) && can_give(d, s))
            best = s;
    }
    return best;
}

/* The task sent last, if it can still be had. */
static bool recall_last(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint32_t last = last_cell(s);

    if (last == GPI_NONE || !recall(d, s, last))
        return false;
    d->count.recalled++;
    return true;
}

/* Idle workers, an empty queue: takes back what waits behind long tasks, one per idle worker. */
static void recall_for_idle(gpud_dispatcher *d)
{
    uint32_t idle = 0;

    for (uint32_t i = 0; i < d->n_slots; i++)
        idle += takes(&d->slot[i]) && d->slot[i].sent == 0;
    while (d->queue.count < idle) {
        struct gpi_slot *s = recall_victim(d);
        if (!s || !recall_last(d, s))
            return;
    }
}

void gpi_dispatch(gpud_dispatcher *d)
{
    struct gpi_placer placer;
    uint32_t n, i;
    bool working;

    if (d->queue.count == 0) {
        if (d->unended > 1 && d->n_slots > 1)
            recall_for_idle(d);
        if (d->queue.count == 0)
            return;
    }
    working = d->n_slots > 1 && others_work(d);
    if (working)
        free_the_stuck(d);
    n = list_loads(d, working);
    if (n == 0)
        return;
    gpi_placer_begin(&placer, d->loads, n);
    while (d->queue.count > 0 && (i = gpi_placer_next(&placer)) != GPI_PLACER_FULL) {
        struct gpi_task *t = &d->task[gpi_queue_pop(&d->queue)];
        if (d->queue.count > 2)
            gpi_prefetch(&d->task[gpi_queue_peek(&d->queue, 2)]);
        put_in_cell(d, &d->slot[i], t);
    }
    for (i = 0; i < d->n_slots; i++)
        if (d->slot[i].unrung)
            announce(d, &d->slot[i]);
}
