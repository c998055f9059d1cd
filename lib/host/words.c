/* SPDX-License-Identifier: MIT */
/*
 * words.c - texts of outcomes: the limit that was exceeded, with its number and the option that changes
 * it.
 */
#include "base/duration.h"
#include "host/dispatcher.h"
#include "host/task.h"

#include <stdio.h>

void gpi_words_limit(const gpud_dispatcher *d, const struct gpi_task *t, bool stalled, char *to, size_t size)
{
    char time[GPI_DURATION_SIZE];

    if (stalled)
        (void)snprintf(to, size, "no progress for %s (%s)", gpi_duration_text(time, d->stall_limit[gpi_task_index(d, t)]),
                       t->own & GPI_OWN_STALL_LIMIT ? "stall_limit of the task" : "stall_limit");
    else
        (void)snprintf(to, size, "exceeded its time limit of %s (%s)", gpi_duration_text(time, t->limit),
                       t->own & GPI_OWN_LIMIT ? "limit of the task" : "task_limit");
}

static void describe_expiry(const struct gpi_task *t, char *to, size_t size)
{
    char time[GPI_DURATION_SIZE];

    (void)snprintf(to, size, "not started within %s (%s)", gpi_duration_text(time, t->expired_after),
                   t->own & GPI_OWN_EXPIRES ? "expires of the task" : "expires");
}

void gpi_words_complete(struct gpi_task *t)
{
    const bool expired = t->outcome == GPUD_OUTCOME_TIMEOUT && t->phase == GPUD_PHASE_QUEUED;
    struct gpi_detail *det = expired && !t->detail ? gpi_task_detail(t, 0) : NULL;

    if (det)
        describe_expiry(t, det->text, sizeof det->text);
}
