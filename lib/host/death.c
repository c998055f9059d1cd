/* SPDX-License-Identifier: MIT */
/*
 * death.c - reports workers that failed and slots that have none to the user, and faults that these
 * workers reveal to the health of their devices.                                    [C8] [C9] [C10]
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/duration.h"
#include "base/refused.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"

/* ---- texts that stay ---- */

static void log_given_up(gpud_dispatcher *d, const struct gpi_slot *s)
{
    const uint32_t failures = gpi_sched_failures(d->core, s->index),
                   most = gpi_slot_class(d, s)->set.restart.failures_in_a_row;

    if (d->set.pooled && failures >= most)
        gpi_log(d, GPUD_LEVEL_ERROR, s->index,
                "class %s failed %u times in a row; it starts no worker any more, until it is "
                "resumed (failures_in_a_row)",
                gpi_slot_class(d, s)->name, failures);
    else if (d->set.pooled) /* a start would fail again */
        gpi_log(d, GPUD_LEVEL_ERROR, s->index, "class %s starts no worker any more: %.100s",
                gpi_slot_class(d, s)->name, s->last_failure);
    else if (failures < most) /* a start would fail again */
        gpi_log(d, GPUD_LEVEL_ERROR, s->index,
                "slot %u starts no worker any more: %.100s; other slots run its tasks", s->index,
                s->last_failure);
    else
        gpi_log(d, GPUD_LEVEL_ERROR, s->index,
                "slot %u failed %u times in a row; it starts no worker any more, other slots run "
                "its tasks (failures_in_a_row)",
                s->index, failures);
}

/* ---- events ---- */

