/* SPDX-License-Identifier: MIT */
/*
 * slot.c - the life of a slot: start, ready, kill, death, what comes next.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/failure.h"
#include "host/dispatcher.h"
#include "os/fds.h"

#define MAKES_AT_A_TIME 32              /* requests to the spawner: its socket holds some hundred, and each carries fds */
#define SPAWNER_ANSWERS_NS (10 * GPI_S) /* a fork or two: longer, and somebody has stopped it */

/* ---- state and timers ---- */

void gpi_slot_enter(gpud_dispatcher *d, struct gpi_slot *s, enum gpud_slot_state state)
{
    bool to_and_fro = (s->state == GPUD_SLOT_READY && state == GPUD_SLOT_BUSY) || (s->state == GPUD_SLOT_BUSY && state == GPUD_SLOT_READY);

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
    if (to_and_fro || !d->set.slot_events)
        return;
    struct gpi_note *n = gpi_note_new(d, GPUD_EVENT_SLOT, true);
    if (!n)
        return;
    n->slot = s->index;
    n->state = state;
    n->incarnation = s->incarnation;
    gpi_note_push(d, n);
}

/* Puts the earliest of the slot's times into the heap, unless what stands there is early enough. */
void gpi_slot_timer(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t at = gpi_time_min(s->state_deadline, gpi_time_min(s->check_at, s->peek_at));

    if (at >= s->timer)
        return;
    s->timer = at;
    gpi_heap_set(&d->timers, s->index, at);
}

static void clear_times(struct gpi_slot *s)
{
    s->state_deadline = s->check_at = s->peek_at = GPI_NEVER;
}

bool gpi_slot_settled(const struct gpi_slot *s)
{
    return s->state == GPUD_SLOT_STOPPED || s->state == GPUD_SLOT_FAILED || s->state == GPUD_SLOT_QUARANTINED;
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
    atomic_store(&p->worker_sleeps, 0);
    atomic_store(&p->cancel, 0);
    atomic_store(&p->setup_done, 0);
    atomic_store(&p->progress_pending, 0);
    atomic_store(&p->log_read, atomic_load(&p->log_written));
    for (uint32_t i = 0; i < GPI_CELLS; i++) /* the last worker may have ended what was not sent yet */
        atomic_store_explicit(&p->cell[i].end, 0, memory_order_relaxed);
    atomic_store(&p->canary_done, 0);
    atomic_store(&p->fault, 0);
    p->canary_text[0] = p->fault_text[0] = '\0';
    p->setup_code = 0;
    memset(p->setup_text, 0, sizeof p->setup_text);
}

/* Sends START to the keeper there is. */
static void start_worker(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_channel_header(d, s);
    prepare_page(s);
    gpi_canary_order(d, s);
    if (gpi_channel_tell(s, GPI_CTL_START, false)) {
        s->incarnation--;
        s->keeper_lost = true; /* it has died; GONE, or its end, starts this again with another */
        s->state_deadline = d->now + SPAWNER_ANSWERS_NS;
        gpi_slot_timer(d, s);
        return;
    }
    gpi_vacancy_note(d, s);
    s->keepers_in_vain = 0;
    s->cancelled = s->late = 0;
    s->tail_at = s->tail_size = 0;
    s->setup_time = 0;
    s->started_at = d->now;
    s->started = true;
    s->answered = !d->executed;
    s->obituary = (struct gpi_control){ .kind = 0 };
    s->restarts += s->incarnation > 1;
    d->count.restarts += s->incarnation > 1;
    s->state_deadline = gpi_start_deadline(d, s);
    gpi_slot_timer(d, s);
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

    while (running < d->set.setup_concurrency && (s = next_in_turn(d)) != NULL) {
        start_worker(d, s);
        running += s->started;
    }
}

