/* SPDX-License-Identifier: MIT */
/*
 * texts.c - texts about ends and their causes: a limit with its number and the option that changes
 * it, the value that a callback returned, the exit of a worker.  Texts that can wait are written at
 * the delivery of an outcome.
 */
#include <signal.h>
#include <stdio.h>

#include "base/duration.h"
#include "base/refused.h"
#include "base/signame.h"
#include "base/ways.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/slot.h"
#include "host/task.h"

void gpi_words_limit(const gpud_dispatcher *d, const struct gpi_task *t, bool stalled, char *to,
                     size_t size)
{
    char time[GPI_DURATION_SIZE];

    if (stalled)
        (void)snprintf(to, size, "no progress for %s (%s)",
                       gpi_duration_text(time, d->stall_limit[gpi_task_index(d, t)]),
                       t->own & GPI_OWN_STALL_LIMIT ? "stall_limit of the task" : "stall_limit");
    else
        (void)snprintf(to, size, "exceeded its time limit of %s (%s)",
                       gpi_duration_text(time, t->limit),
                       t->own & GPI_OWN_LIMIT ? "limit of the task" : "task_limit");
}

static void describe_expiry(const gpud_dispatcher *d, const struct gpi_task *t, char *to,
                            size_t size)
{
    char time[GPI_DURATION_SIZE];

    (void)snprintf(to, size, "not started within %s (%s)",
                   gpi_duration_text(time, d->expires[gpi_task_index(d, t)]),
                   t->own & GPI_OWN_EXPIRES ? "expires of the task" : "expires");
}

/* Not EINVAL: any C function may return -1. */
static bool is_code_of_ours(int32_t code)
{
    return code < GPUD_EINVAL && gpud_error_name(code)[0] != '?';
}

void gpi_words_value(const char *how, int32_t code, char *to, size_t size)
{
    if (is_code_of_ours(code))
        (void)snprintf(to, size, "%s: %s", gpud_error_name(code), gpud_error_text(code));
    else
        (void)snprintf(to, size, "%s %d", how, code);
}

static bool has_words(const struct gpi_task *t)
{
    return t->detail && (t->detail->history || *t->detail->text);
}

void gpi_words_complete(const gpud_dispatcher *d, struct gpi_task *t)
{
    const bool expired = t->outcome == GPUD_OUTCOME_TIMEOUT && t->phase == GPUD_PHASE_QUEUED;
    const char *how = t->detail ? "failed with" : "process returned"; /* gpud_task_fail, no text */
    struct gpi_detail *det;

    if ((!expired && t->outcome != GPUD_OUTCOME_ERROR) || has_words(t))
        return;
    det = gpi_task_detail(t, 0);
    if (!det)
        return;
    if (expired)
        describe_expiry(d, t, det->text, sizeof det->text);
    else
        gpi_words_value(how, t->code, det->text, sizeof det->text);
}

/* Writes the calls with which its keeper could not kill the worker, and why each failed. */
void gpi_describe_denied(const struct gpi_slot *s, char to[GPI_HOW_SIZE])
{
    char buffer[96];

    (void)snprintf(to, GPI_HOW_SIZE, "pidfd_send_signal%s: %.60s",
                   s->denied == GPI_WAYS ? ", kill" : "",
                   gpi_errno_text(s->denied_errno, buffer, sizeof buffer));
}

void gpi_describe_exit(const gpud_dispatcher *d, const struct gpi_slot *s, char *to, size_t size,
                       uint32_t kind, int32_t status)
{
    const bool last_way = s->denied == GPI_WAYS; /* the keeper exited, so that the worker dies */
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
    gpi_describe_denied(s, denied);
    (void)snprintf(to + n, size - (size_t)n, "%s (%s)", last_way ? "" : " by kill", denied);
}

const char *gpi_exit_hint(const struct gpi_slot *s, uint32_t kind, int32_t status)
{
    const bool foreign = kind == GPUD_EXIT_SIGNAL && status == SIGKILL && !s->killed;

    return foreign ? "; out of memory? see the kernel log" : "";
}

void gpi_words_stopped(const gpud_dispatcher *d, const struct gpi_slot *s, char *to, size_t size)
{
    char time[GPI_DURATION_SIZE];

    (void)snprintf(to, size, "stopped for %s (stop_limit)",
                   gpi_duration_text(time, gpi_slot_class(d, s)->set.stop_limit));
}

void gpi_close_words(const gpud_dispatcher *d, char *to, size_t size)
{
    char limit[GPI_DURATION_SIZE];

    (void)snprintf(to, size, "close limit of %s (%s)", gpi_duration_text(limit, d->close.limit),
                   d->close.name ? d->close.name : "");
}

const char *gpi_spawner_gone_text(const gpud_dispatcher *d, char *to, size_t size)
{
    char why[GPI_REFUSAL_SIZE];

    if (d->spawner.error)
        snprintf(to, size, "the spawner is gone (%s)",
                 gpi_refusal_text(why, d->spawner.call, d->spawner.error));
    else
        snprintf(to, size, "the spawner is gone");
    return to;
}
