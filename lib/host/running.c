/* SPDX-License-Identifier: MIT */
/*
 * running.c - which tasks run at a worker, since when, and until when they may.  The cells decide,
 * never a message.                                                                        [C6] [C7]
 */
#include "base/bits.h"
#include "base/clock.h"
#include "host/dispatcher.h"
#include "host/slot.h"
#include "host/task.h"

#define LEAST_PATIENCE_NS GPI_S /* the least time in which a worker must begin a sent task */
#define LEAD_NS (20 * GPI_MS)

/*
 * Returns the cells of tasks that can have begun.  A worker claims in the order of sending, and no
 * more before these have ended: without batches one task at a time.  A claim word that differs from
 * the host's counts as claimed: a worker that has overwritten it must not shield its task.  But
 * garbage in later words does not make those tasks begin.                                      [C2]
 */
static uint64_t begun(const gpud_dispatcher *d, const struct gpi_slot *s, bool also_ended)
{
    const uint32_t most = gpi_slot_class(d, s)->set.max_batch;
    uint64_t cells = 0;
    uint32_t n = 0;
    bool waits = false; /* the worker has not claimed an earlier task */

    for (uint64_t i = s->oldest; s->sent && i <= s->number && n < most; i++) {
        const bool alone = s->order[i % GPI_CELLS] & GPI_ALONE;
        uint64_t claim;
        uint32_t cell;

        if (!gpi_slot_sent(s, i, &cell))
            continue;
        claim = atomic_load(&s->ch.page->cell[cell].claim);
        if (!also_ended && atomic_load(&s->ch.page->cell[cell].end) >> 8 == i)
            continue;
        waits |= claim == gpi_claim_word(i, GPI_SENT);
        if (waits && claim != gpi_claim_word(i, GPI_CLAIMED))
            continue;
        if (n && alone)
            break;
        cells |= 1ull << cell;
        n = alone ? GPI_CELLS : n + 1;
    }
    return cells;
}

uint64_t gpi_slot_running(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return begun(d, s, false);
}

uint64_t gpi_slot_begun(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return begun(d, s, true);
}

uint32_t gpi_slot_first(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    uint32_t first = GPI_NONE;

    for (uint64_t left = gpi_slot_running(d, s); left; left &= left - 1) {
        uint32_t cell = gpi_lowest_bit(left);
        if (first == GPI_NONE || s->cell_number[cell] < s->cell_number[first])
            first = cell;
    }
    return first;
}

/* Returns when the task in this cell started.  If the worker has not written that yet, or the value
 * is invalid, returns the later of its sending and the end of the task before it. */
static uint64_t start_time(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t cell)
{
    uint64_t started = atomic_load(&s->ch.page->cell[cell].started_at),
             sent_at = d->task[s->cell_task[cell]].sent_at;

    if (started >= sent_at && started <= d->now)
        return started;
    return sent_at > s->last_heard ? sent_at : s->last_heard;
}

/* Returns how long the worker was stopped since `from`, when its total was `before`. */
static uint64_t stopped_since(const gpud_dispatcher *d, const struct gpi_page *p, uint64_t from,
                              uint64_t before)
{
    uint64_t since = atomic_load(&p->stopped_since), stopped = atomic_load(&p->stopped_ns) - before;

    if (since && since < d->now)
        stopped += d->now - (since > from ? since : from); /* stopped now: the time so far counts */
    return stopped > d->now - from ? d->now - from : stopped;
}

static uint64_t limit_passes(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t cell)
{
    const struct gpi_page *p = s->ch.page;
    uint64_t started = start_time(d, s, cell);
    uint64_t at = gpi_time_add(started, d->task[s->cell_task[cell]].limit);

    return gpi_time_add(at,
                        stopped_since(d, p, started, atomic_load(&p->cell[cell].stopped_before)));
}

/* The same for the time without progress.  Once the stall limit has expired, later progress has no
 * effect. */
static uint64_t stall_passes(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t cell)
{
    const struct gpi_task *t = &d->task[s->cell_task[cell]];
    const struct gpi_page *p = s->ch.page;
    uint64_t started = start_time(d, s, cell), stall, progress, stopped, passed;

    if (!t->stalls)
        return GPI_NEVER;
    stall = d->stall_limit[gpi_task_index(d, t)];
    passed = atomic_load(&p->stalled_at);
    if (passed >= gpi_time_add(started, stall) && passed <= d->now)
        return passed;
    progress = atomic_load(&p->progress_at);
    stopped = atomic_load(&p->progress_stopped);
    if (progress < started) { /* an earlier call wrote it */
        progress = started;
        stopped = atomic_load(&p->cell[cell].stopped_before);
    } else if (progress > d->now || progress != atomic_load(&p->progress_at)) { /* being written */
        progress = d->now;
        stopped = atomic_load(&p->stopped_ns);
    }
    return gpi_time_add(gpi_time_add(progress, stall), stopped_since(d, p, progress, stopped));
}

bool gpi_slot_stalled(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t cell)
{
    uint64_t at = stall_passes(d, s, cell);

    return at <= d->now && at < limit_passes(d, s, cell);
}

uint64_t gpi_soft_passes(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t cell)
{
    return gpi_time_min(limit_passes(d, s, cell), stall_passes(d, s, cell));
}

/* How long before the hard limit the host sends the limit to the keeper: enough for a host that
 * waits for a CPU behind programs that compute. */
uint64_t gpi_longest_lead(uint64_t grace)
{
    return gpi_time_min(LEAD_NS, grace / 2);
}

uint64_t gpi_patience(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    uint64_t limit = gpi_kill_limit(d, s);

    return gpi_time_add(limit > LEAST_PATIENCE_NS ? limit : LEAST_PATIENCE_NS,
                        gpi_slot_class(d, s)->set.batch_wait);
}

uint64_t gpi_patience_ends(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return gpi_time_add(s->called_at > s->last_heard ? s->called_at : s->last_heard,
                        gpi_patience(d, s));
}

/* The worker has a task to begin: the host checks that it does, even if no task has a limit. */
void gpi_slot_expect(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->call_at = gpi_time_min(s->call_at, gpi_patience_ends(d, s));
    gpi_slot_timer(d, s);
}