void gpi_slot_start(gpud_dispatcher *d, struct gpi_slot *s)
{
    int err;

    if (gpi_slot_barred(d, s)) {
        gpi_slot_park(d, s);
        return;
    }
    s->parked = false;
    clear_times(s);
    gpi_slot_enter(d, s, GPUD_SLOT_STARTING);
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
        gpi_slot_unmade(d, s, err, err < 0 ? "the spawner is gone" : "asking for a keeper failed");
        return;
    }
    s->state_deadline = d->now + SPAWNER_ANSWERS_NS;
    gpi_slot_timer(d, s);
}

void gpi_slot_ready(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->state_deadline = GPI_NEVER;
    s->setup_time = d->now - s->started_at;
    s->last_heard = d->now;
    gpi_slot_enter(d, s, GPUD_SLOT_READY);
    gpi_canary_passed(d, s);
    gpi_slot_turns(d);
}

/* ---- kill ---- */

void gpi_slot_kill(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_kill why)
{
    if (s->kill != GPI_KILL_NO || !s->started)
        return;
    s->kill = why;
    clear_times(s);
    s->state_deadline = gpi_time_add(d->now, gpi_kill_limit(d, s));
    gpi_slot_timer(d, s);
    gpi_judge_killed(d, s);
    if (gpi_channel_tell(s, GPI_CTL_KILL, why != GPI_KILL_HARD))
        s->keeper_lost = true;
}

/* The keeper keeps the time: it gets a CPU sooner than we do, and we need none then. */
void gpi_slot_kill_at(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, uint64_t at)
{
    if (s->kill != GPI_KILL_NO || !s->started)
        return;
    s->kill = GPI_KILL_HARD;
    clear_times(s);
    s->state_deadline = gpi_time_add(at, gpi_kill_limit(d, s));
    gpi_slot_timer(d, s);
    gpi_judge_killed(d, s);
    if (gpi_channel_tell_when(s, cell, at))
        s->keeper_lost = true;
}

void gpi_slot_retire(gpud_dispatcher *d, struct gpi_slot *s, const char *why)
{
    if (s->kill != GPI_KILL_NO)
        return;
    d->count.protocol_errors++;
    gpi_log(d, GPUD_LEVEL_ERROR, s->index, "worker %d broke the protocol (%s); it is killed and replaced", s->pid, why);
    gpi_slot_kill(d, s, GPI_KILL_PROTOCOL);
}

void gpi_slot_cancel(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell)
{
    if (s->cancelled >> cell & 1)
        return; /* but not where it is being killed: it may be spared, and is not to be tried again */
    s->cancelled |= 1ull << cell;
    s->cell_cancel_at[cell] = gpi_now();
    atomic_store(&s->ch.page->cancel, s->cancelled);
    (void)gpi_channel_tell(s, GPI_CTL_ALARM, false);
    s->check_at = gpi_time_min(s->check_at, gpi_time_add(s->cell_cancel_at[cell], d->set.grace));
    gpi_slot_timer(d, s);
}

/* ---- death: what the slot does next ---- */

/* A sticky CUDA error, as the worker told before it left: the next one there passes a canary first. */
static bool died_of_fault(gpud_dispatcher *d, const struct gpi_slot *s)
{
    char text[GPI_FAIL_TEXT_SIZE], why[GPI_FAIL_TEXT_SIZE + 64];

    if (!s->watched || !atomic_load(&s->ch.page->fault))
        return false;
    gpi_page_text(text, s->ch.page->fault_text, sizeof text);
    snprintf(why, sizeof why, "a worker there saw CUDA error %u (%s)", atomic_load(&s->ch.page->fault), text);
    d->count.cuda_faults++;
    for (uint32_t i = 0; i < s->n_devices; i++)
        gpi_judge_suspect(d, s->devices[i], why);
    return true;
}

/* C9: so many died in a row there, while others did well, that the device may be why. */
static uint64_t task_death(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t wait = gpi_restart_task_death(&s->restart, &d->set.restart, d->count.success);
    char why[96];

    snprintf(why, sizeof why, "%u workers in a row died there in a task, while others did well", s->restart.task_deaths);
    for (uint32_t i = 0; wait && s->watched && i < s->n_devices; i++)
        gpi_judge_suspect(d, s->devices[i], why);
    return wait;
}

