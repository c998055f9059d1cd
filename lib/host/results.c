/* SPDX-License-Identifier: MIT */
/* results.c - result arenas: the granules that results hold, from their end to their delivery. */
#include <string.h>

#include "host/act.h"
#include "host/dispatcher.h"
#include "host/slot.h"
#include "host/task.h"
#include "os/memory.h"

static bool granule_held(const struct gpi_slot *s, uint64_t i)
{
    return s->hold[i / 64] >> i % 64 & 1;
}

static uint64_t granules(uint64_t size)
{
    return (size + GPI_GRANULE - 1) / GPI_GRANULE;
}

static void account(gpud_dispatcher *d, struct gpi_slot *s, uint64_t at, uint64_t n, bool hold)
{
    for (uint64_t i = at; i < at + n; i++)
        s->hold[i / 64] ^= 1ull << i % 64;
    s->held += hold ? n * GPI_GRANULE : -(n * GPI_GRANULE);
    d->stats.count.result_used += hold ? n * GPI_GRANULE : -(n * GPI_GRANULE);
}

/* Returns granules of a slot's result arena to its worker. */
void gpi_result_release(gpud_dispatcher *d, uint32_t slot, uint64_t off, uint64_t size)
{
    struct gpi_slot *s = &d->slot[slot];
    uint64_t at = off / GPI_GRANULE, n = granules(size);

    account(d, s, at, n, false);
    for (uint64_t i = at; i < at + n; i++)
        atomic_fetch_add_explicit(&s->ch.page->granule[i].freed, 1, memory_order_release);
    gpi_results_room(d, s);
    gpi_result_room(d, s);
}

/* Returns the number of the last granule that the host holds, plus one. */
static uint64_t held_to(const struct gpi_slot *s, uint64_t most)
{
    if (s->held == 0)
        return 0;
    while (most && !granule_held(s, most - 1))
        most -= most % 64 == 0 && !s->hold[most / 64 - 1] ? 64 : 1;
    return most;
}

/* The slot has no worker.  Granules that the worker had taken and never reported are free; granules
 * that the host holds stay taken. */
uint64_t gpi_results_settle(gpud_dispatcher *d, struct gpi_slot *s)
{
    const uint64_t most = d->set.result_size / GPI_GRANULE;
    struct gpi_page *p = s->ch.page;
    uint64_t n = atomic_load(&p->granules_used), held = held_to(s, most);

    n = n > most ? most : n < held ? held : n;
    for (uint64_t i = 0; i < n; i++) {
        struct gpi_granule *g = &p->granule[i];
        uint32_t freed = atomic_load_explicit(&g->freed, memory_order_relaxed),
                 used = freed + granule_held(s, i);
        if (atomic_load_explicit(&g->used, memory_order_relaxed) != used)
            atomic_store_explicit(&g->used, used, memory_order_relaxed);
    }
    return n;
}

/* No honest worker writes behind the granules that it reports as taken: the host frees that memory,
 * with all that may be there.  The host does not trust the worker's count of committed memory
 * either: the next worker would take that much without a check.  The next worker may already have
 * been started, but takes granules only in a task. */
void gpi_results_trim(gpud_dispatcher *d, struct gpi_slot *s, uint64_t n)
{
    const uint64_t most = d->set.result_size / GPI_GRANULE;
    struct gpi_page *p = s->ch.page;
    uint64_t taken;

    if (n < most)
        gpi_memory_punch(s->ch.page_fd, sizeof *p + n * sizeof p->granule[0],
                         (most - n) * sizeof p->granule[0]);
    taken = granules(gpi_memory_taken(s->ch.result_fd));
    atomic_store(&p->granules_used, (uint32_t)(n < taken ? n : taken));
}

/* Reports to the core how many more results surely fit the arena.  If kept events hold all the held
 * results, they may stay indefinitely: then the core may send one task. */
void gpi_results_room(gpud_dispatcher *d, struct gpi_slot *s)
{
    const uint64_t left = d->set.result_size - s->held;
    uint64_t room = s->largest_result ? left / s->largest_result : GPI_CELLS;

    if (room == 0 && s->held == s->kept)
        room = 1;
    room = room < GPI_CELLS ? room : GPI_CELLS;
    if (room == s->room)
        return;
    s->room = (uint32_t)room;
    gpi_hear(d, (struct gpi_sched_event){ .kind = GPI_EV_ROOM, .slot = s->index, .cell = s->room });
}

/* Holds a result in the arena until its release. */
static void hold_result(gpud_dispatcher *d, struct gpi_slot *s, uint64_t off, uint64_t size)
{
    const uint64_t n = granules(size);

    account(d, s, off / GPI_GRANULE, n, true);
    if (n * GPI_GRANULE > s->largest_result)
        s->largest_result = n * GPI_GRANULE;
    else
        s->largest_result -= (s->largest_result - n * GPI_GRANULE) / 16;
    gpi_results_room(d, s);
}

void gpi_result_keep(gpud_dispatcher *d, struct gpi_slot *s, struct gpi_task *t, uint32_t cell,
                     const struct gpi_ending *e)
{
    const unsigned char *from = s->ch.page->extra[cell].result;
    int fresh;

    if (e->result_size == 0)
        return;
    if (e->result_place == GPI_PLACE_ARENA) {
        hold_result(d, s, e->result_off, e->result_size);
        t->result_place = GPI_RESULT_ARENA;
        t->result_off = e->result_off;
    } else if (e->result_size <= GPI_OWN_SIZE && !t->has_block) {
        t->result_place = GPI_RESULT_OWN; /* the worker has read the task's data */
        t->result_off = t->data_off;
        memcpy(d->arena.input + t->result_off, from, e->result_size);
    } else {
        t->result_place = GPI_RESULT_POOL;
        /* The pool is sized so that this cannot fail. */
        t->result_off = gpi_chunks_alloc(&d->arena.pool_chunks, e->result_size, &fresh);
        memcpy(d->arena.pool + t->result_off, from, e->result_size);
    }
    t->size = e->result_size;
}

/* Returns true if the host already holds a part of this result: no honest worker does that. */
bool gpi_result_overlaps(const struct gpi_slot *s, uint64_t off, uint64_t size)
{
    const uint64_t at = off / GPI_GRANULE, n = granules(size);

    for (uint64_t i = at; i < at + n; i++)
        if (granule_held(s, i))
            return true;
    return false;
}

/* Another attempt follows: its worker may use the granules of this result again. */
void gpi_result_drop(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_ending *e)
{
    if (e->result_size == 0 || e->result_place != GPI_PLACE_ARENA)
        return;
    hold_result(d, s, e->result_off, e->result_size);
    gpi_result_release(d, s->index, e->result_off, e->result_size);
}
