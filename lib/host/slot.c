/* SPDX-License-Identifier: MIT */
/*
 * slot.c - the life of a slot: start, ready, kill, wind down; its end is death.c's.
 *
 *   STARTING  a keeper is asked for, a turn is awaited (setup_concurrency), a worker is started,
 *             setup runs
 *   READY     a worker without tasks          BUSY  a worker with tasks
 *   DRAINING  END sent: cleanup runs          STOPPED  none, and none wanted
 *   BACKOFF   waiting before the next start   FAILED  given up     QUARANTINED  unkillable
 *
 * A worker's death is known from the keeper's report alone, after the reap and the sweep of all
 * it had started (C8).  What it had ended before is honoured first; then the claimed task is
 * charged, and what it had not claimed goes back (C2).
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/refused.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/patience.h"
#include "host/shadow.h"
#include "host/slot.h"
#include "os/fds.h"
#include "wire/control.h"
#include "wire/frame.h"

#define MAKES_AT_A_TIME 32 /* requests to the spawner: its socket holds some hundred, and each carries fds */

/* ---- state and timers ---- */

void gpi_slot_enter(gpud_dispatcher *d, struct gpi_slot *s, enum gpud_slot_state state)
{
    bool to_and_fro = (s->state == GPUD_SLOT_READY && state == GPUD_SLOT_BUSY) || (s->state == GPUD_SLOT_BUSY && state == GPUD_SLOT_READY);

    gpi_renew_entered(d, s, state);
    if (s->state == state)
        return;
    if (s->state == GPUD_SLOT_READY)
        s->wait_time += d->now - s->idle_since;
    if (state == GPUD_SLOT_READY)
        s->idle_since = d->now;
    s->state = state;
    s->since = d->now;
    if (s->watched && state == GPUD_SLOT_BUSY && !d->dev.roused)
        gpi_devices_rouse(d);
    if (to_and_fro)
        return;
    gpi_ready_changed(d);
    if (!d->set.slot_events)
        return;
    struct gpi_note *n = gpi_note_new(d, GPUD_EVENT_SLOT, true);
    if (!n)
        return;
    n->slot = s->index;
    n->state = state;
    n->incarnation = s->incarnation;
    gpi_note_push(d, n);
}

static uint64_t next_time(const struct gpi_slot *s)
{
    return gpi_time_min(s->state_deadline, gpi_time_min(s->check_at, s->peek_at));
}

/* Puts the earliest of the slot's times into the heap, unless what stands there is early enough. */
void gpi_slot_timer(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t at = next_time(s);

    if (at >= s->timer)
        return;
    s->timer = at;
    gpi_heap_set(&d->timers, s->index, at);
}

bool gpi_slot_retime(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (!s->inflight && !s->ended)
        s->check_at = GPI_NEVER; /* all that it was sent has ended */
    if (next_time(s) <= s->timer)
        return false;
    gpi_heap_remove(&d->timers, s->index);
    s->timer = GPI_NEVER;
    gpi_slot_timer(d, s);
    return true;
}

void gpi_slot_clear_times(struct gpi_slot *s)
{
    s->state_deadline = s->check_at = s->peek_at = GPI_NEVER;
}

bool gpi_slot_settled(const struct gpi_slot *s)
{
    return s->state == GPUD_SLOT_STOPPED || s->state == GPUD_SLOT_FAILED || s->state == GPUD_SLOT_QUARANTINED;
}

bool gpi_slot_dies(const struct gpi_slot *s)
{
    return s->kill != GPI_KILL_NO || s->keeper_lost || s->sweeping;
}

bool gpi_slot_serves(const struct gpi_slot *s)
{
    return (s->state == GPUD_SLOT_READY || s->state == GPUD_SLOT_BUSY) && !s->leaving;
}

/* ---- start ---- */

