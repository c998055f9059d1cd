/* SPDX-License-Identifier: MIT */
/*
 * death.c - a worker is gone, or could not be made, or survives SIGKILL: what is told, and what its
 * slot does next.                                                             [C8] [C9] [C10]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/refused.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"
#include "sched/restart.h"
#include "wire/control.h"

#define WELL_NS GPI_S /* a worker that lived so long was well, however short backoff_cap is */

/* ---- what it died of ---- */

/* A sticky CUDA error, as the worker told before it left: the next one there passes a canary first. */
static bool died_of_fault(gpud_dispatcher *d, const struct gpi_slot *s)
{
    char text[GPI_FAIL_TEXT_SIZE], why[GPI_FAIL_TEXT_SIZE + 64];

    if (!s->watched || !atomic_load(&s->ch.page->fault))
        return false;
    gpi_page_text(text, s->ch.page->fault_text, sizeof text);
    snprintf(why, sizeof why, "a worker on it reported CUDA error %u (%s)",
             atomic_load(&s->ch.page->fault), text);
    d->count.cuda_faults++;
    for (uint32_t i = 0; i < s->n_devices; i++)
        gpi_judge_suspect(d, s->devices[i], why);
    return true;
}

/* What is told when the slot is given up, and to a thread that waits for it. */
static void note_failure(struct gpi_slot *s, const char *text)
{
    if (text != s->last_failure)
        snprintf(s->last_failure, sizeof s->last_failure, "%.*s", (int)sizeof s->last_failure - 1,
                 text);
}

/* C9: so many died in a row there, while others did well, that the device may be why. */
static uint64_t task_death(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t wait = gpi_restart_task_death(&s->restart, &d->set.restart, d->count.success);
    char why[96];

    snprintf(why, sizeof why, "%u workers in a row died in a task, while other slots succeeded",
             s->restart.task_deaths);
    if (wait)
        note_failure(s, why);
    for (uint32_t i = 0; wait && s->watched && i < s->n_devices; i++)
        gpi_judge_suspect(d, s->devices[i], why);
    return wait;
}

const char *gpi_why_no_worker(const gpud_dispatcher *d)
{
    return d->why_no_worker ? d->why_no_worker->text : GPI_NO_WORKER;
}

/* Puts the words of an earlier time in front again.  False when there were none like these. */
static bool find_reason(gpud_dispatcher *d, const char *text)
{
    for (struct gpi_reason **at = &d->why_no_worker, *r; (r = *at) != NULL; at = &r->before) {
        if (strcmp(text, r->text) != 0)
            continue;
        *at = r->before;
        r->before = d->why_no_worker;
        d->why_no_worker = r;
        return true;
    }
    return false;
}

/* The words of an earlier time are still pointed to, so new ones are put before them. */
static void note_reason(gpud_dispatcher *d, const struct gpi_slot *s, const char *why)
{
    struct gpi_reason r = { .before = d->why_no_worker }, *copy;

    uint32_t slots = 0, failed = 0;
    char all[48] = "every slot was removed";

    for (uint32_t i = 0; i < d->n_slots; i++) {
        slots += !d->slot[i].removed;
        failed += !d->slot[i].removed && d->slot[i].state == GPUD_SLOT_FAILED;
    }
    if (slots == 1)
        snprintf(all, sizeof all, "the only slot %s", failed ? "has failed" : "has no worker");
    else if (slots && failed == slots)
        snprintf(all, sizeof all, "all %u slots have failed", slots);
    else if (slots)
        snprintf(all, sizeof all, "none of the %u slots has a worker", slots);
    snprintf(r.text, sizeof r.text, "%s; slot %u: %s", all, s->index, why);
    if (find_reason(d, r.text))
        return;
    copy = malloc(sizeof *copy);
    if (!copy)
        return;
    *copy = r;
    d->why_no_worker = copy;
}

