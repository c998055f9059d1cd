/* SPDX-License-Identifier: MIT */
/*
 * room.c - option result_wait: a worker sleeps within a task until its result arena has room.  The
 * host rings the worker when it frees granules and when the wait must end, and logs long waits.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "host/dispatcher.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"
#include "wire/frame.h"

/* Between two log lines of a slot.  Each log line reads all task records, and a worker that floods
 * the host with NEWS_ROOM must not keep it busy.  An honest worker sends it once a second at
 * most. */
#define BETWEEN_NS (100 * GPI_MS)

void gpi_result_room(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (gpi_slot_class(d, s)->set.result_wait && gpi_slot_has_worker(d, s))
        gpi_slot_ring_for(d, s, &s->ch.page->worker_wants_room, GPI_ORDER_ROOM);
}

void gpi_result_hurry(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_slots; i++) {
        atomic_store(&d->slot[i].ch.page->closing, 1);
        gpi_result_room(d, &d->slot[i]);
    }
}

/* ---- holders of the room ---- */

/* Bytes of one slot's result arena, by the state of their results. */
struct holders {
    uint64_t undelivered, awaited, lent, kept;
};

static struct holders find_holders(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    struct holders h = { .kept = s->kept };

    for (uint32_t i = 0; i < d->never_used; i++) {
        const struct gpi_task *t = &d->task[i];
        uint64_t size = (t->size + GPI_GRANULE - 1) / GPI_GRANULE * GPI_GRANULE;
        if (t->slot != s->index || t->result_place != GPI_RESULT_ARENA)
            continue;
        if (t->state == GPI_TASK_LENT)
            h.lent += size;
        else if (t->state == GPI_TASK_ENDED)
            *(t->awaited ? &h.awaited : &h.undelivered) += size;
    }
    return h;
}

static void add(char *to, size_t size, uint64_t bytes, const char *where)
{
    size_t n = strlen(to);

    if (bytes)
        (void)snprintf(to + n, size - n, "%s%llu in %s", n ? ", " : "", (unsigned long long)bytes,
                       where);
}

void gpi_result_wanted(gpud_dispatcher *d, struct gpi_slot *s)
{
    const uint64_t wanted = atomic_load(&s->ch.page->room_wanted);
    struct holders h;
    char list[192] = "";

    if (s->room_told && d->now < s->room_told + BETWEEN_NS)
        return;
    s->room_told = d->now;
    h = find_holders(d, s);
    add(list, sizeof list, h.undelivered, "undelivered outcomes");
    add(list, sizeof list, h.awaited, "awaited outcomes not fetched");
    add(list, sizeof list, h.lent, "events of the last poll");
    add(list, sizeof list, h.kept, "kept events");
    gpi_log(d, GPUD_LEVEL_WARNING, s->index,
            "slot %u: a result of %llu bytes has waited 1 s for room; used of %llu bytes: %s "
            "(result_wait)",
            s->index, (unsigned long long)wanted, (unsigned long long)d->set.result_size,
            *list ? list : "none, memory is short");
}