/* What a new worker finds in its page. */
static void prepare_page(struct gpi_slot *s)
{
    struct gpi_page *p = s->ch.page;

    s->incarnation++;
    atomic_store(&p->incarnation, s->incarnation);
    p->first_number = s->number + 1;
    atomic_store(&p->sent_number, s->number);
    atomic_store(&p->host_cpu, (uint32_t)sched_getcpu());
    atomic_store(&p->worker_sleeps, 0);
    atomic_store(&p->worker_wants_room, 0);
    atomic_store(&p->cancel, 0);
    atomic_store(&p->setup_done, 0);
    atomic_store(&p->cleanup_done, 0);
    atomic_store(&p->progress_pending, 0);
    atomic_store(&p->log_read, atomic_load(&p->log_written));
    for (uint32_t i = 0; i < GPI_CELLS; i++) /* the last worker may have ended what was not sent yet */
        atomic_store_explicit(&p->cell[i].end, 0, memory_order_relaxed);
    atomic_store(&p->canary_done, 0);
    atomic_store(&p->miscounted, 0);
    atomic_store(&p->fault, 0);
    p->canary_text[0] = p->fault_text[0] = '\0';
    p->setup_code = 0;
    memset(p->setup_text, 0, sizeof p->setup_text);
    memset(p->leave_text, 0, sizeof p->leave_text);
}

/* To be called when something was asked for: from then on, not from the beginning of this turn, since when we may have been stopped
 * for longer than that. */
void gpi_slot_await(gpud_dispatcher *d, struct gpi_slot *s, uint64_t limit)
{
    s->state_deadline = gpi_time_add(gpi_now(), limit);
    gpi_slot_timer(d, s);
}

/* It lives, but somebody may have stopped it. */
static void await_spawner(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_slot_await(d, s, gpi_spawner_patience);
}

/* Sends START to the keeper there is. */
static void start_worker(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_channel_header(d, s);
    gpi_numbers_order(d, s);
    prepare_page(s);
    gpi_canary_order(d, s);
    if (gpi_channel_start(d, s)) {
        s->incarnation--;
        s->keeper_lost = true; /* it has died; GONE, or its end, starts this again with another */
        await_spawner(d, s);
        return;
    }
    gpi_vacancy_note(d, s);
    s->keepers_in_vain = 0;
    s->served = 0;
    s->claimed = false;
    s->told = s->cancelled = s->late = 0;
    s->still = s->ended = false;
    s->denied = 0;
    gpi_output_begin(d, s);
    s->setup_time = 0;
    s->started_at = gpi_now(); /* as in gpi_slot_await */
    s->started = true;
    s->answered = !d->executed;
    s->obituary = (struct gpi_control){ .kind = 0 };
    s->restarts += s->incarnation > 1;
    d->count.restarts += s->incarnation > 1;
    gpi_slot_await(d, s, gpi_kill_limit(d, s)); /* a keeper answers at once, unless it is stopped */
}

/* The one that has waited longest for its turn; of several the first by number. */
static struct gpi_slot *next_in_turn(gpud_dispatcher *d)
{
    struct gpi_slot *next = NULL;

    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        bool waits = s->state == GPUD_SLOT_STARTING && !s->started && !s->vacating && s->keeper_pid && !s->keeper_lost;
        if (waits && (!next || s->since < next->since))
            next = s;
    }
    return next;
}

static uint32_t count_setups(const gpud_dispatcher *d)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->n_slots; i++)
        n += d->slot[i].state == GPUD_SLOT_STARTING && d->slot[i].started;
    return n;
}

/* To be called when a slot with a keeper wants to start, and after each end of a setup: while a turn
 * is free nobody waits. */
void gpi_slot_turns(gpud_dispatcher *d)
{
    uint32_t running = count_setups(d);
    struct gpi_slot *s;

    if (gpi_winds_down(d))
        return; /* a keeper that comes now finds no task: gpi_finish_step stops its slot */
    while (running < d->set.setup_concurrency && (s = next_in_turn(d)) != NULL) {
        start_worker(d, s);
        running += s->started;
    }
}

void gpi_slot_start(gpud_dispatcher *d, struct gpi_slot *s)
{
    char gone[GPI_HOW_SIZE];
    int err;

    if (gpi_slot_barred(d, s)) {
        gpi_slot_park(d, s);
        return;
    }
    s->parked = false;
    gpi_slot_clear_times(s);
    gpi_slot_enter(d, s, GPUD_SLOT_STARTING);
    if (s->keeper_asked) /* from before it was parked, say */
        await_spawner(d, s);
    if (s->keeper_lost)
        gpi_slot_await(d, s, gpi_kill_limit(d, s)); /* it may be stopped */
    if (s->keeper_lost || s->keeper_asked)
        return; /* it goes on when the old keeper is gone, or the new one made */
    if (s->keeper_pid) {
        if (s->vacating) {
            s->state_deadline = s->vacant_by;
            gpi_slot_timer(d, s);
        }
        gpi_slot_turns(d);
        return;
    }
    if (d->makes >= MAKES_AT_A_TIME)
        return; /* its turn comes with an answer of the spawner */
    err = d->spawner_gone ? -1 : gpi_channel_make(d, s);
    if (err) {
        if (err > 0)
            gpi_shadow_slot(d, s, GPI_EV_KEEPER_NO, 0);
        gpi_slot_unmade(d, s,
                        err < 0 ? gpi_spawner_gone_text(d, gone, sizeof gone)
                                : "requesting a keeper failed",
                        err, err < 0 ? GPI_SYS_NONE : gpi_refused_call(err));
        return;
    }
    await_spawner(d, s);
}