const char *gpi_why_no_worker(const gpud_dispatcher *d)
{
    return d->why_no_worker ? d->why_no_worker->text : "no slot is left";
}

/* The words of an earlier time are still pointed to, so new ones are put before them. */
static void note_reason(gpud_dispatcher *d, const struct gpi_slot *s, const char *why)
{
    struct gpi_reason r = { .before = d->why_no_worker }, *copy;

    snprintf(r.text, sizeof r.text, "no slot is left; slot %u: %s", s->index, why);
    if (r.before && strcmp(r.text, r.before->text) == 0)
        return;
    copy = malloc(sizeof *copy);
    if (!copy)
        return;
    *copy = r;
    d->why_no_worker = copy;
}

void gpi_slot_useless(gpud_dispatcher *d, struct gpi_slot *s, enum gpud_slot_state state, const char *why)
{
    clear_times(s);
    gpi_slot_enter(d, s, state);
    if (s->useless)
        return;
    s->useless = true;
    d->n_useless++;
    if (d->n_useless < d->n_slots)
        return;
    note_reason(d, s, why);
    gpi_tasks_end_queued(d, GPUD_OUTCOME_NO_WORKER, GPUD_ENOWORKER);
}

void gpi_slot_useful(gpud_dispatcher *d, struct gpi_slot *s)
{
    d->n_useless -= s->useless;
    s->useless = false;
}

/* While closing: no task will need another worker. */
static bool nothing_to_come(const gpud_dispatcher *d)
{
    return d->closing && !d->feeding && (d->unended == 0 || (d->finish >= GPUD_FINISH_RUNNING && d->queue.count == 0));
}

static void start_later(gpud_dispatcher *d, struct gpi_slot *s, uint64_t wait)
{
    if (nothing_to_come(d)) {
        clear_times(s);
        gpi_slot_enter(d, s, GPUD_SLOT_STOPPED);
    } else if (wait == GPI_RESTART_GIVE_UP) {
        gpi_log(d, GPUD_LEVEL_ERROR, s->index, "slot %u failed %u times in a row; it is given up and its work goes to the others (option failures_in_a_row)",
                s->index, s->restart.slot_failures);
        gpi_slot_useless(d, s, GPUD_SLOT_FAILED, s->last_failure);
    } else if (wait == 0) {
        gpi_slot_start(d, s);
    } else {
        clear_times(s);
        gpi_slot_enter(d, s, GPUD_SLOT_BACKOFF);
        s->state_deadline = d->now + wait;
        gpi_slot_timer(d, s);
    }
}

void gpi_slot_again(gpud_dispatcher *d, struct gpi_slot *s)
{
    start_later(d, s, 0);
}

/* An event about setup or cleanup, with the worker's last output. */
static void tell_failure(gpud_dispatcher *d, struct gpi_slot *s, uint32_t event, int32_t code, uint32_t kind, int32_t status, const char *text)
{
    struct gpi_note *n = gpi_note_new(d, event, false);
    char how[64];

    gpi_describe_exit(how, sizeof how, kind, status);
    if (event == GPUD_EVENT_SETUP_FAILURE)
        snprintf(s->last_failure, sizeof s->last_failure, "%.*s", (int)sizeof s->last_failure - 1, text && *text ? text : how);
    if (!n)
        return;
    n->slot = s->index;
    n->incarnation = s->incarnation;
    n->code = code;
    n->phase = event == GPUD_EVENT_SETUP_FAILURE ? GPUD_PHASE_SETUP : GPUD_PHASE_CLEANUP;
    n->exit_kind = kind;
    n->exit_status = status;
    snprintf(n->text, sizeof n->text, "%s", text && *text ? text : how);
    if (s->tail_size && (n->output = malloc(s->tail_size))) {
        gpi_slot_tail(s, n->output, s->tail_size);
        n->output_size = s->tail_size;
    }
    gpi_note_push(d, n);
}

static void slot_failure(gpud_dispatcher *d, struct gpi_slot *s)
{
    start_later(d, s, gpi_restart_slot_failure(&s->restart, &d->set.restart));
}

