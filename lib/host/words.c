/* SPDX-License-Identifier: MIT */
/*
 * words.c - texts of outcomes: the limit that was exceeded, with its number and the option that
 * changes it, and the value that a callback returned.  What can wait is written at the delivery.
 */
#include "base/duration.h"
#include "host/dispatcher.h"
#include "host/task.h"

#include <stdio.h>

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

/* Not EINVAL: -1 is what any function of C returns. */
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