/* Adds an event about setup or cleanup, with the worker's last output. */
static void tell_failure(gpud_dispatcher *d, struct gpi_slot *s, uint32_t event, int32_t code,
                         uint32_t kind, int32_t status, const char *text)
{
    struct gpi_note *n = gpi_note_new(d, event, false);
    const uint32_t kept = gpi_output_kept(s);
    char how[GPI_HOW_SIZE], setup[GPI_HOW_SIZE + 48];
    const char *hint = gpi_exit_hint(s, kind, status);

    gpi_describe_exit(d, s, how, sizeof how, kind, status);
    snprintf(setup, sizeof setup, "setup %s%s", how, hint);
    if (event == GPUD_EVENT_SETUP_FAILURE) {
        gpi_slot_failure(s, text && *text ? text : setup);
        gpi_slot_class(d, s)->failures += s->canary != GPI_CANARY_ONLY;
    }
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

static void setup_failed(gpud_dispatcher *d, struct gpi_slot *s)
{
    const enum gpi_why why = (enum gpi_why)s->last.why;
    const uint32_t kind = s->last.kind;
    const int32_t status = s->last.status;
    char text[GPI_FAIL_TEXT_SIZE], how[GPI_HOW_SIZE];
    int32_t code = s->ch.page->setup_code;

    gpi_page_text(text, s->ch.page->setup_text, sizeof text);
    if (why == GPI_WHY_STOPPED) {
        code = GPUD_ETIMEOUT;
        gpi_words_stopped(d, s, text, sizeof text);
    } else if (!s->initialised && atomic_load(&s->ch.page->setup_done) == 0 &&
               kind != GPUD_EXIT_LOST) {
        code = gpi_start_verdict(d, s, why, kind, status, text, sizeof text);
    } else if (why == GPI_WHY_SETUP) {
        code = GPUD_ETIMEOUT;
        snprintf(text, sizeof text, "setup exceeded its time limit of %s",
                 gpi_start_limit_text(d, s, how, sizeof how));
    } else if (atomic_load(&s->ch.page->setup_done) != 2) {
        code = GPUD_ECRASHED;
        text[0] = '\0';
    } else if (!*text) {
        gpi_words_value("setup returned", code, text, sizeof text);
    }
    d->stats.count.setup_failures++;
    tell_failure(d, s, GPUD_EVENT_SETUP_FAILURE, code, kind, status, text);
}

/* If the host lost the keeper, the exit status is unknown, and the page decides. */
static bool left_well(const struct gpi_slot *s, uint32_t kind, int32_t status)
{
    return (kind == GPUD_EXIT_CODE && status == 0) ||
           (kind == GPUD_EXIT_LOST && atomic_load(&s->ch.page->cleanup_done));
}

static void cleanup_ended(gpud_dispatcher *d, struct gpi_slot *s)
{
    const enum gpi_why why = (enum gpi_why)s->last.why;
    char text[128], limit[96], time[GPI_DURATION_SIZE];

    if (why != GPI_WHY_CLEANUP && why != GPI_WHY_STOPPED &&
        (why != GPI_WHY_NO || left_well(s, s->last.kind, s->last.status)))
        return;
    d->stats.count.cleanup_failures++;
    gpi_close_words(d, limit, sizeof limit);
    if (why == GPI_WHY_STOPPED)
        gpi_words_stopped(d, s, text, sizeof text);
    else if (d->close.at <= d->now)
        snprintf(text, sizeof text, "cleanup was killed at the %s", limit);
    else
        snprintf(text, sizeof text, "cleanup exceeded its time limit of %s (cleanup_limit)",
                 gpi_duration_text(time, gpi_slot_class(d, s)->set.cleanup_limit));
    tell_failure(d, s, GPUD_EVENT_CLEANUP_FAILURE,
                 why == GPI_WHY_NO ? GPUD_ECRASHED : GPUD_ETIMEOUT, s->last.kind, s->last.status,
                 why == GPI_WHY_NO ? NULL : text);
}

static void died_between_tasks(gpud_dispatcher *d, struct gpi_slot *s)
{
    const char *hint = gpi_exit_hint(s, s->last.kind, s->last.status);
    char how[GPI_HOW_SIZE], words[GPI_HOW_SIZE + 64];

    gpi_describe_exit(d, s, how, sizeof how, s->last.kind, s->last.status);
    gpi_slot_class(d, s)->failures++;
    gpi_log(d, GPUD_LEVEL_WARNING, s->index,
            "worker %u of slot %u: %s between tasks%s; the slot waits before the next start "
            "(backoff)",
            s->dead, s->index, how, hint);
    if (s->last.why == GPI_WHY_PROTOCOL)
        snprintf(words, sizeof words, "broke the protocol between tasks: %s", s->blame);
    else
        snprintf(words, sizeof words, "%s between tasks%s", how, hint);
    gpi_slot_failure(s, words);
}

/* Its cleanup runs. */
static bool is_ending(const struct gpi_slot *s)
{
    return s->state == GPUD_SLOT_DRAINING || s->state == GPUD_SLOT_UNLOADING;
}

/* The first report of an exit, for any reason. */
static void died(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_why why)
{
    const uint64_t granules = gpi_results_settle(d, s);

    s->last.why = why;
    gpi_drive_close(d, &s->ch.worker);
    s->dead = (uint32_t)s->pid;
    s->pid = 0;
    s->ended = false;
    s->progress = 0;
    s->progress_text[0] = '\0';
    if (why == GPI_WHY_NO && !is_ending(s))
        d->stats.count.deaths++;
    /* Not when the core orders the kill: the keeper may spare the worker. */
    d->stats.count.hard_kills += why == GPI_WHY_LIMIT || why == GPI_WHY_STOPPED;
    if (is_ending(s))
        cleanup_ended(d, s);
    gpi_results_trim(d, s, granules);
}

/* The spawner made no keeper, or the keeper no worker. */
static void unmade(gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_unmade *u = &s->unmade;
    char text[GPI_FAIL_TEXT_SIZE], why[GPI_REFUSAL_SIZE];

    if (d->spawner.gone && !s->keeper_pid)
        gpi_slot_unmade(s, gpi_spawner_gone_text(d, text, sizeof text), -1, 0);
    snprintf(text, sizeof text, "%s%s%s", u->what, u->sys_errno > 0 ? ": " : "",
             u->sys_errno > 0 ? gpi_refusal_text(why, u->call, u->sys_errno) : "");
    d->stats.count.setup_failures++;
    tell_failure(d, s, GPUD_EVENT_SETUP_FAILURE, u->sys_errno < 0 ? GPUD_ESPAWNER : GPUD_ESYSTEM,
                 GPUD_EXIT_NONE, 0, text);
}

/* The worker survived SIGKILL, or no report proves its death.  [C10] */
static void survived(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_why why)
{
    char time[GPI_DURATION_SIZE];

    (void)gpi_duration_text(time, gpi_kill_limit(d, s));
    if (s->pid)
        gpi_log(d, GPUD_LEVEL_ERROR, s->index,
                "worker %d of slot %u still exists %s after SIGKILL; the host quarantines the slot "
                "(kill_limit)",
                s->pid, s->index, time);
    else
        gpi_log(d, GPUD_LEVEL_ERROR, s->index,
                "slot %u: no end of its last keeper is reported %s after its loss; the host "
                "quarantines the slot (kill_limit)",
                s->index, time);
    if (s->state == GPUD_SLOT_STARTING) {
        d->stats.count.setup_failures++;
        tell_failure(d, s, GPUD_EVENT_SETUP_FAILURE, GPUD_EQUARANTINED, GPUD_EXIT_NONE, 0, NULL);
    }
    d->stats.count.hard_kills += why == GPI_WHY_LIMIT || why == GPI_WHY_STOPPED;
    if (!d->set.pooled) /* else its end releases memory: gpi_on_worker_end */
        gpi_drive_close(d, &s->ch.worker);
    gpi_slot_failure(s, s->pid ? "its worker survived SIGKILL"
                               : "its last keeper is lost, and its end is not reported");
    s->ended = false;
}

static void renewed(gpud_dispatcher *d, const struct gpi_slot *s)
{
    gpi_log(d, GPUD_LEVEL_DEBUG, s->index,
            "slot %u: worker %d has ended %u tasks; the host replaces it (max_tasks_per_worker)",
            s->index, s->pid, gpi_sched_served(d->core, s->index));
}

void gpi_slot_note(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_sched_action *a)
{
    switch ((enum gpi_sched_note)a->how) {
    case GPI_NOTE_DIED:
        died(d, s, (enum gpi_why)a->what);
        break;
    case GPI_NOTE_SETUP_FAILED:
        setup_failed(d, s);
        break;
    case GPI_NOTE_UNMADE:
        unmade(d, s);
        break;
    case GPI_NOTE_DIED_IDLE:
        died_between_tasks(d, s);
        break;
    case GPI_NOTE_GIVEN_UP:
        log_given_up(d, s);
        break;
    case GPI_NOTE_SURVIVED:
        survived(d, s, (enum gpi_why)a->what);
        break;
    case GPI_NOTE_RENEWED:
        renewed(d, s);
        break;
    case GPI_NOTE_DRAINED:
    case GPI_NOTE_REMOVED:
        break; /* a fault of devices */
    }
}

/* ---- effects on its devices ---- */

/* The worker reported a sticky CUDA error before it exited: the next worker there first passes a
 * canary. */
static void judge_fault(gpud_dispatcher *d, const struct gpi_slot *s)
{
    char text[GPI_FAIL_TEXT_SIZE], why[GPI_FAIL_TEXT_SIZE + 64];

    gpi_page_text(text, s->ch.page->fault_text, sizeof text);
    snprintf(why, sizeof why, "a worker on it reported CUDA error %u (%s)",
             atomic_load(&s->ch.page->fault), text);
    d->stats.count.cuda_faults++;
    for (uint32_t i = 0; i < s->n_devices; i++)
        gpi_judge_suspect(d, s->devices[i], why);
}

/* C9: the device may be the cause, since N workers in a row died there while other slots
 * succeeded. */
static void judge_deaths(gpud_dispatcher *d, const struct gpi_slot *s)
{
    char why[96];

    snprintf(why, sizeof why, "%u workers in a row died in a task, while other slots succeeded",
             gpi_sched_task_deaths(d->core, s->index));
    for (uint32_t i = 0; i < s->n_devices; i++)
        gpi_judge_suspect(d, s->devices[i], why);
}

static void judge_survivor(gpud_dispatcher *d, const struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        gpi_judge_quarantine(d, s->devices[i], "a worker on it survived SIGKILL");
}

void gpi_slot_judge(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_judge how)
{
    switch (how) {
    case GPI_JUDGE_KILLED:
        gpi_judge_killed(d, s);
        break;
    case GPI_JUDGE_FAULT:
        judge_fault(d, s);
        break;
    case GPI_JUDGE_DEATHS:
        judge_deaths(d, s);
        break;
    case GPI_JUDGE_PASSED:
    case GPI_JUDGE_FAILED:
        gpi_canary_judge(d, s, how == GPI_JUDGE_PASSED);
        break;
    case GPI_JUDGE_SURVIVED:
        judge_survivor(d, s);
        break;
    }
}