static void setup_died(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_kill why, uint32_t kind, int32_t status)
{
    char text[GPI_FAIL_TEXT_SIZE];
    int32_t code = s->ch.page->setup_code;

    gpi_page_text(text, s->ch.page->setup_text, sizeof text);
    if (why == GPI_KILL_CLOSE || why == GPI_KILL_DEVICE) {
        gpi_canary_over(d, s);
        start_later(d, s, 0);
        return;
    }
    if (gpi_canary_died(d, s, kind, status)) {
        start_later(d, s, 0);
        return;
    }
    if (!s->answered && atomic_load(&s->ch.page->setup_done) == 0 && kind != GPUD_EXIT_LOST) {
        code = gpi_start_verdict(d, s, why, kind, status, text, sizeof text);
    } else if (why == GPI_KILL_SETUP) {
        code = GPUD_ETIMEOUT;
        snprintf(text, sizeof text, "setup passed its limit of %.3f s (option setup_limit)", (double)d->set.setup_limit / 1e9);
    } else if (atomic_load(&s->ch.page->setup_done) != 2) {
        code = GPUD_ECRASHED;
        text[0] = '\0';
    }
    d->count.setup_failures++;
    tell_failure(d, s, GPUD_EVENT_SETUP_FAILURE, code, kind, status, text);
    slot_failure(d, s);
}

static void cleanup_ended(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_kill why, uint32_t kind, int32_t status)
{
    if (why == GPI_KILL_DEVICE) {
        start_later(d, s, 0);
        return;
    }
    if (why == GPI_KILL_CLEANUP || (why == GPI_KILL_NO && (kind != GPUD_EXIT_CODE || status != 0))) {
        d->count.cleanup_failures++;
        tell_failure(d, s, GPUD_EVENT_CLEANUP_FAILURE, why == GPI_KILL_CLEANUP ? GPUD_ETIMEOUT : GPUD_ECRASHED, kind, status,
                     why == GPI_KILL_CLEANUP ? "cleanup passed its limit (option cleanup_limit)" : NULL);
    }
    start_later(d, s, 0);
}

void gpi_slot_died(gpud_dispatcher *d, struct gpi_slot *s, uint32_t kind, int32_t status)
{
    enum gpud_slot_state was;
    uint64_t worked = s->setup_time ? d->now - s->started_at : 0;
    enum gpi_kill why = s->kill;
    uint32_t charged;
    bool fault;

    gpi_drain(d, s);
    was = s->state;
    charged = gpi_settle_tasks(d, s, kind, status);
    gpi_results_settle(d, s);
    gpi_slot_stays(d, s);
    s->started = s->sweeping = false;
    s->kill = GPI_KILL_NO;
    s->dead = (uint32_t)s->pid;
    s->pid = 0;
    s->progress = 0;
    s->progress_text[0] = '\0';
    if (why == GPI_KILL_NO && was != GPUD_SLOT_DRAINING)
        d->count.deaths++;
    if (worked >= d->set.restart.cap)
        s->restart.slot_failures = 0; /* it was well for long */
    if (why != GPI_KILL_NO)
        gpi_judge_killed(d, s);
    gpi_vacancy_begin(d, s);
    fault = died_of_fault(d, s);
    if (was == GPUD_SLOT_STARTING)
        setup_died(d, s, why, kind, status);
    else if (was == GPUD_SLOT_DRAINING)
        cleanup_ended(d, s, why, kind, status);
    else if (why == GPI_KILL_HARD || why == GPI_KILL_CANCEL || why == GPI_KILL_CLOSE || why == GPI_KILL_DEVICE)
        start_later(d, s, 0);
    else if (charged)
        start_later(d, s, task_death(d, s));
    else if (fault)
        start_later(d, s, 0);
    else {
        char how[64];
        gpi_describe_exit(how, sizeof how, kind, status);
        gpi_log(d, GPUD_LEVEL_WARNING, s->index, "worker of slot %u %s between tasks", s->index, how);
        slot_failure(d, s);
    }
    gpi_slot_turns(d);
}

