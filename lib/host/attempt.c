/* SPDX-License-Identifier: MIT */
/*
 * attempt.c - after an attempt that ended badly: the texts of all attempts of a task.          [C3]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/core.h"
#include "host/dispatcher.h"
#include "host/task.h"

#define HISTORY_MAX 16384u /* bytes of the texts of one task's attempts */

void gpi_attempt_retry(gpud_dispatcher *d, struct gpi_task *t)
{
    d->stats.count.retried++;
    t->ended_at = 0;
    t->expires = 0; /* the task has started in time */
    t->plain = GPI_PLAIN_NO;
    t->state = GPI_TASK_QUEUED;
}

void gpi_attempt_words(gpud_dispatcher *d, struct gpi_task *t, const char *how, bool again)
{
    struct gpi_detail *det = t->detail;
    size_t had, more;
    char *all;

    gpi_core_note(d, "task", gpi_task_index(d, t), "end", how);
    if (!det || (!again && !det->history))
        return; /* the only attempt: its own text is enough */
    had = det->history ? strlen(det->history) : 0;
    more = strlen(how) + sizeof "; attempt 255: ";
    if (had + more > HISTORY_MAX)
        return; /* the texts of the first attempts are enough */
    all = realloc(det->history, had + more);
    if (!all)
        return; /* the outcome stands without this text */
    snprintf(all + had, more, "%sattempt %u: %s", had ? "; " : "", t->attempts, how);
    det->history = all;
}

/* ---- words of one attempt ---- */

void gpi_task_give_detail(struct gpi_task *t, struct gpi_detail *det)
{
    if (t->detail)
        det->history = t->detail->history;
    t->plain = GPI_PLAIN_NO;
    free(t->detail);
    t->detail = det;
}

struct gpi_detail *gpi_task_detail(struct gpi_task *t, uint32_t output_size)
{
    struct gpi_detail *det = malloc(sizeof *det + output_size);

    if (!det)
        return t->detail; /* the outcome stands without its text */
    memset(det, 0, sizeof *det);
    det->output_size = output_size;
    gpi_task_give_detail(t, det);
    return det;
}

void gpi_detail_free(struct gpi_task *t)
{
    struct gpi_detail *det = t->detail;

    if (!det)
        return;
    t->detail = NULL; /* first: a forked child would free it as well */
    free(det->history);
    free(det);
}