void gpi_slot_useless(gpud_dispatcher *d, struct gpi_slot *s, enum gpud_slot_state state, const char *why)
{
    gpi_slot_clear_times(s);
    note_failure(s, why);
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

bool gpi_nothing_to_come(const gpud_dispatcher *d)
{
    if (!d->closing || d->finish < GPUD_FINISH_RUNNING)
        return d->closing && !d->feeding && d->unended == 0;
    return d->queue.count == 0; /* what a source still brings does not start */
}

static void log_given_up(gpud_dispatcher *d, const struct gpi_slot *s)
{
    if (s->restart.slot_failures < d->set.restart.failures_in_a_row) /* a start would be in vain */
        gpi_log(d, GPUD_LEVEL_ERROR, s->index,
                "slot %u starts no worker any more: %.100s; other slots run its tasks", s->index,
                s->last_failure);
    else
        gpi_log(d, GPUD_LEVEL_ERROR, s->index,
                "slot %u failed %u times in a row; it starts no worker any more, other slots run "
                "its tasks (failures_in_a_row)",
                s->index, s->restart.slot_failures);
}

static void start_later(gpud_dispatcher *d, struct gpi_slot *s, uint64_t wait)
{
    if (gpi_nothing_to_come(d)) {
        gpi_slot_clear_times(s);
        gpi_slot_enter(d, s, GPUD_SLOT_STOPPED);
    } else if (wait == GPI_RESTART_GIVE_UP) {
        log_given_up(d, s);
        s->parked = false; /* no device brings it back */
        gpi_slot_useless(d, s, GPUD_SLOT_FAILED, s->last_failure);
    } else if (wait == 0 || gpi_slot_barred(d, s)) {
        gpi_slot_start(d, s); /* or parks: a device that is drained waits for no backoff */
    } else {
        gpi_slot_clear_times(s);
        gpi_slot_enter(d, s, GPUD_SLOT_BACKOFF);
        s->state_deadline = gpi_time_add(d->now, wait);
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
    const uint32_t kept = gpi_output_kept(s);
    char how[GPI_HOW_SIZE], setup[GPI_HOW_SIZE + 48];
    const char *hint = gpi_exit_hint(s, kind, status);

    gpi_describe_exit(d, s, how, sizeof how, kind, status);
    snprintf(setup, sizeof setup, "setup %s%s", how, hint);
    if (event == GPUD_EVENT_SETUP_FAILURE)
        note_failure(s, text && *text ? text : setup);
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
        snprintf(n->text, sizeof n->text, "%s%s", how, hint);
    if (kept && (n->output = malloc(kept))) {
        gpi_output_copy(s, n->output, kept);
        n->output_size = kept;
    }
    gpi_note_push(d, n);
}

static void slot_failure(gpud_dispatcher *d, struct gpi_slot *s)
{
    start_later(d, s, gpi_restart_slot_failure(&s->restart, &d->set.restart));
}

static void setup_died(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_kill why, uint32_t kind, int32_t status)
{
    char text[GPI_FAIL_TEXT_SIZE], how[GPI_HOW_SIZE];
    int32_t code = s->ch.page->setup_code;

    gpi_page_text(text, s->ch.page->setup_text, sizeof text);
    if (why == GPI_KILL_CLOSE || why == GPI_KILL_DEVICE) {
        gpi_canary_over(d, s);
        start_later(d, s, 0);
        return;
    }
    if (gpi_canary_died(d, s, why == GPI_KILL_SETUP, kind, status)) {
        start_later(d, s, 0);
        return;
    }
    if (why == GPI_KILL_STOPPED) {
        code = GPUD_ETIMEOUT;
        gpi_words_stopped(d, text, sizeof text);
    } else if (!s->answered && atomic_load(&s->ch.page->setup_done) == 0 && kind != GPUD_EXIT_LOST) {
        code = gpi_start_verdict(d, s, why, kind, status, text, sizeof text);
    } else if (why == GPI_KILL_SETUP) {
        code = GPUD_ETIMEOUT;
        snprintf(text, sizeof text, "setup exceeded its time limit of %s",
                 gpi_start_limit_text(d, s, how, sizeof how));
    } else if (atomic_load(&s->ch.page->setup_done) != 2) {
        code = GPUD_ECRASHED;
        text[0] = '\0';
    } else if (!*text) {
        gpi_words_value("setup returned", code, text, sizeof text);
    }
    d->count.setup_failures++;
    tell_failure(d, s, GPUD_EVENT_SETUP_FAILURE, code, kind, status, text);
    slot_failure(d, s);
}

/* Its keeper may be lost without having told how it left. */
static bool left_well(const struct gpi_slot *s, uint32_t kind, int32_t status)
{
    return (kind == GPUD_EXIT_CODE && status == 0) ||
           (kind == GPUD_EXIT_LOST && atomic_load(&s->ch.page->cleanup_done));
}

static void cleanup_ended(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_kill why, uint32_t kind, int32_t status)
{
    char text[128], limit[96], time[GPI_DURATION_SIZE];

    if (why == GPI_KILL_DEVICE) {
        start_later(d, s, 0);
        return;
    }
    if (why == GPI_KILL_CLEANUP || why == GPI_KILL_STOPPED ||
        (why == GPI_KILL_NO && !left_well(s, kind, status))) {
        d->count.cleanup_failures++;
        gpi_close_words(d, limit, sizeof limit);
        if (why == GPI_KILL_STOPPED)
            gpi_words_stopped(d, text, sizeof text);
        else if (d->close_at <= d->now)
            snprintf(text, sizeof text, "cleanup was killed at the %s", limit);
        else
            snprintf(text, sizeof text, "cleanup exceeded its time limit of %s (cleanup_limit)",
                     gpi_duration_text(time, d->set.cleanup_limit));
        tell_failure(d, s, GPUD_EVENT_CLEANUP_FAILURE,
                     why == GPI_KILL_NO ? GPUD_ECRASHED : GPUD_ETIMEOUT, kind, status,
                     why == GPI_KILL_NO ? NULL : text);
    }
    start_later(d, s, 0);
}

static void died_between_tasks(gpud_dispatcher *d, struct gpi_slot *s, bool retired, uint32_t kind, int32_t status)
{
    const char *hint = gpi_exit_hint(s, kind, status);
    char how[GPI_HOW_SIZE], words[GPI_HOW_SIZE + 64];

    gpi_describe_exit(d, s, how, sizeof how, kind, status);
    gpi_log(d, GPUD_LEVEL_WARNING, s->index,
            "worker %u of slot %u: %s between tasks%s; the slot waits before the next start "
            "(backoff)",
            s->dead, s->index, how, hint);
    if (retired)
        snprintf(words, sizeof words, "broke the protocol between tasks: %s", s->blame);
    else
        snprintf(words, sizeof words, "%s between tasks%s", how, hint);
    note_failure(s, words);
    slot_failure(d, s);
}

static void forget_worker(struct gpi_slot *s)
{
    s->started = s->sweeping = s->still = s->ended = false;
    s->kill = GPI_KILL_NO;
    s->dead = (uint32_t)s->pid;
    s->pid = 0;
    s->progress = 0;
    s->progress_text[0] = '\0';
}

void gpi_slot_died(gpud_dispatcher *d, struct gpi_slot *s, uint32_t kind, int32_t status)
{
    enum gpud_slot_state was;
    uint64_t worked = s->setup_time && d->now > s->started_at ? d->now - s->started_at : 0;
    enum gpi_kill why = s->kill;
    uint64_t granules;
    uint32_t charged;
    bool fault;

    s->killed = why != GPI_KILL_NO;
    gpi_drain(d, s);
    was = s->state;
    charged = gpi_settle_tasks(d, s, kind, status);
    granules = gpi_results_settle(d, s);
    gpi_slot_stays(d, s);
    gpi_drive_close(d, &s->ch.worker);
    forget_worker(s);
    if (why == GPI_KILL_NO && was != GPUD_SLOT_DRAINING)
        d->count.deaths++;
    d->count.hard_kills += why == GPI_KILL_HARD || why == GPI_KILL_STOPPED; /* not when it is ordered: the keeper may spare it */
    if (worked >= d->set.restart.cap && worked >= WELL_NS)
        s->restart.slot_failures = 0; /* it was well for long */
    if (why != GPI_KILL_NO)
        gpi_judge_killed(d, s);
    gpi_vacancy_begin(d, s);
    fault = died_of_fault(d, s);
    if (was == GPUD_SLOT_STARTING)
        setup_died(d, s, why, kind, status);
    else if (was == GPUD_SLOT_DRAINING)
        cleanup_ended(d, s, why, kind, status);
    else if (why == GPI_KILL_HARD || why == GPI_KILL_CANCEL || why == GPI_KILL_CLOSE ||
             why == GPI_KILL_DEVICE || why == GPI_KILL_STOPPED)
        start_later(d, s, 0);
    else if (charged)
        start_later(d, s, task_death(d, s));
    else if (fault)
        start_later(d, s, 0);
    else
        died_between_tasks(d, s, why == GPI_KILL_PROTOCOL, kind, status);
    gpi_slot_turns(d);
    gpi_results_trim(d, s, granules); /* calls on files, while the next worker is being born */
}

/* No keeper, or no worker, could be made. */
void gpi_slot_unmade(gpud_dispatcher *d, struct gpi_slot *s, const char *what, int sys_errno,
                     uint32_t call)
{
    char text[GPI_FAIL_TEXT_SIZE], why[GPI_REFUSAL_SIZE];

    gpi_slot_stays(d, s);
    s->started = s->still = s->ended = false;
    s->kill = GPI_KILL_NO;
    gpi_canary_over(d, s);
    snprintf(text, sizeof text, "%s%s%s", what, sys_errno > 0 ? ": " : "",
             sys_errno > 0 ? gpi_refusal_text(why, call, sys_errno) : "");
    d->count.setup_failures++;
    tell_failure(d, s, GPUD_EVENT_SETUP_FAILURE, sys_errno < 0 ? GPUD_ESPAWNER : GPUD_ESYSTEM, GPUD_EXIT_NONE, 0, text);
    if (sys_errno < 0)
        start_later(d, s, GPI_RESTART_GIVE_UP); /* nothing will bring it back */
    else
        slot_failure(d, s);
    gpi_slot_turns(d);
}

/* It survived SIGKILL: the slot is fenced for good, its task is told, the rest goes on. [C10] */
void gpi_slot_survived(gpud_dispatcher *d, struct gpi_slot *s)
{
    char time[GPI_DURATION_SIZE];

    gpi_slot_stays(d, s);
    gpi_log(d, GPUD_LEVEL_ERROR, s->index,
            "worker %d of slot %u still exists %s after SIGKILL; the host quarantines the slot "
            "(kill_limit)",
            s->pid, s->index, gpi_duration_text(time, gpi_kill_limit(d, s)));
    gpi_drain(d, s);
    (void)gpi_settle_tasks(d, s, GPUD_EXIT_NONE, 0);
    if (s->state == GPUD_SLOT_STARTING) {
        d->count.setup_failures++;
        tell_failure(d, s, GPUD_EVENT_SETUP_FAILURE, GPUD_EQUARANTINED, GPUD_EXIT_NONE, 0, NULL);
    }
    d->count.hard_kills += s->kill == GPI_KILL_HARD || s->kill == GPI_KILL_STOPPED;
    gpi_drive_close(d, &s->ch.worker);
    s->kill = GPI_KILL_NO;
    s->keeper_lost = s->sweeping = false;
    (void)gpi_channel_tell(s, GPI_CTL_KILL, true); /* a keeper that wakes late must not find a reason to spare it */
    s->incarnation++; /* fences what it may still say */
    s->survivor = true;
    gpi_canary_over(d, s);
    gpi_slot_useless(d, s, GPUD_SLOT_QUARANTINED, "its worker survived SIGKILL");
    for (uint32_t i = 0; s->watched && i < s->n_devices; i++)
        gpi_judge_quarantine(d, s->devices[i], "a worker on it survived SIGKILL");
    gpi_slot_turns(d);
}
