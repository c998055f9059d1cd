/* SPDX-License-Identifier: MIT */
/*
 * dispatch.c - from the queue into cells, a bell for workers that sleep, and back by recall.
 *
 * Whether a task that was sent is still the worker's is decided by the claim word alone. [C2]
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "host/dispatcher.h"

#define PEEK_NS GPI_MS

bool gpi_slot_takes(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    (void)d;
    return (s->state == GPUD_SLOT_READY || s->state == GPUD_SLOT_BUSY) && s->kill == GPI_KILL_NO && !s->keeper_lost;
}

/* How many tasks this worker may have now.  With large results, no more than its share of the
 * budget surely holds. */
static uint32_t depth(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    uint32_t n = d->set.sent_ahead ? d->set.sent_ahead : gpi_place_depth(s->mean_run);
    uint64_t left = d->set.result_size - s->held;

    if (s->largest_result && left / s->largest_result < n)
        n = (uint32_t)(left / s->largest_result);
    if (n == 0 && s->held == 0)
        n = 1; /* nothing of it is in use: there will never be more room */
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
    return s->sent > 0 && d->now >= gpi_place_stuck_at(s->last_heard, d->mean_run);
}

/* Whether some worker that takes tasks is not stuck in a long one. */
static bool others_work(const gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (gpi_slot_takes(d, &d->slot[i]) && !stuck(d, &d->slot[i]))
            return true;
    return false;
}

/* Start order is FIFO: what waits behind a long task goes back to its place, unless every worker
 * is in one.                                                                      [C5] */
static void free_the_stuck(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (s->sent >= 2 && gpi_slot_takes(d, s) && stuck(d, s))
            d->count.recalled += gpi_recall_all(d, s);
    }
}

static uint32_t list_loads(gpud_dispatcher *d, bool skip_stuck)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->n_slots; i++) {
        const struct gpi_slot *s = &d->slot[i];
        uint32_t most, room, numbers;
        if (!gpi_slot_takes(d, s) || (skip_stuck && stuck(d, s)))
            continue;
        most = depth(d, s);
        room = s->sent < most ? most - s->sent : 0;
        numbers = numbers_left(s);
        if (room && numbers)
            d->loads[n++] = (struct gpi_load){ .slot = i, .sent = s->sent, .room = room < numbers ? room : numbers };
    }
    return n;
}

static void put_in_cell(gpud_dispatcher *d, struct gpi_slot *s, struct gpi_task *t)
{
    uint8_t cell = (uint8_t)gpi_lowest_bit(~s->inflight);
    struct gpi_cell *c = &s->ch.page->cell[cell];
    uint64_t number = ++s->number;
    uint64_t limit_passes = gpi_time_add(gpi_time_add(d->now, t->limit), d->set.grace);

    if (limit_passes < s->check_at)
        s->check_at = limit_passes; /* at the earliest; the look itself finds the true time */
    c->task_id = t->id;
    c->tag = t->tag;
    c->limit = t->limit;
    c->data_off = t->data_off;
    c->data_size = t->size;
    c->attempt = t->attempts + 1u;
    c->has_label = t->has_label;
    atomic_store_explicit(&c->claim, gpi_claim_word(number, GPI_SENT), memory_order_release);
    atomic_store_explicit(&s->ch.page->order[number % GPI_CELLS], cell, memory_order_relaxed);
    s->order[number % GPI_CELLS] = cell;
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
    if (s->sent++ == 0)
        s->last_heard = d->now;
    s->unrung = true;
}

/* The task comes back if the worker has not claimed it: false, it is running or has ended. */
static bool recall(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell)
{
    if (!gpi_cell_take(&s->ch.page->cell[cell], s->cell_number[cell], GPI_RECALLED))
        return false;
    s->inflight &= ~(1ull << cell);
    if (--s->sent == 0 && s->state == GPUD_SLOT_BUSY)
        gpi_slot_enter(d, s, GPUD_SLOT_READY);
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
    gpi_slot_timer(d, s);
}

/* Makes what was put into cells known to the worker, with a bell if it sleeps. */
static void announce(gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_frame f = { .magic = GPI_ORDER_MAGIC, .incarnation = s->incarnation, .what = GPI_ORDER_TASKS };

    s->unrung = false;
    atomic_store_explicit(&s->ch.page->sent_number, s->number, memory_order_release);
    if (gpi_page_must_ring(&s->ch.page->worker_sleeps))
        (void)!write(s->ch.orders, &f, sizeof f); /* EAGAIN: the pipe is full of bells that wake it as well */
    if (s->state == GPUD_SLOT_READY)
        gpi_slot_enter(d, s, GPUD_SLOT_BUSY);
    expect(d, s);
}

/* The one that holds most behind a long task, or NULL. */
static struct gpi_slot *recall_victim(gpud_dispatcher *d)
{
    struct gpi_slot *best = NULL;

    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (gpi_slot_takes(d, s) && gpi_place_recall(s->sent, d->now - s->last_heard) && (!best || s->sent > best->sent))
            best = s;
    }
    return best;
}

/* The task sent last, if it can still be had. */
static bool recall_last(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint32_t last = GPI_NONE;

    for (uint64_t left = s->inflight; left; left &= left - 1) {
        uint32_t cell = gpi_lowest_bit(left);
        if (last == GPI_NONE || s->cell_number[cell] > s->cell_number[last])
            last = cell;
    }
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
        idle += gpi_slot_takes(d, &d->slot[i]) && d->slot[i].sent == 0;
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
