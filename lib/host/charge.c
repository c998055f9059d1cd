/* SPDX-License-Identifier: MIT */
/*
 * charge.c - a worker is gone: which of its tasks it can have begun.  The host has collected the
 * ended tasks before.  Tasks that the worker had not claimed go back.  The core charges the claimed
 * rest with the death, and this file writes the words for it.  If the worker has overwritten its
 * page, the rest is all that it can have claimed, or nothing if it has never claimed.   [C2] [C3]
 */
#include <signal.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/duration.h"
#include "base/refused.h"
#include "base/signame.h"
#include "base/ways.h"
#include "host/act.h"
#include "host/dispatcher.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"

/* The ways in which its keeper could not kill it, as calls, and why. */
static void describe_denied(const struct gpi_slot *s, char to[GPI_HOW_SIZE])
{
    char buffer[96];

    (void)snprintf(to, GPI_HOW_SIZE, "pidfd_send_signal%s: %.60s",
                   s->denied == GPI_WAYS ? ", kill" : "",
                   gpi_errno_text(s->denied_errno, buffer, sizeof buffer));
}

void gpi_describe_exit(const gpud_dispatcher *d, const struct gpi_slot *s, char *to, size_t size,
                       uint32_t kind, int32_t status)
{
    const bool last_way = s->denied == GPI_WAYS; /* the keeper ended, so that the worker dies */
    char time[GPI_DURATION_SIZE], why[GPI_FAIL_TEXT_SIZE], denied[GPI_HOW_SIZE];
    char signal[GPI_SIGNAL_SIZE];
    int n;

    gpi_page_text(why, s->ch.page->leave_text, sizeof why);
    if (kind == GPUD_EXIT_CODE && *why)
        n = snprintf(to, size, "exited with status %d (%.120s)", status, why);
    else if (kind == GPUD_EXIT_CODE)
        n = snprintf(to, size, "exited with status %d", status);
    else if (kind == GPUD_EXIT_SIGNAL)
        n = snprintf(to, size, "killed by %s", gpi_signal_text(signal, status));
    else if (kind == GPUD_EXIT_LOST && s->unfit.kind)
        n = snprintf(to, size, "died with its keeper (%s)",
                     gpi_refusal_text(why, s->unfit.call, s->unfit.sys_errno));
    else if (kind == GPUD_EXIT_LOST)
        n = snprintf(to, size, "died with its keeper");
    else
        n = snprintf(to, size, "survived %s for %s (kill_limit)",
                     last_way ? "the end of its keeper" : "SIGKILL",
                     gpi_duration_text(time, gpi_kill_limit(d, s)));
    if (!s->denied || n < 0 || (size_t)n >= size)
        return;
    describe_denied(s, denied);
    (void)snprintf(to + n, size - (size_t)n, "%s (%s)", last_way ? "" : " by kill", denied);
}

const char *gpi_exit_hint(const struct gpi_slot *s, uint32_t kind, int32_t status)
{
    const bool foreign = kind == GPUD_EXIT_SIGNAL && status == SIGKILL && !s->killed;

    return foreign ? "; out of memory? see the kernel log" : "";
}

/* Some ways are left, or the keeper ends now: then the kernel kills the worker. */
void gpi_slot_denied(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_control *c)
{
    char denied[GPI_HOW_SIZE];

    s->denied = c->ways;
    s->denied_errno = c->sys_errno;
    describe_denied(s, denied);
    gpi_log(d, GPUD_LEVEL_WARNING, s->index, "worker %d of slot %u could not be killed (%s); %s",
            s->pid, s->index, denied,
            s->denied == GPI_WAYS ? "its keeper exits, which kills it"
                                  : "the system call kill sent the signal");
}

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

/* The task has exceeded its limit, or its stall limit, and the grace after it. */
static void describe_kill(const gpud_dispatcher *d, const struct gpi_slot *s,
                          const struct gpi_task *t, enum gpi_why why, const char *exit,
                          char text[GPI_WORDS_SIZE])
{
    const bool with_exit = s->last.kind == GPUD_EXIT_NONE || s->denied;
    char limit[96], grace[GPI_DURATION_SIZE];

    if (why == GPI_WHY_STOPPED) {
        gpi_words_stopped(d, limit, sizeof limit);
        (void)snprintf(text, GPI_WORDS_SIZE, "%s%s%s", limit, with_exit ? ", " : "",
                       with_exit ? exit : "");
        return;
    }
    gpi_words_limit(d, t, gpi_slot_stalled(d, s, t->cell), limit, sizeof limit);
    (void)snprintf(text, GPI_WORDS_SIZE, "%s and the grace of %s (grace), %s", limit,
                   gpi_duration_text(grace, d->set.grace), exit);
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

static void add_words(const gpud_dispatcher *d, const struct gpi_slot *s, struct gpi_task *t,
                      const struct gpi_sched_end *e)
{
    const enum gpi_why why = (enum gpi_why)e->why;
    const bool for_another = why == GPI_WHY_LIMIT || why == GPI_WHY_CANCEL;
    struct gpi_detail *det = gpi_output_detail(s, t, t->cell, e->outcome);
    /* The hint appears once, at the end. */
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
    gpi_attempt_words(t, det->text, e->again);
}

/* The task that was claimed and had not ended is charged with the death. */
void gpi_charge(gpud_dispatcher *d, const struct gpi_sched_end *e)
{
    struct gpi_task *t = &d->task[e->task];
    struct gpi_slot *s = gpi_task_slot(d, t);
    const uint64_t started = atomic_load(&s->ch.page->cell[t->cell].started_at);

    gpi_cell_empty(s, t->cell);
    t->attempts = (uint8_t)e->attempts;
    t->started_at = started < t->sent_at || started > d->now ? t->sent_at : started;
    t->ended_at = d->now;
    if (d->set.start_events)
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

/* Recalls tasks.  Returns the cells to be charged, among the cells that it could not recall. */
static uint64_t accused(gpud_dispatcher *d, struct gpi_slot *s, bool *ret_spoilt)
{
    uint64_t begun = gpi_slot_begun(d, s); /* first: an earlier task that goes back proves more */
    uint64_t believed;

    d->stats.count.returned += gpi_recall_all(d, s); /* not claimed: attempts unchanged */
    believed = claimed(s);
    begun |= gpi_slot_begun(d, s) & believed; /* one that survives has claimed until just now */
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