/* A worker that is dying, or dead, may have said it before: then its end is what is awaited, and
 * the time for that stands.                                                                [C10] */
static void become_ready(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_shadow_slot(d, s, GPI_EV_SETUP_OK,
                    atomic_load(&s->ch.page->canary_done) == GPI_CANARY_PASSED);
    if (!gpi_slot_dies(s))
        s->state_deadline = GPI_NEVER;
    s->setup_time = d->now > s->started_at ? d->now - s->started_at : 1; /* maybe all within this turn */
    s->last_heard = d->now;
    gpi_slot_enter(d, s, GPUD_SLOT_READY);
    gpi_canary_passed(d, s);
    gpi_slot_turns(d);
}

/* A worker may end setup before STARTED arrives.  It gets no task until then: if its keeper is
 * stopped in between, the host would not learn of the worker's end, and it is the kill_limit of
 * STARTED that finds such a keeper. */
void gpi_slot_check_ready(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (s->state == GPUD_SLOT_STARTING && s->pid && s->kill != GPI_KILL_SETUP &&
        atomic_load(&s->ch.page->setup_done) == 1)
        become_ready(d, s);
}

void gpi_slot_started(gpud_dispatcher *d, struct gpi_slot *s, int32_t pid)
{
    s->pid = pid;
    gpi_keeper_watch_worker(d, s);
    if (s->state == GPUD_SLOT_STARTING && !gpi_slot_dies(s)) {
        s->state_deadline = gpi_start_deadline(d, s);
        gpi_slot_timer(d, s);
    }
    gpi_slot_check_ready(d, s);
}

/* ---- kill ---- */

void gpi_slot_kill(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_kill why)
{
    if (s->kill != GPI_KILL_NO || !s->started || s->survivor)
        return;
    s->kill = why;
    gpi_slot_clear_times(s);
    gpi_judge_killed(d, s);
    if (gpi_channel_tell(s, GPI_CTL_KILL, why != GPI_KILL_HARD)) {
        gpi_shadow_slot(d, s, GPI_EV_KEEPER_LOST, 0);
        s->keeper_lost = true;
    }
    gpi_slot_await(d, s, gpi_kill_limit(d, s));
    if (!s->pid)
        (void)gpi_keeper_hangs(d, s); /* then there is nothing to wait for */
}

/* The keeper keeps the time: it gets a CPU sooner than we do, and we need none then. */
void gpi_slot_kill_at(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, uint64_t at)
{
    if (s->kill != GPI_KILL_NO || !s->started)
        return;
    s->kill = GPI_KILL_HARD;
    gpi_slot_clear_times(s);
    gpi_judge_killed(d, s);
    if (gpi_channel_tell_when(s, cell, at)) {
        gpi_shadow_slot(d, s, GPI_EV_KEEPER_LOST, 0);
        s->keeper_lost = true;
    }
    gpi_slot_await(d, s, gpi_time_add(at > d->now ? at - d->now : 0, gpi_kill_limit(d, s)));
}

void gpi_slot_retire(gpud_dispatcher *d, struct gpi_slot *s, const char *why)
{
    if (s->kill != GPI_KILL_NO || s->survivor)
        return;
    d->count.protocol_errors++;
    gpi_shadow_slot(d, s, GPI_EV_BROKE, 0);
    (void)snprintf(s->blame, sizeof s->blame, "%s", why);
    gpi_log(d, GPUD_LEVEL_ERROR, s->index,
            "worker %d of slot %u broke the protocol: %s; the host kills and replaces it", s->pid,
            s->index, why);
    gpi_slot_kill(d, s, GPI_KILL_PROTOCOL);
}

