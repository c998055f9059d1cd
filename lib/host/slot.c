/* SPDX-License-Identifier: MIT */
/*
 * slot.c - starts, ends and kills a slot's worker when the core orders it; and has the state of the
 * slot that the user sees:
 *
 *   STARTING  a keeper is requested, a turn is awaited (setup_concurrency), a worker is started,
 *             setup runs
 *   READY     a worker without tasks          BUSY  a worker with tasks
 *   DRAINING  END sent: cleanup runs          STOPPED  none, and none wanted
 *   BACKOFF   waiting before the next start   FAILED  given up     QUARANTINED  unkillable
 *
 * While a worker is dying the user sees the state before.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "host/act.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/slot.h"
#include "os/fds.h"
#include "wire/control.h"
#include "wire/frame.h"

/* ---- queries ---- */

enum gpi_life gpi_slot_life(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return gpi_sched_life(d->core, s->index);
}

bool gpi_slot_has_worker(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    const enum gpi_life life = gpi_slot_life(d, s);

    return life >= GPI_LIFE_BOOT && life <= GPI_LIFE_LOST;
}

bool gpi_slot_is_read(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return d->dev.row[s->devices[0]].gauge != GPI_NO_GAUGE;
}

bool gpi_slot_has(const struct gpi_slot *s, uint32_t device)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (s->devices[i] == device)
            return true;
    return false;
}

bool gpi_slot_drains(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (gpi_sched_drains(d->core, s->devices[i]))
            return true;
    return s->gone;
}

bool gpi_slot_settled(const struct gpi_slot *s)
{
    return s->state == GPUD_SLOT_STOPPED || gpi_slot_hopeless(s);
}

bool gpi_slot_hopeless(const struct gpi_slot *s)
{
    return s->state == GPUD_SLOT_FAILED || s->state == GPUD_SLOT_QUARANTINED;
}

bool gpi_slot_serves(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return (s->state == GPUD_SLOT_READY || s->state == GPUD_SLOT_BUSY) &&
           gpi_slot_life(d, s) != GPI_LIFE_LEAVE;
}

/* ---- the state that the user sees ---- */

static void tell_state(gpud_dispatcher *d, const struct gpi_slot *s)
{
    struct gpi_note *n = d->set.slot_events ? gpi_note_new(d, GPUD_EVENT_SLOT, true) : NULL;

    if (!n)
        return;
    n->slot = s->index;
    n->state = s->state;
    n->incarnation = s->incarnation;
    gpi_note_push(d, n);
}

static void enter(gpud_dispatcher *d, struct gpi_slot *s, enum gpud_slot_state state)
{
    const bool to_and_fro = (s->state == GPUD_SLOT_READY && state == GPUD_SLOT_BUSY) ||
                            (s->state == GPUD_SLOT_BUSY && state == GPUD_SLOT_READY);

    if (s->state == state)
        return;
    if (s->state == GPUD_SLOT_READY)
        s->wait_time += d->now - s->idle_since;
    if (state == GPUD_SLOT_READY)
        s->idle_since = d->now;
    s->state = state;
    s->since = d->now;
    if (state == GPUD_SLOT_BUSY && !d->dev.roused && gpi_slot_is_read(d, s))
        gpi_devices_rouse(d);
    if (to_and_fro)
        return;
    gpi_ready_changed(d);
    tell_state(d, s);
}

void gpi_slot_loaded(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (s->state == GPUD_SLOT_READY && s->sent)
        enter(d, s, GPUD_SLOT_BUSY);
    else if (s->state == GPUD_SLOT_BUSY && !s->sent)
        enter(d, s, GPUD_SLOT_READY);
}

/* The first device of the slot that bars it until a reading brings it back; or NULL. */
static const struct gpi_known_device *dead_device(const gpud_dispatcher *d,
                                                  const struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct gpi_known_device *k = &d->dev.row[s->devices[i]];
        if (k->may == GPI_MAY_DEAD)
            return k;
    }
    return NULL;
}

static void enter_parked(gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_known_device *dead = dead_device(d, s);
    const bool was_hopeless = gpi_slot_hopeless(s);
    char why[GPI_FAIL_TEXT_SIZE];

    if (!dead) {
        enter(d, s, gpi_slot_drains(d, s) ? GPUD_SLOT_STOPPED : GPUD_SLOT_BACKOFF);
        return;
    }
    snprintf(why, sizeof why, "%s is %s: %s", dead->id.name, gpud_health_name(dead->health.state),
             dead->health.evidence);
    gpi_slot_failure(s, why);
    enter(d, s, GPUD_SLOT_QUARANTINED);
    if (!was_hopeless)
        gpi_slot_lost_hope(d, s);
}

void gpi_slot_barred(gpud_dispatcher *d, uint32_t device)
{
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (gpi_slot_life(d, &d->slot[i]) == GPI_LIFE_PARKED && gpi_slot_has(&d->slot[i], device))
            enter_parked(d, &d->slot[i]);
}

