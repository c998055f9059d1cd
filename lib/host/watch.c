/* SPDX-License-Identifier: MIT */
/*
 * watch.c - checks of a worker's tasks: the core needs to know which run; the worker should have
 * begun one; ends may be there without a doorbell.                                        [C6] [C7]
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
#define SHORT_NS (100 * GPI_US) /* a task younger than this may end without a doorbell at once */

/* For a task that the worker claims from now on: its hard limit cannot matter earlier. */
static uint64_t first_look(const gpud_dispatcher *d, const struct gpi_task *t)
{
    const uint64_t grace = gpi_task_class(d, t)->set.grace;

    return gpi_time_add(gpi_time_add(d->now, gpi_task_soft(d, t)),
                        grace - gpi_longest_lead(grace));
}

/* No task runs, and at least one was sent: another process has read the doorbell, or the words of
 * the page differ from the host's.  The host rings once more: the worker begins now, or never.  No
 * stopped worker is called: its tasks have returned to the queue.                     [C1] [C17] */
static void call_the_deaf(gpud_dispatcher *d, struct gpi_slot *s)
{
    char why[80], time[GPI_DURATION_SIZE];

    if (d->now < gpi_patience_ends(d, s)) {
        gpi_slot_expect(d, s);
        return;
    }
    if (s->called_at > s->last_heard) { /* it had time to begin since the host rang again */
        (void)snprintf(why, sizeof why, "did not start a task within %s (kill_limit)",
                       gpi_duration_text(time, gpi_patience(d, s)));
        d->stats.count.returned += gpi_recall_all(d, s);
        if (!s->inflight) /* else it has just begun */
            gpi_slot_retire(d, s, why);
        return;
    }
    s->called_at = d->now;
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
                                              .at = gpi_soft_passes(d, s, cell) });
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

/* Returns the unclaimed tasks to the queue, so that no other task can start and be hit. */
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

/* A batch was sent and the worker has sent nothing for a while: ends may wait behind a long task.
 * Checks again while the running task may still end without a doorbell (see the flush rule of the
 * worker), and once when the tasks behind a long one must be recalled. */
void gpi_slot_peek(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t quiet = d->now - s->last_heard;
    uint64_t again = d->now + gpi_time_min(quiet > GPI_MS ? quiet : GPI_MS, LONGEST_LOOK_NS);
    const uint64_t stuck = gpi_sched_stuck_at(d->core, s->index);
    uint32_t cell;

    s->peek_at = GPI_NEVER;
    gpi_look_for_disorder(d, s);
    gpi_collect(d, s); /* sets the time again if a task had ended */
    gpi_read_more_log(d, s);
    if (s->sent) { /* if the last doorbell could not be sent */
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