/* No keeper, or no worker, could be made. */
void gpi_slot_unmade(gpud_dispatcher *d, struct gpi_slot *s, int sys_errno, const char *what)
{
    char text[GPI_FAIL_TEXT_SIZE], why[96];

    s->started = false;
    s->kill = GPI_KILL_NO;
    gpi_canary_over(d, s);
    snprintf(text, sizeof text, "%s%s%s", what, sys_errno > 0 ? ": " : "", sys_errno > 0 ? gpi_errno_text(sys_errno, why, sizeof why) : "");
    d->count.setup_failures++;
    tell_failure(d, s, GPUD_EVENT_SETUP_FAILURE, sys_errno < 0 ? GPUD_ESPAWNER : GPUD_ESYSTEM, GPUD_EXIT_NONE, 0, text);
    if (sys_errno < 0)
        start_later(d, s, GPI_RESTART_GIVE_UP); /* nothing will bring it back */
    else
        slot_failure(d, s);
    gpi_slot_turns(d);
}

/* It survived SIGKILL: the slot is fenced for good, its task is told, the rest goes on. [C10] */
static void quarantine(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_slot_stays(d, s);
    gpi_log(d, GPUD_LEVEL_ERROR, s->index, "worker %d of slot %u is still there %.1f s after SIGKILL; the slot is quarantined (option kill_limit)",
            s->pid, s->index, (double)gpi_kill_limit(d, s) / 1e9);
    gpi_drain(d, s);
    (void)gpi_settle_tasks(d, s, GPUD_EXIT_NONE, 0);
    if (s->state == GPUD_SLOT_STARTING) {
        d->count.setup_failures++;
        tell_failure(d, s, GPUD_EVENT_SETUP_FAILURE, GPUD_EQUARANTINED, GPUD_EXIT_NONE, 0, NULL);
    }
    s->kill = GPI_KILL_NO;
    s->keeper_lost = s->sweeping = false;
    (void)gpi_channel_tell(s, GPI_CTL_KILL, true); /* a keeper that wakes late must not find a reason to spare it */
    s->incarnation++; /* fences what it may still say */
    s->survivor = true;
    gpi_canary_over(d, s);
    gpi_slot_useless(d, s, GPUD_SLOT_QUARANTINED, "its worker survived SIGKILL");
    for (uint32_t i = 0; s->watched && i < s->n_devices; i++)
        gpi_judge_quarantine(d, s->devices[i], "a worker there survived SIGKILL");
    gpi_slot_turns(d);
}

/* ---- wind down, and time ---- */

void gpi_slot_wind_down(gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_frame end = { .magic = GPI_ORDER_MAGIC, .incarnation = s->incarnation, .what = GPI_ORDER_END };

    switch (s->state) {
    case GPUD_SLOT_BACKOFF:
        clear_times(s);
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
        clear_times(s);
        s->state_deadline = gpi_time_add(d->now, d->set.cleanup_limit);
        gpi_slot_timer(d, s);
        if (gpi_fd_write(s->ch.orders, &end, sizeof end))
            gpi_slot_kill(d, s, GPI_KILL_CLEANUP); /* a worker that reads no more */
        break;
    default:
        break;
    }
}

static void state_deadline_passed(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->state_deadline = GPI_NEVER;
    if (s->state == GPUD_SLOT_STARTING && !s->started && s->vacating && !s->keeper_asked && !s->keeper_lost)
        gpi_vacancy_over(d, s);
    else if (s->state == GPUD_SLOT_STARTING && !s->started)
        gpi_spawner_lost(d); /* it lives, maybe, but does not answer */
    else if (s->started && (s->kill != GPI_KILL_NO || s->keeper_lost || s->sweeping))
        quarantine(d, s);
    else if (s->state == GPUD_SLOT_BACKOFF)
        gpi_slot_start(d, s);
    else if (s->state == GPUD_SLOT_STARTING)
        gpi_slot_kill(d, s, GPI_KILL_SETUP);
    else if (s->state == GPUD_SLOT_DRAINING)
        gpi_slot_kill(d, s, GPI_KILL_CLEANUP);
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