/* Not only where it is not being killed: it may be spared, and is not to be tried again. */
void gpi_slot_cancel(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, uint32_t how)
{
    const uint64_t bit = 1ull << cell;

    if (s->cancelled & bit || (s->told & bit && how == GPUD_CANCEL_SOFT))
        return;
    s->told |= bit;
    if (how == GPUD_CANCEL_HARD) {
        s->cancelled |= bit;
        s->cell_cancel_at[cell] = gpi_now(); /* before the worker can see it, and end */
    }
    atomic_store(&s->ch.page->cancel, s->told);
    if (gpi_slot_running(d, s) & bit) /* else the signal would meet the next one */
        (void)gpi_channel_tell(s, GPI_CTL_ALARM, false);
    gpi_result_room(d, s);
    if (how == GPUD_CANCEL_SOFT)
        return;
    s->check_at = gpi_time_min(s->check_at, gpi_time_add(s->cell_cancel_at[cell], d->set.grace));
    gpi_slot_timer(d, s);
}

/* ---- wind down, and time ---- */

void gpi_slot_wind_down(gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_frame end = { .magic = GPI_ORDER_MAGIC, .incarnation = s->incarnation, .what = GPI_ORDER_END };

    switch (s->state) {
    case GPUD_SLOT_BACKOFF:
        gpi_slot_clear_times(s);
        gpi_slot_enter(d, s, GPUD_SLOT_STOPPED);
        break;
    case GPUD_SLOT_STARTING:
        if (s->started)
            gpi_slot_kill(d, s, GPI_KILL_CLOSE);
        else if (!s->keeper_asked && !s->keeper_lost)
            gpi_slot_enter(d, s, GPUD_SLOT_STOPPED);
        break;
    case GPUD_SLOT_READY:
        if (s->kill != GPI_KILL_NO || s->keeper_lost)
            break;
        gpi_slot_enter(d, s, GPUD_SLOT_DRAINING);
        gpi_slot_clear_times(s);
        if (gpi_fd_write(s->ch.orders, &end, sizeof end)) {
            gpi_shadow_slot(d, s, GPI_EV_UNSENT, 0);
            gpi_slot_kill(d, s, GPI_KILL_CLEANUP); /* a worker that reads no more */
        } else
            gpi_slot_await(d, s, d->set.cleanup_limit);
        break;
    default:
        break;
    }
}

static void end_wait(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_shadow_over(d, s);
    if (s->state == GPUD_SLOT_BACKOFF)
        gpi_slot_start(d, s);
    else if (s->state == GPUD_SLOT_STARTING)
        gpi_slot_kill(d, s, GPI_KILL_SETUP);
    else if (s->state == GPUD_SLOT_DRAINING)
        gpi_slot_kill(d, s, GPI_KILL_CLEANUP);
}

/* A start was ordered, and its keeper has not reported it: it may take as long as setup may. */
static void wait_for_start(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (gpi_start_deadline(d, s) <= d->now)
        end_wait(d, s);
    else
        gpi_slot_await(d, s, gpi_kill_limit(d, s));
}

static void state_deadline_passed(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->state_deadline = GPI_NEVER;
    if (s->state == GPUD_SLOT_STARTING && !s->started && s->vacating && !s->keeper_asked && !s->keeper_lost)
        gpi_vacancy_over(d, s);
    else if (!s->survivor && (s->started || s->keeper_lost) && gpi_keeper_hangs(d, s))
        return;
    else if (s->state == GPUD_SLOT_STARTING && !s->started && s->keeper_lost && !s->keeper_dropped)
        gpi_slot_await(d, s, gpi_kill_limit(d, s)); /* it sweeps what its worker has left */
    else if (s->state == GPUD_SLOT_STARTING && !s->started)
        gpi_spawner_lost(d); /* it lives, maybe, but does not answer */
    else if (s->started && gpi_slot_dies(s))
        gpi_slot_survived(d, s);
    else if (s->state == GPUD_SLOT_STARTING && !s->pid)
        wait_for_start(d, s);
    else
        end_wait(d, s);
}

void gpi_slot_on_timer(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->timer = GPI_NEVER;
    gpi_heap_remove(&d->timers, s->index);
    if (s->peek_at <= d->now)
        gpi_slot_peek(d, s);
    if (s->check_at <= d->now)
        gpi_slot_check_limits(d, s);
    if (s->state_deadline <= d->now)
        state_deadline_passed(d, s);
    gpi_slot_timer(d, s);
}
