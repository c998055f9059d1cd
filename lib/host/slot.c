/* SPDX-License-Identifier: MIT */
/*
 * slot.c - the life of a slot: start, ready, limits, death, what comes next.
 *
 *   STARTING  a keeper is asked for, a worker is started, setup runs
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

#include "host/dispatcher.h"

#define MAKES_AT_A_TIME 32              /* requests to the spawner: its socket holds some hundred, and each carries fds */
#define SPAWNER_ANSWERS_NS (10 * GPI_S) /* a fork or two: longer, and somebody has stopped it */
#define LONGEST_LOOK_NS (100 * GPI_MS) /* between looks at a worker that has not claimed what was sent */
#define SHORT_NS (100 * GPI_US)        /* a task younger than this may end without being told at once */

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
    p->setup_code = 0;
    memset(p->setup_text, 0, sizeof p->setup_text);
}

/* Sends START to the keeper there is. */
static void start_worker(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_channel_header(d, s);
    prepare_page(s);
    if (gpi_channel_tell(s, GPI_CTL_START, false)) {
        s->incarnation--;
        s->keeper_lost = true; /* it has died; GONE, or its end, starts this again with another */
        s->state_deadline = d->now + SPAWNER_ANSWERS_NS;
        gpi_slot_timer(d, s);
        return;
    }
    s->cancel_number = 0;
    s->tail_at = s->tail_size = 0;
    s->setup_time = 0;
    s->started_at = d->now;
    s->started = true;
    s->restarts += s->incarnation > 1;
    d->count.restarts += s->incarnation > 1;
    s->state_deadline = gpi_time_add(d->now, d->set.setup_limit);
    gpi_slot_timer(d, s);
}

