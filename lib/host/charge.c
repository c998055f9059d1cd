/* SPDX-License-Identifier: MIT */
/*
 * charge.c - a worker is gone: what its tasks get.  Those that had ended were collected before; what
 * it had not claimed goes back; the claimed rest is charged with the death.  If it has overwritten
 * its page, the rest is what it can have claimed, or nothing if it has never claimed.   [C2] [C3]
 */
#include <signal.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/duration.h"
#include "base/refused.h"
#include "base/signame.h"
#include "base/ways.h"
#include "host/dispatcher.h"
#include "host/event.h"
#include "host/shadow.h"
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

/* What the death is to this task: its outcome, where there will be no other attempt.  One of a batch that
 * was killed for another's limit or cancel has lost its worker, and that is all. */
static uint32_t verdict(const struct gpi_slot *s, uint32_t cell, uint32_t *ret_phase)
{
    bool asked = s->cancelled >> cell & 1, ladder = s->kill == GPI_KILL_HARD ||
                                                    s->kill == GPI_KILL_CANCEL ||
                                                    s->kill == GPI_KILL_STOPPED;

    *ret_phase = GPUD_PHASE_HARD;
    if (ladder && s->late >> cell & 1)
        return GPUD_OUTCOME_TIMEOUT;
    if ((ladder && asked) || s->kill == GPI_KILL_CLOSE)
        return GPUD_OUTCOME_CANCELLED;
    *ret_phase = GPUD_PHASE_PROCESS;
    return asked ? GPUD_OUTCOME_CANCELLED : GPUD_OUTCOME_CRASHED; /* asked before it died */
}

/* Whether this charge is for a broken protocol.  Another attempt may follow the first of these. */
static bool spoils(const struct gpi_slot *s, uint32_t outcome)
{
    return s->kill == GPI_KILL_PROTOCOL && outcome == GPUD_OUTCOME_CRASHED;
}

static int32_t code_of(const struct gpi_slot *s, uint32_t outcome)
{
    if (outcome == GPUD_OUTCOME_TIMEOUT)
        return GPUD_ETIMEOUT;
    if (outcome == GPUD_OUTCOME_CANCELLED)
        return s->kill == GPI_KILL_CLOSE ? GPUD_ETIMEOUT : GPUD_ECANCELLED;
    if (s->kill == GPI_KILL_DEVICE)
        return GPUD_EDEVICE;
    return spoils(s, outcome) ? GPUD_EPROTOCOL : GPUD_ECRASHED;
}

/* The task has exceeded its limit, or its stall limit, and the grace after it. */
static void describe_kill(const gpud_dispatcher *d, const struct gpi_slot *s,
                          const struct gpi_task *t, uint32_t cell, bool with_exit, const char *exit,
                          char text[GPI_WORDS_SIZE])
{
    char limit[96], grace[GPI_DURATION_SIZE];

    if (s->kill == GPI_KILL_STOPPED) {
        gpi_words_stopped(d, limit, sizeof limit);
        (void)snprintf(text, GPI_WORDS_SIZE, "%s%s%s", limit, with_exit ? ", " : "",
                       with_exit ? exit : "");
        return;
    }
    gpi_words_limit(d, t, gpi_slot_stalled(d, s, cell), limit, sizeof limit);
    (void)snprintf(text, GPI_WORDS_SIZE, "%s and the grace of %s (grace), %s", limit,
                   gpi_duration_text(grace, d->set.grace), exit);
}

/* The dispatcher's close limit has passed. */
static void describe_close(const gpud_dispatcher *d, const struct gpi_slot *s, const char *exit,
                           char text[GPI_WORDS_SIZE])
{
    char limit[96];

    gpi_close_words(d, limit, sizeof limit);
    (void)snprintf(text, GPI_WORDS_SIZE, "killed at the %s%s%s", limit, s->denied ? ", " : "",
                   s->denied ? exit : "");
}

static void add_words(const gpud_dispatcher *d, const struct gpi_slot *s, struct gpi_task *t,
                      uint32_t cell, uint32_t outcome, uint32_t kind, int32_t status, bool again)
{
    const bool for_another = s->kill == GPI_KILL_HARD || s->kill == GPI_KILL_CANCEL;
    struct gpi_detail *det = gpi_output_detail(s, t, cell, outcome);
    const char *hint = again ? "" : gpi_exit_hint(s, kind, status); /* once, at the end */
    char exit[GPI_HOW_SIZE];

    if (!det)
        return;
    det->exit_kind = kind;
    det->exit_status = status;
    gpi_describe_exit(d, s, exit, sizeof exit, kind, status);
    if (outcome == GPUD_OUTCOME_TIMEOUT)
        describe_kill(d, s, t, cell, kind == GPUD_EXIT_NONE || s->denied, exit, det->text);
    else if (outcome == GPUD_OUTCOME_CANCELLED && s->kill == GPI_KILL_CLOSE)
        describe_close(d, s, exit, det->text);
    else if (outcome == GPUD_OUTCOME_CANCELLED)
        (void)snprintf(det->text, sizeof det->text, "cancelled, %s%s", exit, hint);
    else if (s->kill == GPI_KILL_DEVICE)
        (void)snprintf(det->text, sizeof det->text, "%s", s->blame);
    else
        (void)snprintf(det->text, sizeof det->text, "%s%s%s%s",
                       spoils(s, outcome) ? "broke the protocol, " : "", exit,
                       for_another ? " for another task of its batch" : "", hint);
    gpi_attempt_words(t, det->text, again);
}