void gpi_slot_out(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (s->gone)
        return;
    s->gone = true;
    d->n_gone++;
    atomic_fetch_sub(d->places, 1);
    for (uint32_t i = 0; i < s->n_devices; i++)
        d->dev.row[s->devices[i]].slots--;
}

static void enter_removed(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_slot_out(d, s);
    gpi_slot_failure(s, "its device was removed");
    enter(d, s, GPUD_SLOT_STOPPED);
    gpi_slot_lost_hope(d, s);
}

static void enter_stuck(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (gpi_sched_has_keeper(d->core, s->index))
        (void)gpi_channel_tell(s, GPI_CTL_KILL, true);
    s->incarnation++; /* as in the core: drops later messages of the worker */
    enter(d, s, GPUD_SLOT_QUARANTINED);
    gpi_slot_lost_hope(d, s);
    gpi_slot_strike_off(d, s);
}

static void enter_failed(gpud_dispatcher *d, struct gpi_slot *s)
{
    enter(d, s, GPUD_SLOT_FAILED);
    gpi_slot_lost_hope(d, s);
}

static void enter_backoff(gpud_dispatcher *d, struct gpi_slot *s)
{
    const uint32_t deaths = gpi_sched_task_deaths(d->core, s->index);
    char why[96];

    snprintf(why, sizeof why, "%u workers in a row died in a task, while other slots succeeded",
             deaths);
    if (gpi_sched_failures(d->core, s->index) == 0)
        gpi_slot_failure(s, why);
    enter(d, s, GPUD_SLOT_BACKOFF);
}

void gpi_slot_entered(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_life life)
{
    switch (life) {
    case GPI_LIFE_WAIT:
    case GPI_LIFE_BOOT:
    case GPI_LIFE_SETUP:
        enter(d, s, GPUD_SLOT_STARTING);
        break;
    case GPI_LIFE_UP:
    case GPI_LIFE_LEAVE:
        enter(d, s, s->sent ? GPUD_SLOT_BUSY : GPUD_SLOT_READY);
        break;
    case GPI_LIFE_END:
        enter(d, s, GPUD_SLOT_DRAINING);
        break;
    case GPI_LIFE_BACKOFF:
        enter_backoff(d, s);
        break;
    case GPI_LIFE_PARKED:
        if (gpi_slot_life(d, s) == life) /* else its canary has just brought it back */
            enter_parked(d, s);
        gpi_devices_rouse(d); /* a canary may be due */
        break;
    case GPI_LIFE_FAILED:
        enter_failed(d, s);
        break;
    case GPI_LIFE_STUCK:
        enter_stuck(d, s);
        break;
    case GPI_LIFE_STOPPED:
        enter(d, s, GPUD_SLOT_STOPPED);
        break;
    case GPI_LIFE_REMOVED:
        enter_removed(d, s);
        break;
    default:
        break; /* it is dying */
    }
}

/* ---- start ---- */

/* Writes the page for a new worker. */
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
    for (uint32_t i = 0; i < GPI_CELLS; i++) /* the last worker may have ended unsent tasks */
        atomic_store_explicit(&p->cell[i].end, 0, memory_order_relaxed);
    atomic_store(&p->canary_done, 0);
    atomic_store(&p->miscounted, 0);
    atomic_store(&p->fault, 0);
    p->canary_text[0] = p->fault_text[0] = '\0';
    p->setup_code = 0;
    memset(p->setup_text, 0, sizeof p->setup_text);
    memset(p->leave_text, 0, sizeof p->leave_text);
}

static void forget_last(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->claimed = s->ended = s->killed = s->passed = false;
    s->told = s->cancelled = 0;
    s->denied = 0;
    s->setup_time = 0;
    s->initialised = !d->launch.executed;
    s->last = (struct gpi_obituary){ .kind = GPUD_EXIT_NONE };
    gpi_output_begin(d, s);
}

void gpi_slot_start(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_start_kind how)
{
    gpi_channel_header(d, s);
    s->canary = how == GPI_START_ONLY    ? GPI_CANARY_ONLY
                : how == GPI_START_FIRST ? GPI_CANARY_FIRST
                                         : GPI_CANARY_NO;
    gpi_numbers_order(d, s);
    prepare_page(s);
    gpi_canary_order(d, s);
    if (gpi_channel_start(d, s)) {
        s->incarnation--;
        gpi_hear_slot(d, s, GPI_EV_UNSENT, 0);
        gpi_keeper_look(d, s);
        return;
    }
    gpi_vacancy_note(d, s);
    forget_last(d, s);
    s->restarts += s->incarnation > 1;
    d->stats.count.restarts += s->incarnation > 1;
    gpi_hear_begun(d, s);
    s->started_at = d->now;
    gpi_keeper_expect(d, s, gpi_kill_limit(d, s)); /* it answers at once, unless it is stopped */
}

