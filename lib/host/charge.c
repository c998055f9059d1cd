/* SPDX-License-Identifier: MIT */
/*
 * charge.c - a worker is gone: decides which of its tasks it can have begun.  Before, the host has
 * collected the ended tasks.  Tasks that the worker had not claimed return to the queue.  The core
 * charges the remaining claimed tasks with the death, and this file writes their texts.  If the
 * worker has overwritten its page, these are all tasks that it can have claimed, or none if it has
 * never claimed one.                                                                      [C2] [C3]
 */
#include <stdio.h>

#include "base/bits.h"
#include "base/duration.h"
#include "host/act.h"
#include "host/dispatcher.h"
#include "host/external.h"
#include "host/slot.h"
#include "host/task.h"

/* Whether this charge is for a broken protocol. */
static bool spoils(const struct gpi_sched_end *e)
{
    return e->why == GPI_WHY_PROTOCOL && e->outcome == GPUD_OUTCOME_CRASHED;
}

static int32_t code_of(const struct gpi_sched_end *e)
{
    if (e->outcome == GPUD_OUTCOME_TIMEOUT)
        return GPUD_ETIMEOUT;
    if (e->outcome == GPUD_OUTCOME_CANCELLED)
        return e->why == GPI_WHY_CLOSE ? GPUD_ETIMEOUT : GPUD_ECANCELLED;
    if (e->why == GPI_WHY_DEVICE)
        return GPUD_EDEVICE;
    return spoils(e) ? GPUD_EPROTOCOL : GPUD_ECRASHED;
}

/* The task has exceeded its limit, or its stall limit, and then `grace`. */
static void describe_kill(const gpud_dispatcher *d, const struct gpi_slot *s,
                          const struct gpi_task *t, enum gpi_why why, const char *exit,
                          char text[GPI_WORDS_SIZE])
{
    const bool with_exit = s->last.kind == GPUD_EXIT_NONE || s->denied;
    char limit[96], grace[GPI_DURATION_SIZE];

    if (why == GPI_WHY_STOPPED) {
        gpi_words_stopped(d, s, limit, sizeof limit);
        (void)snprintf(text, GPI_WORDS_SIZE, "%s%s%s", limit, with_exit ? ", " : "",
                       with_exit ? exit : "");
        return;
    }
    gpi_words_limit(d, t, gpi_slot_stalled(d, s, t->cell), limit, sizeof limit);
    (void)snprintf(text, GPI_WORDS_SIZE, "%s and the grace of %s (grace), %s", limit,
                   gpi_duration_text(grace, gpi_slot_class(d, s)->set.grace), exit);
}

/* The dispatcher's close limit has expired. */
static void describe_close(const gpud_dispatcher *d, const struct gpi_slot *s, const char *exit,
                           char text[GPI_WORDS_SIZE])
{
    char limit[96];

    gpi_close_words(d, limit, sizeof limit);
    (void)snprintf(text, GPI_WORDS_SIZE, "killed at the %s%s%s", limit, s->denied ? ", " : "",
                   s->denied ? exit : "");
}

static void add_words(gpud_dispatcher *d, const struct gpi_slot *s, struct gpi_task *t,
                      const struct gpi_sched_end *e)
{
    const enum gpi_why why = (enum gpi_why)e->why;
    const bool for_another = why == GPI_WHY_LIMIT || why == GPI_WHY_CANCEL;
    struct gpi_detail *det = gpi_output_detail(s, t, t->cell, e->outcome);
    /* The hint appears once, at the end of the text. */
    const char *hint = e->again ? "" : gpi_exit_hint(s, s->last.kind, s->last.status);
    char exit[GPI_HOW_SIZE];

    if (!det)
        return;
    det->exit_kind = s->last.kind;
    det->exit_status = s->last.status;
    gpi_describe_exit(d, s, exit, sizeof exit, s->last.kind, s->last.status);
    if (e->outcome == GPUD_OUTCOME_TIMEOUT)
        describe_kill(d, s, t, why, exit, det->text);
    else if (e->outcome == GPUD_OUTCOME_CANCELLED && why == GPI_WHY_CLOSE)
        describe_close(d, s, exit, det->text);
    else if (e->outcome == GPUD_OUTCOME_CANCELLED)
        (void)snprintf(det->text, sizeof det->text, "cancelled, %s%s", exit, hint);
    else if (why == GPI_WHY_DEVICE)
        (void)snprintf(det->text, sizeof det->text, "%s", s->blame);
    else
        (void)snprintf(det->text, sizeof det->text, "%s%s%s%s",
                       spoils(e) ? "broke the protocol, " : "", exit,
                       for_another ? " for another task of its batch" : "", hint);
    gpi_attempt_words(d, t, det->text, e->again);
}

