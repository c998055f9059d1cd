/* SPDX-License-Identifier: MIT */
/* refill.c - after a start: the history before it, from the rows of the store. */
#include <stdlib.h>
#include <string.h>

#include "queue/agent/keep.h"
#include "view/night/part.h"

bool gpq_now_goes_on(const struct gpq_agent *a)
{
    return a->now && !a->now->filled && !a->starts_wait;
}

/* ---- Time left ---- */

/* Of a batch, the ends that left.h keeps. */
static int by_time(const void *left, const void *right)
{
    const struct gpq_report *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return (a->kind == GPQ_NOW_LEFT_START) - (b->kind == GPQ_NOW_LEFT_START);
}

/* The newest attempts of a batch; rows are in the order of their starts. */
static void replay(struct gpq_now *n, const struct gpv_night *past, const struct gpq_kept_batch *b)
{
    struct gpq_report *list = calloc(2 * GPV_LEFT_RUNS, sizeof(*list));
    size_t count = 0;
    for (size_t i = past->attempts.n; list && i > 0 && count + 2 <= 2 * GPV_LEFT_RUNS; i--) {
        const struct gpv_attempt *at = &past->attempts.row[i - 1];
        if (GPV_BATCH_OF(at->task) != b->row.id || at->number == 0)
            continue;
        list[count++] = (struct gpq_report){ .kind = GPQ_NOW_LEFT_START,
                                             .task = at->task,
                                             .time = at->started };
        if (at->ended != 0)
            list[count++] = (struct gpq_report){ .kind = GPQ_NOW_LEFT_END,
                                                 .task = at->task,
                                                 .time = at->ended,
                                                 .started = at->started };
    }
    if (count > 1)
        qsort(list, count, sizeof(*list), by_time);
    for (size_t i = 0; i < count; i++)
        gpq_now_apply(n, &list[i]);
    free(list);
}

/* ---- Rows ---- */

static void see_attempt(struct gpq_now *n, const struct gpv_night *past,
                        const struct gpv_attempt *at)
{
    struct gpq_ended end = gpq_now_ended(past, at);
    struct gpq_kept_batch *b = gpq_now_batch(n, GPV_BATCH_OF(at->task));
    uint32_t known = 0;
    while (known < end.n && end.gpu[known] < n->gpus.n) /* others are gone */
        known++;
    end.n = known;
    for (uint32_t i = 0; at->number != 0 && i < end.n; i++) {
        struct gpq_kept_gpu *g = &n->gpus.row[end.gpu[i]];
        gpq_now_note_busy(n, end.gpu[i], at->started, at->ended);
        g->ended = at->ended > g->ended ? at->ended : g->ended;
    }
    gpq_now_note_end(n, &end);
    if (b && at->last && at->outcome != GPV_RETURNED)
        gpq_now_count_end(b, at->ended);
}

static int by_end(const void *left, const void *right)
{
    const struct gpv_attempt *a = left, *b = right;
    return (a->ended > b->ended) - (a->ended < b->ended);
}

/* Rows that have ended, of attempts those of which findings are made. */
static void keep_rows(struct gpv_night *past)
{
    size_t n = 0;
    for (size_t i = 0; i < past->attempts.n; i++) {
        const struct gpv_attempt at = past->attempts.row[i];
        if (at.ended != 0 && (gpv_is_bad(at.outcome) || at.number > 1))
            past->attempts.row[n++] = at;
    }
    past->attempts.n = n;
#define KEEP_ENDED(list)                                 \
    do {                                                 \
        n = 0;                                           \
        for (size_t i = 0; i < past->list.n; i++)        \
            if (past->list.row[i].until != 0)            \
                past->list.row[n++] = past->list.row[i]; \
        past->list.n = n;                                \
    } while (0)
    KEEP_ENDED(tenancies);
    KEEP_ENDED(outs);
    KEEP_ENDED(reasons);
    KEEP_ENDED(lives);
    past->names.n = past->lefts.n = 0;
}

/* Those that have come since the start follow them. */
static int take_rows(struct gpq_now *n, struct gpv_night *past)
{
    struct gpv_lines lines = { 0 };
    keep_rows(past);
    bool there = gpv_night_write(n->kept, &lines);
    int code = there ? gpv_lines_read(past, lines.text, lines.size) : -1;
    gpv_lines_free(&lines);
    if (code < 0)
        return -1;
    gpv_night_free(n->kept);
    n->kept = past;
    return 0;
}

/* ---- In pieces ---- */

static int read_page(struct gpq_agent *a)
{
    struct gpq_now *n = a->now;
    struct gpv_lines lines = { 0 };
    struct gpq_error e = { 0 };
    const struct gpq_records asked = { .now = (uint64_t)n->since,
                                       .since = (uint64_t)(n->since - GPQ_DAY),
                                       .most = GPQ_RECORDS };
    int code = gpq_records_page(a, &asked, n->place, &lines, &e);
    if (code == 0)
        code = gpv_lines_read(n->past, lines.text, lines.size);
    gpv_lines_free(&lines);
    n->step += n->place[0] == '\0';
    return code;
}

/* Rows as they were at the start: later events are in the reports. */
static int cut(struct gpq_now *n)
{
    struct gpv_night *day = gpv_night_part(n->past, n->since - GPQ_DAY, n->since);
    if (!day)
        return -1;
    gpv_night_free(n->past);
    n->past = day;
    return 0;
}

static int see_rows(struct gpq_now *n)
{
    struct gpv_night *past = n->past;
    for (size_t i = 0; i < n->batches.n; i++)
        if (n->batches.row[i].row.ended == 0)
            replay(n, past, &n->batches.row[i]);
    if (past->attempts.n > 1)
        qsort(past->attempts.row, past->attempts.n, sizeof(*past->attempts.row), by_end);
    for (size_t i = 0; i < past->attempts.n; i++)
        if (past->attempts.row[i].ended != 0)
            see_attempt(n, past, &past->attempts.row[i]);
    int code = take_rows(n, past);
    if (code == 0)
        n->past = NULL;
    return code;
}

/* Then come the reports that have waited. */
static void finish(struct gpq_now *n)
{
    gpv_live_restart(n->live, n->since);
    gpv_night_free(n->past);
    n->past = NULL;
    n->filled = n->wrong = true;
    for (size_t i = 0; i < n->late.n; i++)
        gpq_now_apply(n, &n->late.row[i]);
    free(n->late.row);
    memset(&n->late, 0, sizeof(n->late));
    n->version++;
}

/* A page of rows; then each step for all of them, of which none takes long. */
static int take_step(struct gpq_agent *a)
{
    struct gpq_now *n = a->now;
    switch (n->step) {
    case 0:
        return read_page(a);
    case 1:
        n->step++;
        return gpv_night_end(n->past, (int64_t)gpq_wall());
    case 2:
        n->step++;
        return cut(n);
    case 3:
        n->step++;
        return gpv_live_fill(n->live, n->past);
    default:
        n->step++;
        return see_rows(n);
    }
}

void gpq_now_some(struct gpq_agent *a)
{
    struct gpq_now *n = a->now;
    int code = take_step(a);
    if (code < 0)
        gpq_log("the history before this start is not shown: it cannot be read");
    if (code < 0 || n->step > 4) {
        finish(n);
        a->trims = true;
    }
}