/* A worker may end setup before STARTED arrives.  It gets no task until then: if its keeper is
 * stopped in between, the host would not learn of the worker's end, and it is the kill_limit of
 * STARTED that finds such a keeper. */
void gpi_slot_check_ready(gpud_dispatcher *d, struct gpi_slot *s)
{
    const bool passed = atomic_load(&s->ch.page->canary_done) == GPI_CANARY_PASSED;

    if (s->passed || !s->pid || !gpi_slot_has_worker(d, s) ||
        atomic_load(&s->ch.page->setup_done) != 1)
        return;
    s->passed = true;
    /* Setup may have begun and ended within this turn. */
    s->setup_time = d->now > s->started_at ? d->now - s->started_at : 1;
    s->last_heard = d->now;
    gpi_hear_slot(d, s, GPI_EV_SETUP_OK, passed ? GPI_EXITED_PASSED : 0);
}

void gpi_slot_started(gpud_dispatcher *d, struct gpi_slot *s, int32_t pid)
{
    s->pid = pid;
    s->keeper_at = GPI_NEVER;
    gpi_keeper_watch_worker(d, s);
    gpi_slot_check_ready(d, s);
}

/* ---- end ---- */

static void order_sent(gpud_dispatcher *d, struct gpi_slot *s, int refused)
{
    s->killed = true;
    if (refused)
        gpi_hear_slot(d, s, GPI_EV_KEEPER_LOST, GPI_LOST_PLAIN);
    else
        gpi_hear_begun(d, s);
}

void gpi_slot_kill(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (gpi_slot_life(d, s) == GPI_LIFE_STUCK)
        return; /* enter_stuck has sent KILL to its keeper */
    order_sent(d, s, gpi_channel_tell(s, GPI_CTL_KILL, true));
    if (!s->pid)
        (void)gpi_keeper_hangs(d, s); /* then there is nothing to wait for */
}

/* The keeper keeps the time: it gets a CPU sooner than we do, and we need none then. */
void gpi_slot_kill_at(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, uint64_t at)
{
    order_sent(d, s, gpi_channel_tell_when(s, cell, at));
}

void gpi_slot_end(gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_frame end = {
        .magic = GPI_ORDER_MAGIC,
        .incarnation = s->incarnation,
        .what = GPI_ORDER_END,
    };

    if (gpi_fd_write(s->ch.orders, &end, sizeof end))
        gpi_hear_slot(d, s, GPI_EV_UNSENT, 0); /* a worker that reads no more */
    else
        gpi_hear_begun(d, s);
}

void gpi_slot_retire(gpud_dispatcher *d, struct gpi_slot *s, const char *why)
{
    const enum gpi_life life = gpi_slot_life(d, s);

    if (life < GPI_LIFE_BOOT || life > GPI_LIFE_END)
        return;
    d->stats.count.protocol_errors++;
    (void)snprintf(s->blame, sizeof s->blame, "%s", why);
    gpi_log(d, GPUD_LEVEL_ERROR, s->index,
            "worker %d of slot %u broke the protocol: %s; the host kills and replaces it", s->pid,
            s->index, why);
    gpi_hear_slot(d, s, GPI_EV_BROKE, 0);
}

/* Not only where it is not being killed: it may be spared, and is not to be tried again. */
void gpi_slot_cancel(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, uint32_t how)
{
    const uint64_t bit = 1ull << cell;

    s->told |= bit;
    if (how == GPUD_CANCEL_HARD) {
        s->cancelled |= bit;
        s->cell_cancel_at[cell] = gpi_now(); /* before the worker can see it, and end */
    }
    atomic_store(&s->ch.page->cancel, s->told);
    if (gpi_slot_running(d, s) & bit) /* else the signal would meet the next one */
        (void)gpi_channel_tell(s, GPI_CTL_ALARM, false);
    gpi_result_room(d, s);
}

/* ---- times ---- */

static uint64_t next_time(const struct gpi_slot *s)
{
    return gpi_time_min(gpi_time_min(s->peek_at, s->call_at),
                        gpi_time_min(s->keeper_at, s->vacant_by));
}

/* Puts the earliest of the slot's times into the heap, unless the entry there is early enough. */
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
    if (!s->inflight)
        s->call_at = GPI_NEVER; /* all that it was sent has ended */
    if (next_time(s) <= s->timer)
        return false;
    gpi_heap_remove(&d->timers, s->index);
    s->timer = GPI_NEVER;
    gpi_slot_timer(d, s);
    return true;
}

/* Each time is cleared by the function that handles it. */
void gpi_slot_on_timer(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->timer = GPI_NEVER;
    gpi_heap_remove(&d->timers, s->index);
    if (s->peek_at <= d->now)
        gpi_slot_peek(d, s);
    if (s->call_at <= d->now)
        gpi_slot_call(d, s);
    if (s->keeper_at <= d->now)
        gpi_keeper_look(d, s);
    if (s->vacant_by <= d->now)
        gpi_vacancy_over(d, s);
    gpi_slot_timer(d, s);
}
