/* SPDX-License-Identifier: MIT */
/* starts.c - option start_events: an event for each start of a task. */
#include <string.h>

#include "base/clock.h"
#include "host/dispatcher.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"

void gpi_start_seen(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, uint32_t attempt,
                    uint64_t started_at)
{
    const struct gpi_task *t = &d->task[s->cell_task[cell]];
    struct gpi_note *n;

    if (s->cell_started[cell] == s->cell_number[cell])
        return;
    s->cell_started[cell] = s->cell_number[cell];
    n = gpi_note_of_task(d, s, t, GPUD_EVENT_STARTED);
    if (!n)
        return;
    n->attempt = attempt;
    n->started_at = started_at;
    gpi_note_push(d, n);
}

/* A worker claims, stores the start time, and then calls process.  If the claim came too late, the
 * task ends EXPIRED without a start. */
static bool has_started(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t cell,
                        uint64_t started)
{
    const struct gpi_task *t = &d->task[s->cell_task[cell]];
    const uint64_t claim = atomic_load(&s->ch.page->cell[cell].claim);

    if (claim != gpi_claim_word(s->cell_number[cell], GPI_CLAIMED) || started < t->sent_at)
        return false;
    if (started > d->now && started > gpi_now()) /* `now` may be older than the start */
        return false;
    return started < gpi_task_expires(d, t);
}

void gpi_see_start(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell)
{
    const uint64_t started = atomic_load(&s->ch.page->cell[cell].started_at);

    if (s->cell_started[cell] == s->cell_number[cell] || !has_started(d, s, cell, started))
        return;
    d->starts++;
    gpi_start_seen(d, s, cell, d->task[s->cell_task[cell]].attempts + 1u, started);
}

void gpi_see_starts(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t left = s->sent ? gpi_slot_running(d, s) : 0;

    for (uint64_t number = s->oldest; left && number <= s->number; number++) {
        uint32_t cell;
        if (!gpi_slot_sent(s, number, &cell) || !(left >> cell & 1))
            continue;
        left &= ~(1ull << cell);
        gpi_see_start(d, s, cell);
    }
}
