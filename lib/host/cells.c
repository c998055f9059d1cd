/* SPDX-License-Identifier: MIT */
/*
 * cells.c - moves tasks from the core's queue into cells, rings workers that sleep, recalls tasks.
 *
 * The claim word alone decides whether a sent task still belongs to the worker.                [C2]
 */
#include <errno.h>
#include <sched.h>

#include "base/bits.h"
#include "base/clock.h"
#include "host/act.h"
#include "host/core.h"
#include "host/dispatcher.h"
#include "host/slot.h"
#include "host/task.h"
#include "os/fds.h"
#include "wire/frame.h"

#define PEEK_NS GPI_MS
#define AT_ONCE 64u /* orders that the core returns in one call */

/* The byte that the worker reads of a task before it claims that task. */
static inline uint8_t order_entry(const struct gpi_sched_order *o)
{
    if (o->alone | o->last)
        return (uint8_t)(o->cell | (o->alone ? GPI_ALONE : 0) | (o->last ? GPI_LAST : 0));
    return (uint8_t)o->cell;
}

/* Clears the cancel bit that a former task left in a cell. */
static void clear_cancel(struct gpi_slot *s, uint32_t cell)
{
    if (!(s->told >> cell & 1))
        return;
    s->told &= ~(1ull << cell);
    s->cancelled &= s->told;
    atomic_store(&s->ch.page->cancel, s->told);
}

/* Fills in the values that plain tasks do not have. */
GPI_RARE static void fill_rest(const gpud_dispatcher *d, struct gpi_slot *s,
                               const struct gpi_task *t, uint32_t cell)
{
    /* Else the old value may read as a start of this task. */
    if (gpi_slot_class(d, s)->set.start_events)
        atomic_store_explicit(&s->ch.page->cell[cell].started_at, 0, memory_order_relaxed);
    if (t->stalls)
        s->ch.page->extra[cell].stall_limit = d->stall_limit[gpi_task_index(d, t)];
    if (t->expires)
        s->ch.page->cell[cell].expires_at = gpi_task_expires(d, t);
}

static void fill_cell(gpud_dispatcher *d, struct gpi_slot *s, struct gpi_task *t, uint32_t cell)
{
    struct gpi_cell *c = &s->ch.page->cell[cell];

    c->task_id = t->id;
    c->tag = t->tag;
    c->limit = t->limit;
    atomic_store_explicit(&c->data_off, t->data_off, memory_order_relaxed);
    c->data_size = t->size;
    c->attempt = t->attempts + 1u;
    c->has_label = t->has_label;
    c->stalls = t->stalls;
    c->expires_at = 0;
    if (!t->plain)
        fill_rest(d, s, t, cell);
}

static void put_in_cell(gpud_dispatcher *d, const struct gpi_sched_order *o)
{
    struct gpi_slot *s = &d->slot[o->slot];
    struct gpi_task *t = &d->task[o->task];
    struct gpi_page *p = s->ch.page;
    const uint32_t cell = o->cell;
    const uint64_t number = ++s->number;

    if (s->told)
        clear_cancel(s, cell);
    fill_cell(d, s, t, cell);
    atomic_store_explicit(&p->cell[cell].claim, gpi_claim_word(number, GPI_SENT),
                          memory_order_release);
    s->order[number % GPI_CELLS] = order_entry(o);
    atomic_store_explicit(&p->order[number % GPI_CELLS], s->order[number % GPI_CELLS],
                          memory_order_relaxed);
    s->inflight |= 1ull << cell;
    s->cell_task[cell] = o->task;
    s->cell_number[cell] = number;
    t->state = GPI_TASK_SENT;
    t->slot = (uint16_t)s->index;
    t->has_slot = 1;
    if (d->ran_on)
        gpi_set_take(&d->ran_on[o->task], s->devices, s->n_devices);
    t->cell = (uint8_t)cell;
    t->incarnation = s->incarnation;
    t->sent_at = d->now;
    if (s->sent++ == 0) {
        s->oldest = number;
        s->last_heard = d->now;
    }
    if (s->unrung)
        return;
    s->unrung = true;
    d->unrung[d->n_unrung++] = (uint16_t)s->index;
}

bool gpi_cell_recall(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell)
{
    struct gpi_task *t = &d->task[s->cell_task[cell]];

    if (!gpi_cell_take(&s->ch.page->cell[cell], s->cell_number[cell], GPI_RECALLED))
        return false; /* the task is running or has ended */
    gpi_cell_empty(s, cell);
    gpi_slot_loaded(d, s);
    t->state = GPI_TASK_QUEUED;
    gpi_hear_task(d, t, GPI_EV_CAME_BACK, GPI_BACK_PLAIN);
    return true;
}

uint32_t gpi_recall_all(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint32_t n = 0;

    for (uint64_t left = s->inflight; left; left &= left - 1)
        n += gpi_cell_recall(d, s, gpi_lowest_bit(left));
    return n;
}

/* After a send: sets when the host must check the cells without a doorbell. */
static void expect(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (s->sent >= 2)
        s->peek_at = d->now + PEEK_NS;
    gpi_slot_expect(d, s);
}

/* If the system has no memory for the frame, the host rings again soon. */
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
        return; /* EAGAIN: the pipe is full of frames that wake the worker as well */
    atomic_store(sleeps, 1);
    s->peek_at = d->now + PEEK_NS;
    gpi_slot_timer(d, s);
}

void gpi_slot_ring(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_slot_ring_for(d, s, &s->ch.page->worker_sleeps, GPI_ORDER_TASKS);
}

/* Publishes the newly filled cells to the worker, and rings the worker if it sleeps. */
static void announce(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->unrung = false;
    atomic_store_explicit(&s->ch.page->host_cpu, (uint32_t)sched_getcpu(), memory_order_relaxed);
    atomic_store_explicit(&s->ch.page->sent_number, s->number, memory_order_release);
    gpi_slot_ring(d, s);
    gpi_slot_loaded(d, s);
    expect(d, s);
}

void gpi_cells_send(gpud_dispatcher *d)
{
    struct gpi_sched_order o[AT_ONCE];
    uint32_t n;

    do {
        n = gpi_core_send(d, d->now, o, AT_ONCE);
        for (uint32_t i = 0; i < n; i++) {
            if (i + 2 < n)
                gpi_prefetch(&d->task[o[i + 2].task]); /* the records do not fit the caches */
            put_in_cell(d, &o[i]);
        }
    } while (n == AT_ONCE);
    while (d->n_unrung)
        announce(d, &d->slot[d->unrung[--d->n_unrung]]);
}
