/* SPDX-License-Identifier: MIT */
/*
 * watch.c - checks a worker's tasks: which run, and until when they may; whether it begins the sent
 * ones; which have ended without a bell.  The cells decide, never a message.            [C6] [C7]
 */
#include <stdio.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/duration.h"
#include "host/act.h"
#include "host/dispatcher.h"
#include "host/slot.h"
#include "host/task.h"

#define LONGEST_LOOK_NS (100 * GPI_MS) /* between checks of a worker that has unclaimed tasks */
#define LEAST_PATIENCE_NS GPI_S /* with a worker that has not begun, if kill_limit is short */
#define LEAD_NS (20 * GPI_MS)
#define SHORT_NS (100 * GPI_US) /* a task younger than this may end without a bell at once */

/*
 * The cells of tasks that can have begun.  A worker claims in the order of sending, and no more
 * before these have ended: without batches one task at a time.  A claim word that is not as we
 * sent it counts as claimed: one that the worker has overwritten must not shield its task.  But
 * garbage in the words behind makes none of those tasks begin.                                [C2]
 */
static uint64_t begun(const gpud_dispatcher *d, const struct gpi_slot *s, bool also_ended)
{
    uint64_t cells = 0;
    uint32_t n = 0;
    bool waits = false; /* one that was sent before has not been claimed */

    for (uint64_t i = s->oldest; s->sent && i <= s->number && n < d->set.max_batch; i++) {
        const uint8_t order = s->order[i % GPI_CELLS];
        const uint32_t cell = order % GPI_CELLS;
        const uint64_t claim = atomic_load(&s->ch.page->cell[cell].claim);

        if (s->cell_number[cell] != i || !(s->inflight >> cell & 1))
            continue; /* recalled or cancelled */
        if (!also_ended && atomic_load(&s->ch.page->cell[cell].end) >> 8 == i)
            continue;
        waits |= claim == gpi_claim_word(i, GPI_SENT);
        if (waits && claim != gpi_claim_word(i, GPI_CLAIMED))
            continue;
        if (n && order & GPI_ALONE)
            break;
        cells |= 1ull << cell;
        n = order & GPI_ALONE ? GPI_CELLS : n + 1;
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

/* When the task in this cell started, as far as its worker can be believed.  If that is not written
 * yet, or a lie, it was not before the task was sent, nor before the end of the one before it. */
static uint64_t start_time(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t cell)
{
    uint64_t started = atomic_load(&s->ch.page->cell[cell].started_at),
             sent_at = d->task[s->cell_task[cell]].sent_at;

    if (started >= sent_at && started <= d->now)
        return started;
    return sent_at > s->last_heard ? sent_at : s->last_heard;
}

/* How long the worker was stopped since `from`, when its account stood at `before`. */
static uint64_t stopped_since(const gpud_dispatcher *d, const struct gpi_page *p, uint64_t from,
                              uint64_t before)
{
    uint64_t since = atomic_load(&p->stopped_since), stopped = atomic_load(&p->stopped_ns) - before;

    if (since && since < d->now)
        stopped += d->now - (since > from ? since : from); /* it is stopped now: the clock stands */
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

/* The same for the time without progress; once it has passed, later progress changes nothing. */
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
    if (progress < started) { /* of another call */
        progress = started;
        stopped = atomic_load(&p->cell[cell].stopped_before);
    } else if (progress > d->now || progress != atomic_load(&p->progress_at)) { /* just now */
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

/* When the soft limit of this cell's task passes: its limit, or its stall limit. */
static uint64_t soft_passes(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t cell)
{
    return gpi_time_min(limit_passes(d, s, cell), stall_passes(d, s, cell));
}

/* How long before the hard limit the host sends it to the keeper: time for a host that waits behind
 * programs that compute. */
uint64_t gpi_longest_lead(uint64_t grace)
{
    return gpi_time_min(LEAD_NS, grace / 2);
}

/* Of one that is claimed from now on: no earlier can its hard limit matter. */
static uint64_t first_look(const gpud_dispatcher *d, const struct gpi_task *t)
{
    return gpi_time_add(gpi_time_add(d->now, gpi_task_soft(d, t)),
                        d->set.grace - gpi_longest_lead(d->set.grace));
}

/* How long a worker that runs nothing may leave its sent tasks. */
static uint64_t patience(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    uint64_t limit = gpi_kill_limit(d, s);

    return gpi_time_add(limit > LEAST_PATIENCE_NS ? limit : LEAST_PATIENCE_NS, d->set.batch_wait);
}

static uint64_t patience_ends(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return gpi_time_add(s->called_at > s->last_heard ? s->called_at : s->last_heard,
                        patience(d, s));
}

/* The worker has a task to begin: the host checks that it does, even if no task has a limit. */
void gpi_slot_expect(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->call_at = gpi_time_min(s->call_at, patience_ends(d, s));
    gpi_slot_timer(d, s);
}

static uint32_t stops_and_continues(const struct gpi_slot *s)
{
    return atomic_load(&s->ch.page->stops) + atomic_load(&s->ch.page->continues);
}

/* It had time to begin since it was rung anew. */
static bool could_begin(const struct gpi_slot *s)
{
    return s->called_at > s->last_heard && s->called_turns == stops_and_continues(s) && !atomic_load(&s->ch.page->stopped_since);
}

/* No task runs, and at least one was sent: another process has taken the bell, or the words of the
 * page differ from the host's.  If the host rings once more, the worker begins, or it never will.
 * A stopped worker cannot begin.                                                      [C1] [C17] */
static void call_the_deaf(gpud_dispatcher *d, struct gpi_slot *s)
{
    char why[80], time[GPI_DURATION_SIZE];

    if (d->now < patience_ends(d, s)) {
        gpi_slot_expect(d, s);
        return;
    }
    if (could_begin(s)) {
        (void)snprintf(why, sizeof why, "did not start a task within %s (kill_limit)",
                       gpi_duration_text(time, patience(d, s)));
        d->stats.count.returned += gpi_recall_all(d, s);
        if (!s->inflight) /* else it has just begun */
            gpi_slot_retire(d, s, why);
        return;
    }
    s->called_at = d->now;
    s->called_turns = stops_and_continues(s);
    atomic_store(&s->ch.page->worker_sleeps, 1);
    gpi_slot_ring(d, s);
    gpi_slot_expect(d, s);
}

static bool is_served(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    const enum gpi_life life = gpi_slot_life(d, s);

    return s->sent && (life == GPI_LIFE_UP || life == GPI_LIFE_LEAVE);
}

void gpi_slot_call(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->call_at = GPI_NEVER;
    if (!is_served(d, s) || s->ended)
        return;
    gpi_look_for_disorder(d, s);
    gpi_collect(d, s);
    if (!is_served(d, s) || s->call_at != GPI_NEVER)
        return;
    if (!gpi_slot_running(d, s)) /* else the host checks again when that task has ended */
        call_the_deaf(d, s);
}

/* ---- the core looks ---- */

/* If a task runs, the host checks after its end whether the worker begins the next. */
static void tell_running(gpud_dispatcher *d, struct gpi_slot *s, uint64_t running)
{
    if (running)
        s->call_at = GPI_NEVER;
    for (; running; running &= running - 1) {
        const uint32_t cell = gpi_lowest_bit(running);
        gpi_hear(d, (struct gpi_sched_event){ .kind = GPI_EV_RUNNING,
                                              .slot = s->index,
                                              .task = s->cell_task[cell],
                                              .at = soft_passes(d, s, cell) });
    }
}

/* The clock of an unclaimed task starts with the claim. */
void gpi_slot_look(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t running, again = GPI_NEVER;

    gpi_look_for_disorder(d, s);
    gpi_collect(d, s);
    if (!is_served(d, s))
        return;
    running = gpi_slot_running(d, s);
    for (uint64_t left = s->inflight & ~running; left; left &= left - 1)
        again = gpi_time_min(again,
                             first_look(d, &d->task[s->cell_task[gpi_lowest_bit(left)]]));
    tell_running(d, s, running);
    gpi_hear(d, (struct gpi_sched_event){
                    .kind = GPI_EV_LOOKED, .slot = s->index, .at = again });
}

/* Tasks that the worker has not claimed go back, so that no other task can start and be hit. */
void gpi_slot_hold(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint32_t back;

    gpi_collect(d, s);
    back = gpi_recall_all(d, s);
    if (gpi_slot_life(d, s) == GPI_LIFE_UP && !s->ended)
        d->stats.count.recalled += back;
    else
        d->stats.count.returned += back;
    tell_running(d, s, gpi_slot_running(d, s));
    gpi_hear_slot(d, s, GPI_EV_HELD, 0);
}

/* ---- peeks ---- */

/* A batch was sent and the worker has been quiet for a while: ends may wait behind a long task.
 * Checks again while the running task may still end without a bell (see the flush rule of the
 * worker), and once when it is time to take back the tasks behind a long one. */
void gpi_slot_peek(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t quiet = d->now - s->last_heard;
    uint64_t again = d->now + gpi_time_min(quiet > GPI_MS ? quiet : GPI_MS, LONGEST_LOOK_NS);
    const uint64_t stuck = gpi_sched_stuck_at(d->core, s->index);
    uint32_t cell;

    s->peek_at = GPI_NEVER;
    gpi_look_for_disorder(d, s);
    gpi_collect(d, s); /* arms it again if something had ended */
    gpi_read_more_log(d, s);
    if (s->sent) { /* if the last bell could not be rung */
        gpi_slot_ring(d, s);
        gpi_result_room(d, s);
    }
    if (s->peek_at != GPI_NEVER || s->sent < 2)
        return;
    cell = gpi_slot_first(d, s);
    if (cell == GPI_NONE || d->now - atomic_load(&s->ch.page->cell[cell].started_at) < SHORT_NS)
        s->peek_at = again;
    else if (stuck > d->now)
        s->peek_at = stuck;
}