void gpi_slot_start(gpud_dispatcher *d, struct gpi_slot *s)
{
    int err;

    clear_times(s);
    gpi_slot_enter(d, s, GPUD_SLOT_STARTING);
    if (s->keeper_lost || s->keeper_asked)
        return; /* it goes on when the old keeper is gone, or the new one made */
    if (s->keeper_pid) {
        start_worker(d, s);
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
}

/* ---- kill ---- */

void gpi_slot_kill(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_kill why)
{
    if (s->kill != GPI_KILL_NO || !s->started)
        return;
    s->kill = why;
    clear_times(s);
    s->state_deadline = gpi_time_add(d->now, d->set.kill_limit);
    gpi_slot_timer(d, s);
    if (gpi_channel_tell(s, GPI_CTL_KILL, why != GPI_KILL_HARD))
        s->keeper_lost = true;
}

void gpi_slot_cancel(gpud_dispatcher *d, struct gpi_slot *s, uint64_t number)
{
    if (s->cancel_number == number || s->kill != GPI_KILL_NO)
        return;
    gpi_collect(d, s); /* what has ended is judged before the word for one cancel serves the next */
    if (s->kill != GPI_KILL_NO || s->sent == 0)
        return;
    s->cancel_number = number;
    s->cancel_at = gpi_now();
    atomic_store(&s->ch.page->cancel, number);
    (void)gpi_channel_tell(s, GPI_CTL_ALARM, false);
    s->check_at = gpi_time_min(s->check_at, gpi_time_add(s->cancel_at, d->set.grace));
    gpi_slot_timer(d, s);
}

/* ---- limits ---- */

/* The cell of the task that was claimed and has not ended, or GPI_NONE.  Whatever is not as we
 * sent it counts as claimed: a claim word that its worker has overwritten must not shield it. */
uint32_t gpi_slot_running(const struct gpi_slot *s)
{
    for (uint64_t left = s->inflight; left; left &= left - 1) {
        uint32_t cell = gpi_lowest_bit(left);
        const struct gpi_cell *c = &s->ch.page->cell[cell];
        uint64_t number = s->cell_number[cell];
        if (atomic_load(&c->claim) != gpi_claim_word(number, GPI_SENT) && atomic_load(&c->end) >> 8 != number)
            return cell;
    }
    return GPI_NONE;
}

/* When the task in this cell is to be killed; `*ret_why` tells for what. */
static uint64_t kill_time(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t cell, enum gpi_kill *ret_why)
{
    const struct gpi_page *p = s->ch.page;
    const struct gpi_cell *c = &p->cell[cell];
    const struct gpi_task *t = &d->task[s->cell_task[cell]];
    uint64_t started = atomic_load(&c->started_at), since = atomic_load(&p->stopped_since), stopped, at;

    started = started < t->sent_at || started > d->now ? t->sent_at : started; /* not written yet, or a lie */
    stopped = atomic_load(&p->stopped_ns) - atomic_load(&c->stopped_before);
    if (since && since < d->now)
        stopped += d->now - (since > started ? since : started); /* it is stopped now: the clock stands */
    stopped = stopped > d->now - started ? d->now - started : stopped;
    at = gpi_time_add(gpi_time_add(gpi_time_add(started, t->limit), d->set.grace), stopped);
    *ret_why = GPI_KILL_HARD;
    if (s->cancel_number == s->cell_number[cell] && gpi_time_add(s->cancel_at, d->set.grace) <= at) {
        *ret_why = GPI_KILL_CANCEL;
        at = gpi_time_add(s->cancel_at, d->set.grace);
    }
    return at;
}

/* The hard limit, judged by the cells, not by frames. */
static void check_limits(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t at;
    uint32_t cell;
    enum gpi_kill why;

    s->check_at = GPI_NEVER;
    if (s->kill != GPI_KILL_NO || s->sweeping || !s->inflight)
        return;
    gpi_look_for_disorder(d, s);
    gpi_collect(d, s);
    cell = gpi_slot_running(s);
    /* Of those not claimed the clock starts with the claim: look again before that can pass. */
    for (uint64_t left = s->inflight; left; left &= left - 1) {
        const struct gpi_task *t = &d->task[s->cell_task[gpi_lowest_bit(left)]];
        if (gpi_lowest_bit(left) != cell)
            s->check_at = gpi_time_min(s->check_at, gpi_time_add(gpi_time_add(d->now, t->limit), d->set.grace));
    }
    if (cell == GPI_NONE)
        return;
    at = kill_time(d, s, cell, &why);
    if (at > d->now) {
        s->check_at = gpi_time_min(s->check_at, at);
        return;
    }
    d->count.returned += gpi_recall_all(d, s); /* so that no other can start and be hit */
    if (gpi_slot_running(s) != cell) {
        s->check_at = d->now; /* it has just ended: judge again */
        return;
    }
    if (why == GPI_KILL_HARD)
        d->count.hard_kills++;
    gpi_slot_kill(d, s, why);
}

/* A batch was sent and nothing was heard for a while: ends may wait behind a long task.  Looks
 * again while the task that runs now may still be one that ends untold (see the flush rule of the
 * worker), and once when it is time to take back what waits behind a long one. */
static void peek(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t quiet = d->now - s->last_heard, again = d->now + gpi_time_min(quiet > GPI_MS ? quiet : GPI_MS, LONGEST_LOOK_NS);
    uint64_t stuck = gpi_place_stuck_at(s->last_heard, d->mean_run);
    uint32_t cell;

    s->peek_at = GPI_NEVER;
    gpi_look_for_disorder(d, s);
    gpi_collect(d, s); /* arms it again if something had ended */
    gpi_read_more_log(d, s);
    if (s->peek_at != GPI_NEVER || s->sent < 2)
        return;
    cell = gpi_slot_running(s);
    if (cell == GPI_NONE || d->now - atomic_load(&s->ch.page->cell[cell].started_at) < SHORT_NS)
        s->peek_at = again;
    else if (stuck > d->now)
        s->peek_at = stuck;
}

/* ---- death: what the tasks get ---- */

static void attach_output(const struct gpi_slot *s, struct gpi_detail *det)
{
    uint32_t from = (s->tail_at + GPI_TAIL_SIZE - s->tail_size) % GPI_TAIL_SIZE;

    for (uint32_t i = 0; i < det->output_size; i++)
        det->output[i] = s->tail[(from + i) % GPI_TAIL_SIZE];
}

static void describe_exit(char *to, size_t size, uint32_t kind, int32_t status)
{
    if (kind == GPUD_EXIT_CODE)
        snprintf(to, size, "exited with status %d", status);
    else if (kind == GPUD_EXIT_SIGNAL)
        snprintf(to, size, "killed by signal %d", status);
    else if (kind == GPUD_EXIT_LOST)
        snprintf(to, size, "died with its keeper");
    else
        snprintf(to, size, "survived SIGKILL");
}

/* Adds this attempt's end to the words that all attempts leave. */
static void add_words(struct gpi_task *t, struct gpi_detail *det, uint32_t kind, int32_t status)
{
    size_t n = strnlen(det->text, sizeof det->text);
    char how[64];

    describe_exit(how, sizeof how, kind, status);
    if (t->max_attempts > 1)
        snprintf(det->text + n, sizeof det->text - n, "%sattempt %u: %s", n ? "; " : "", t->attempts, how);
    else
        snprintf(det->text, sizeof det->text, "%s", how);
}

/* The task that was claimed and had not ended is charged with the death. */
static void charge(gpud_dispatcher *d, struct gpi_slot *s, struct gpi_task *t, uint32_t cell, uint32_t kind, int32_t status)
{
    uint64_t started = atomic_load(&s->ch.page->cell[cell].started_at);
    struct gpi_detail *det;

    t->attempts++;
    t->started_at = started < t->sent_at || started > d->now ? t->sent_at : started;
    s->work_time += d->now - t->started_at;
    if (!d->first_start || t->started_at < d->first_start)
        d->first_start = t->started_at;
    det = gpi_task_detail(t, s->tail_size);
    if (det) {
        if (det->output_size == s->tail_size)
            attach_output(s, det);
        det->exit_kind = kind;
        det->exit_status = status;
        add_words(t, det, kind, status);
    }
    t->ended_at = d->now;
    if (s->cancel_number == s->cell_number[cell] && (s->kill == GPI_KILL_NO || s->kill == GPI_KILL_PROTOCOL)) {
        gpi_task_end(d, t, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_PROCESS, GPUD_ECANCELLED); /* asked before it died */
        return;
    }
    switch (s->kill) {
    case GPI_KILL_HARD:
        gpi_task_end(d, t, GPUD_OUTCOME_TIMEOUT, kind == GPUD_EXIT_NONE ? GPUD_PHASE_KILL : GPUD_PHASE_HARD, GPUD_ETIMEOUT);
        return;
    case GPI_KILL_CANCEL:
    case GPI_KILL_CLOSE:
        gpi_task_end(d, t, GPUD_OUTCOME_CANCELLED, kind == GPUD_EXIT_NONE ? GPUD_PHASE_KILL : GPUD_PHASE_HARD, GPUD_ECANCELLED);
        return;
    default:
        break;
    }
    if (kind != GPUD_EXIT_NONE && t->attempts < t->max_attempts) {
        d->count.retried++;
        t->ended_at = 0;
        gpi_task_requeue(d, t);
        return;
    }
    gpi_task_end(d, t, GPUD_OUTCOME_CRASHED, kind == GPUD_EXIT_NONE ? GPUD_PHASE_KILL : GPUD_PHASE_PROCESS,
                 s->kill == GPI_KILL_PROTOCOL ? GPUD_EPROTOCOL : GPUD_ECRASHED);
}

/* Settles every task at a worker that is gone.  Returns how many were charged. */
static uint32_t settle_tasks(gpud_dispatcher *d, struct gpi_slot *s, uint32_t kind, int32_t status)
{
    uint32_t charged = 0;

    d->count.returned += gpi_recall_all(d, s); /* not claimed: back to their places, attempts unchanged */
    for (uint64_t left = s->inflight; left; left &= left - 1) {
        uint32_t cell = gpi_lowest_bit(left);
        struct gpi_task *t = &d->task[s->cell_task[cell]];
        s->inflight &= ~(1ull << cell);
        s->sent--;
        charge(d, s, t, cell, kind, status);
        charged++;
    }
    return charged;
}

/* ---- death: what the slot does next ---- */

static void useless(gpud_dispatcher *d, struct gpi_slot *s, enum gpud_slot_state state)
{
    clear_times(s);
    gpi_slot_enter(d, s, state);
    d->n_useless++;
    if (d->n_useless == d->n_slots)
        gpi_tasks_end_queued(d, GPUD_OUTCOME_NO_WORKER, GPUD_ENOWORKER);
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
        useless(d, s, GPUD_SLOT_FAILED);
    } else if (wait == 0) {
        gpi_slot_start(d, s);
    } else {
        clear_times(s);
        gpi_slot_enter(d, s, GPUD_SLOT_BACKOFF);
        s->state_deadline = d->now + wait;
        gpi_slot_timer(d, s);
    }
}