/* Charges a claimed task that has not ended with the death. */
static void charge(gpud_dispatcher *d, const struct gpi_sched_end *e)
{
    struct gpi_task *t = &d->task[e->task];
    struct gpi_slot *s = gpi_task_slot(d, t);
    const uint64_t started = atomic_load(&s->ch.page->cell[t->cell].started_at);

    if (started > d->now) /* the task started after the turn had begun */
        d->now = gpi_now();
    gpi_cell_empty(s, t->cell);
    t->attempts = (uint8_t)e->attempts;
    t->started_at = started < t->sent_at || started > d->now ? t->sent_at : started;
    t->ended_at = d->now;
    if (gpi_slot_class(d, s)->set.start_events)
        gpi_start_seen(d, s, t->cell, t->attempts, t->started_at);
    s->work_time += (d->now - t->started_at) / (s->batch ? s->batch : 1);
    if (!d->stats.first_start || t->started_at < d->stats.first_start)
        d->stats.first_start = t->started_at;
    add_words(d, s, t, e);
    if (e->again)
        gpi_attempt_retry(d, t);
    else
        gpi_task_end(d, t, e->outcome, e->phase, code_of(e));
}

/* Returns a task that has not begun to the queue, for any value of its claim word. */
static void give_back(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell)
{
    struct gpi_task *t = &d->task[s->cell_task[cell]];

    d->stats.count.returned++;
    gpi_cell_empty(s, cell);
    t->state = GPI_TASK_QUEUED;
    gpi_hear_task(d, t, GPI_EV_CAME_BACK, GPI_BACK_SPOILT);
}

static uint64_t claimed(const struct gpi_slot *s)
{
    uint64_t cells = 0;

    for (uint64_t left = s->inflight; left; left &= left - 1) {
        uint32_t cell = gpi_lowest_bit(left);
        uint64_t word = gpi_claim_word(s->cell_number[cell], GPI_CLAIMED);
        cells |= (uint64_t)(atomic_load(&s->ch.page->cell[cell].claim) == word) << cell;
    }
    return cells;
}

/* Recalls tasks.  Returns the cells to charge, among the cells that it could not recall. */
static uint64_t accused(gpud_dispatcher *d, struct gpi_slot *s, bool *ret_spoilt)
{
    uint64_t begun = gpi_slot_begun(d, s); /* first: a recall hides which tasks were unclaimed */
    uint64_t believed;

    d->stats.count.returned += gpi_recall_all(d, s); /* not claimed: attempts unchanged */
    believed = claimed(s);
    begun |= gpi_slot_begun(d, s) & believed; /* tasks claimed just before the recall */
    begun &= s->inflight;
    *ret_spoilt = s->inflight != (begun & believed);
    return s->claimed || believed ? begun : 0;
}

bool gpi_slot_give_back(gpud_dispatcher *d, struct gpi_slot *s)
{
    bool spoilt;
    const uint64_t begun = accused(d, s, &spoilt);

    s->batch = 0;
    for (uint64_t left = begun; left; left &= left - 1)
        s->batch++;
    for (uint64_t left = s->inflight & ~begun; left; left &= left - 1)
        give_back(d, s, gpi_lowest_bit(left));
    if (spoilt && !s->killed) {
        d->stats.count.protocol_errors++;
        (void)snprintf(s->blame, sizeof s->blame, "its status page was overwritten");
    }
    return spoilt;
}

/* ---- tasks that the core has ended ---- */

/* Returns the code of an outcome without a start. */
static int32_t code_without_start(uint32_t outcome)
{
    switch (outcome) {
    case GPUD_OUTCOME_TIMEOUT:
        return GPUD_ETIMEOUT;
    case GPUD_OUTCOME_NO_WORKER:
        return GPUD_ENOWORKER;
    default:
        return GPUD_ECANCELLED;
    }
}

void gpi_task_over(gpud_dispatcher *d, const struct gpi_sched_end *e)
{
    if (gpi_task_is_external(d, &d->task[e->task]))
        gpi_external_over(d, e);
    else if (e->phase == GPUD_PHASE_QUEUED)
        gpi_task_end(d, &d->task[e->task], e->outcome, e->phase, code_without_start(e->outcome));
    else
        charge(d, e);
}