/* One of them may be the one that overwrote the page: until all have ended, no worker gets more
 * than one task. */
static void be_wary(gpud_dispatcher *d, struct gpi_task *t)
{
    d->wary += !t->wary;
    t->wary = 1;
}

/* The task that was claimed and had not ended is charged with the death. */
static void charge(gpud_dispatcher *d, struct gpi_slot *s, struct gpi_task *t, uint32_t cell, uint32_t kind, int32_t status, uint32_t batch)
{
    uint64_t started = atomic_load(&s->ch.page->cell[cell].started_at);
    uint32_t phase, outcome = verdict(s, cell, &phase);
    bool again;

    t->attempts++;
    t->started_at = started < t->sent_at || started > d->now ? t->sent_at : started;
    t->ended_at = d->now;
    if (d->set.start_events)
        gpi_start_seen(d, s, cell, t->attempts, t->started_at);
    s->work_time += (d->now - t->started_at) / batch;
    t->alone |= batch > 1; /* one by one from now on: so the one that kills its worker is found */
    if (!d->first_start || t->started_at < d->first_start)
        d->first_start = t->started_at;
    /* One that survived SIGKILL may still run; one that was to be cancelled is not wanted again. */
    again = kind != GPUD_EXIT_NONE && !(s->told >> cell & 1) &&
            !(t->spoilt && spoils(s, outcome)) &&
            gpi_attempt_again(d, t, outcome, s->kill == GPI_KILL_DEVICE);
    if (spoils(s, outcome)) {
        t->spoilt = 1;
        be_wary(d, t);
    }
    add_words(d, s, t, cell, outcome, kind, status, again);
    if (again)
        gpi_attempt_retry(d, t);
    else
        gpi_task_end(d, t, outcome, kind == GPUD_EXIT_NONE ? GPUD_PHASE_KILL : phase, code_of(s, outcome));
}

/* Not begun, whatever its claim word says. */
static void give_back(gpud_dispatcher *d, struct gpi_slot *s, struct gpi_task *t, uint32_t cell)
{
    d->count.returned++;
    if (s->told >> cell & 1) {
        gpi_task_end(d, t, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_QUEUED, GPUD_ECANCELLED);
        return;
    }
    if (t->expires) /* taken from the heap, if it was believed to run then */
        gpi_expiry_set(d, t, d->expires[gpi_task_index(d, t)]);
    be_wary(d, t);
    gpi_task_requeue(d, t);
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

/* Recalls, and returns the cells to be charged, of those that could not be recalled. */
static uint64_t accused(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t begun = gpi_slot_begun(d, s); /* first: a task before it that goes back says more */
    uint64_t believed;

    d->count.returned += gpi_recall_all(d, s); /* not claimed: back to their places, attempts unchanged */
    believed = claimed(s);
    begun |= gpi_slot_begun(d, s) & believed; /* one that survives has claimed until just now */
    begun &= s->inflight;
    if (s->inflight != (begun & believed) && s->kill == GPI_KILL_NO) {
        d->count.protocol_errors++; /* its page is spoilt, and it died before that was seen */
        s->kill = GPI_KILL_PROTOCOL;
    }
    return s->claimed || s->served || believed ? begun : 0;
}

uint32_t gpi_settle_tasks(gpud_dispatcher *d, struct gpi_slot *s, uint32_t kind, int32_t status)
{
    const uint64_t begun = accused(d, s);
    uint32_t charged = 0, batch = 0;

    gpi_shadow_died(d, s, begun, kind);

    for (uint64_t left = begun; left; left &= left - 1)
        batch++;
    for (uint64_t left = s->inflight; left; left &= left - 1) {
        uint32_t cell = gpi_lowest_bit(left);
        struct gpi_task *t = &d->task[s->cell_task[cell]];
        s->inflight &= ~(1ull << cell);
        s->sent--;
        if (begun >> cell & 1) {
            charge(d, s, t, cell, kind, status, batch);
            charged++;
        } else {
            give_back(d, s, t, cell);
        }
    }
    return charged;
}