/* An event about setup or cleanup, with the worker's last output. */
static void tell_failure(gpud_dispatcher *d, struct gpi_slot *s, uint32_t event, int32_t code, uint32_t kind, int32_t status, const char *text)
{
    struct gpi_note *n = gpi_note_new(d, event, false);

    if (!n)
        return;
    n->slot = s->index;
    n->incarnation = s->incarnation;
    n->code = code;
    n->phase = event == GPUD_EVENT_SETUP_FAILURE ? GPUD_PHASE_SETUP : GPUD_PHASE_CLEANUP;
    n->exit_kind = kind;
    n->exit_status = status;
    if (text && *text)
        snprintf(n->text, sizeof n->text, "%s", text);
    else
        describe_exit(n->text, sizeof n->text, kind, status);
    if (s->tail_size && (n->output = malloc(s->tail_size))) {
        uint32_t from = (s->tail_at + GPI_TAIL_SIZE - s->tail_size) % GPI_TAIL_SIZE;
        for (uint32_t i = 0; i < s->tail_size; i++)
            n->output[i] = s->tail[(from + i) % GPI_TAIL_SIZE];
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
    if (why == GPI_KILL_CLOSE) {
        start_later(d, s, 0);
        return;
    }
    if (why == GPI_KILL_SETUP) {
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

    gpi_drain(d, s);
    was = s->state;
    charged = settle_tasks(d, s, kind, status);
    gpi_results_settle(d, s);
    s->started = s->sweeping = false;
    s->kill = GPI_KILL_NO;
    s->pid = 0;
    s->progress = 0;
    s->progress_text[0] = '\0';
    if (why == GPI_KILL_NO && was != GPUD_SLOT_DRAINING)
        d->count.deaths++;
    if (worked >= d->set.restart.cap)
        s->restart.slot_failures = 0; /* it was well for long */
    if (was == GPUD_SLOT_STARTING)
        setup_died(d, s, why, kind, status);
    else if (was == GPUD_SLOT_DRAINING)
        cleanup_ended(d, s, why, kind, status);
    else if (why == GPI_KILL_HARD || why == GPI_KILL_CANCEL || why == GPI_KILL_CLOSE)
        start_later(d, s, 0);
    else if (charged)
        start_later(d, s, gpi_restart_task_death(&s->restart, &d->set.restart, d->count.success));
    else {
        char how[64];
        describe_exit(how, sizeof how, kind, status);
        gpi_log(d, GPUD_LEVEL_WARNING, s->index, "worker of slot %u %s between tasks", s->index, how);
        slot_failure(d, s);
    }
}

/* No keeper, or no worker, could be made. */
void gpi_slot_unmade(gpud_dispatcher *d, struct gpi_slot *s, int sys_errno, const char *what)
{
    char text[GPI_FAIL_TEXT_SIZE];

    s->started = false;
    s->kill = GPI_KILL_NO;
    if (sys_errno > 0)
        snprintf(text, sizeof text, "%s: errno %d", what, sys_errno);
    else
        snprintf(text, sizeof text, "%s", what);
    d->count.setup_failures++;
    tell_failure(d, s, GPUD_EVENT_SETUP_FAILURE, sys_errno < 0 ? GPUD_ESPAWNER : GPUD_ESYSTEM, GPUD_EXIT_NONE, 0, text);
    if (sys_errno < 0)
        start_later(d, s, GPI_RESTART_GIVE_UP); /* nothing will bring it back */
    else
        slot_failure(d, s);
}

/* It survived SIGKILL: the slot is fenced for good, its task is told, the rest goes on. [C10] */
static void quarantine(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_log(d, GPUD_LEVEL_ERROR, s->index, "worker %d of slot %u is still there %.1f s after SIGKILL; the slot is quarantined (option kill_limit)",
            s->pid, s->index, (double)d->set.kill_limit / 1e9);
    gpi_drain(d, s);
    (void)settle_tasks(d, s, GPUD_EXIT_NONE, 0);
    if (s->state == GPUD_SLOT_STARTING) {
        d->count.setup_failures++;
        tell_failure(d, s, GPUD_EVENT_SETUP_FAILURE, GPUD_EQUARANTINED, GPUD_EXIT_NONE, 0, NULL);
    }
    s->kill = GPI_KILL_NO;
    s->keeper_lost = s->sweeping = false;
    s->incarnation++; /* fences what it may still say */
    useless(d, s, GPUD_SLOT_QUARANTINED);
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
        if (write(s->ch.orders, &end, sizeof end) != (ssize_t)sizeof end)
            gpi_slot_kill(d, s, GPI_KILL_CLEANUP); /* a worker that reads no more */
        break;
    default:
        break;
    }
}

static void state_deadline_passed(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->state_deadline = GPI_NEVER;
    if (s->state == GPUD_SLOT_STARTING && !s->started)
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
        peek(d, s);
    if (s->check_at <= d->now)
        check_limits(d, s);
    if (s->state_deadline <= d->now)
        state_deadline_passed(d, s);
    gpi_slot_timer(d, s);
}
