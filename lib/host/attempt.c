/* SPDX-License-Identifier: MIT */
/*
 * attempt.c - an attempt has ended badly: whether the task gets another one, and the words that all
 * its attempts leave.                                                                        [C3]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "host/dispatcher.h"
#include "host/task.h"
#include "sched/retry.h"

#define HISTORY_MAX 16384u /* bytes of words that the attempts of one task may leave */

bool gpi_attempt_again(const gpud_dispatcher *d, const struct gpi_task *t, uint32_t outcome, bool device)
{
    if (d->closing && d->finish >= GPUD_FINISH_RUNNING)
        return false; /* another attempt would be a new start: how this one ended stands */
    if (device && outcome == GPUD_OUTCOME_CRASHED)
        return gpi_retry_after_device(t->causes, t->attempts, t->max_attempts);
    return gpi_retry_allowed(t->causes, outcome, t->attempts, t->max_attempts);
}

void gpi_attempt_retry(gpud_dispatcher *d, struct gpi_task *t)
{
    uint64_t wait = gpi_retry_wait(&d->set.retry, t->attempts), until = gpi_time_add(t->ended_at, wait);

    d->count.retried++;
    t->ended_at = 0;
    gpi_expiry_clear(d, t); /* it has started in time */
    if (until > d->now && wait)
        gpi_defer(d, t, until);
    else
        gpi_task_requeue(d, t);
}

void gpi_attempt_words(struct gpi_task *t, const char *how, bool again)
{
    struct gpi_detail *det = t->detail;
    size_t had, more;
    char *all;

    if (!det || (!again && !det->history))
        return; /* the only attempt: its own words are enough */
    had = det->history ? strlen(det->history) : 0;
    more = strlen(how) + sizeof "; attempt 255: ";
    if (had + more > HISTORY_MAX)
        return; /* what the first ones left tells enough */
    all = realloc(det->history, had + more);
    if (!all)
        return; /* the outcome stands without these words */
    snprintf(all + had, more, "%sattempt %u: %s", had ? "; " : "", t->attempts, how);
    det->history = all;
}

/* ---- words of one attempt ---- */

struct gpi_detail *gpi_task_detail(struct gpi_task *t, uint32_t output_size)
{
    struct gpi_detail *old = t->detail, *det = malloc(sizeof *det + output_size);

    if (!det)
        return old; /* the outcome stands without its words */
    memset(det, 0, sizeof *det);
    if (old)
        det->history = old->history;
    det->output_size = output_size;
    free(old);
    t->detail = det;
    return det;
}

void gpi_detail_free(struct gpi_task *t)
{
    if (!t->detail)
        return;
    free(t->detail->history);
    free(t->detail);
    t->detail = NULL;
}
