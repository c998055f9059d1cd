/* SPDX-License-Identifier: MIT */
/* ended.c - follows the ends of attempts, and of tasks without one, for now.c. */
#include <stdlib.h>
#include <string.h>

#include "queue/agent/keep.h"
#include "queue/agent/lookup.h"

#define HALF_HOUR (30 * GPQ_MINUTE)

/* ---- Ends ---- */

static bool is_later(const struct gpv_now_end *a, const struct gpv_now_end *b)
{
    return a->time != b->time ? a->time > b->time : a->task > b->task;
}

static void put_names(const struct gpq_now *n, const struct gpq_ended *end, char *to, size_t size)
{
    const char *name[GPQ_VALUE_GPUS];
    uint32_t k = 0;
    for (; k < end->n && k < GPQ_VALUE_GPUS; k++)
        name[k] = n->gpus.row[end->gpu[k]].name;
    gpv_now_gpus(to, size, name, k);
}

void gpq_now_note_end(struct gpq_now *n, const struct gpq_ended *end)
{
    struct gpv_now_end row = { .time = end->ended, .task = end->task };
    size_t at = n->n_ended < GPV_NOW_ENDS ? n->n_ended : GPV_NOW_ENDS - 1;
    int64_t start = end->number != 0 ? end->started : end->ended;
    if (n->n_ended == GPV_NOW_ENDS && !is_later(&row, &n->ended[at]))
        return;
    const struct gpq_kept_batch *b = gpq_now_batch(n, GPV_BATCH_OF(end->task));
    row.ran = end->number != 0 ? end->ended - end->started : -1;
    row.waited = end->ready != 0 ? start - end->ready : -1;
    row.outcome = end->outcome;
    memcpy(row.batch_name, b ? b->row.name : "", b ? sizeof(row.batch_name) : 1);
    put_names(n, end, row.gpus, sizeof(row.gpus));
    for (; at > 0 && is_later(&row, &n->ended[at - 1]); at--)
        n->ended[at] = n->ended[at - 1];
    n->ended[at] = row;
    n->n_ended += n->n_ended < GPV_NOW_ENDS;
}

/* Intervals come about in the order of their ends. */
void gpq_now_note_busy(struct gpq_now *n, uint32_t gpu, int64_t from, int64_t to)
{
    struct gpq_kept_gpu *g = &n->gpus.row[gpu];
    size_t late = 0;
    while (late < g->busy.n && g->busy.row[late].to < to - GPQ_DAY - HALF_HOUR)
        late++;
    if (late != 0) {
        g->busy.n -= late;
        memmove(g->busy.row, g->busy.row + late, g->busy.n * sizeof(*g->busy.row));
    }
    while (g->busy.n > 0 && g->busy.row[g->busy.n - 1].to > from - HALF_HOUR) {
        const struct gpq_busy last = g->busy.row[--g->busy.n];
        from = last.from < from ? last.from : from;
        to = last.to > to ? last.to : to;
    }
    struct gpq_busy *row = gpq_now_row(&g->busy, sizeof(*row));
    if (row)
        *row = (struct gpq_busy){ from, to };
}

static void count(struct gpq_now *n, const struct gpq_ended *end)
{
    struct gpq_kept_class *c = &n->classes.row[end->class];
    int64_t ran = end->ended - end->started;
    c->row.ended_by[end->outcome % GPV_OUTCOMES]++;
    if (end->number == 0)
        return;
    if (end->ready != 0)
        gpv_histogram_add(&c->row.wait, end->started - end->ready);
    gpv_histogram_add(&c->row.run, ran);
    if (end->outcome == GPV_OK)
        gpv_lengths_add(&c->run, ran);
}

/* The GPUs and the start are those of the report of the start. */
static void leave(struct gpq_now *n, const struct gpq_ended *end)
{
    struct gpq_running *w = gpq_now_running(n, end->task);
    if (!w || end->number == 0)
        return;
    for (uint32_t i = 0; i < w->n; i++) {
        struct gpq_kept_gpu *g = &n->gpus.row[w->gpu[i]];
        g->ended = end->ended > g->ended ? end->ended : g->ended;
        gpq_now_report(n, (struct gpq_report){ .kind = end->outcome == GPV_OK ? GPQ_NOW_END_OK
                                                                              : GPQ_NOW_END_BAD,
                                               .gpu = w->gpu[i],
                                               .task = w->task,
                                               .time = end->ended });
        gpq_now_note_busy(n, w->gpu[i], w->since, end->ended);
    }
    gpq_now_report(n, (struct gpq_report){ .kind = GPQ_NOW_LEFT_END,
                                           .task = w->task,
                                           .time = end->ended,
                                           .started = w->since });
    *w = n->running.row[--n->running.n];
}

static void end(struct gpq_now *n, const struct gpq_ended *end)
{
    count(n, end);
    gpq_now_note_end(n, end);
    leave(n, end);
}

/* ---- Ends, from rows of the store ---- */

struct rows {
    struct gpq_now *now;
    uint32_t round, number; /* of the attempt */
};

static int keep_row(const struct gpq_history *h, void *user)
{
    const struct rows *r = user;
    const struct gpq_running *w = gpq_now_running(r->now, h->attempt.task);
    const struct gpq_at_work runs = { .started = w ? (uint64_t)w->since : 0 };
    if (h->attempt.round == r->round && (h->attempt.number == r->number || h->attempt.number == 0))
        (void)gpq_record_attempt(&r->now->lines, h, &runs);
    return 0;
}

struct gpq_ended gpq_now_ended(const struct gpv_night *night, const struct gpv_attempt *row)
{
    const struct gpv_set set = gpv_set(night, row->set);
    return (struct gpq_ended){ .task = row->task,
                               .number = row->number,
                               .outcome = row->outcome,
                               .ready = row->ready,
                               .started = row->started,
                               .ended = row->ended,
                               .gpu = set.gpu,
                               .n = set.n };
}

static void note_kept(struct gpq_agent *a, const struct gpv_attempt *row)
{
    const struct gpv_night *kept = a->now->kept;
    struct gpq_ended ended = gpq_now_ended(kept, row);
    if (row->ended == 0)
        return;
    if (row->shape < kept->shapes.n)
        ended.class = gpq_now_class_of(a, kept->shapes.row[row->shape].id);
    end(a->now, &ended);
}

/* The rows of an attempt that has ended, and of the end of its task. */
static void read_ended(struct gpq_agent *a, const struct gpq_task *t)
{
    struct gpq_now *n = a->now;
    struct rows rows = { n, t->round, t->attempt };
    struct gpq_error e;
    const struct gpq_attempt behind =
        t->attempt > 1
            ? (struct gpq_attempt){ .task = t->id, .round = t->round, .number = t->attempt - 1 }
            : (struct gpq_attempt){ .task = t->id - 1, .round = UINT32_MAX };
    (void)a->store->engine->history(a->store, GPQ_BATCH_OF(t->id), GPQ_NUMBER_OF(t->id), 0, &behind,
                                    false, keep_row, &rows, &e);
    size_t from = n->kept->attempts.n;
    (void)gpq_wrong_read(a, n->kept);
    for (size_t i = from; i < n->kept->attempts.n; i++) {
        const struct gpv_attempt row = n->kept->attempts.row[i];
        note_kept(a, &row);
    }
    n->wrong = true;
}

/* ---- Ends, from units and changes ---- */

static void note_success(struct gpq_agent *a, const struct gpq_change *c, const struct gpq_unit *u,
                         int64_t now)
{
    struct gpq_now *n = a->now;
    uint64_t started = u->started != 0 ? u->started : u->since;
    if (u->class && !gpq_now_running(n, u->task)) /* it was short */
        gpq_now_start(a, u, started);
    const struct gpq_running *w = gpq_now_running(n, u->task);
    end(n, &(struct gpq_ended){ .task = u->task,
                                .number = u->attempt,
                                .class = gpq_now_class_of(a, c->shape),
                                .outcome = GPV_OK,
                                .ready = (int64_t)u->ready,
                                .started = started != 0 ? (int64_t)started : now,
                                .ended = u->ended != 0 ? (int64_t)u->ended : now,
                                .gpu = w ? w->gpu : NULL,
                                .n = w ? w->n : 0 });
}

void gpq_now_unstarted(struct gpq_agent *a, const struct gpq_change *c, int64_t now, bool late)
{
    struct gpq_now *n = a->now;
    struct gpq_task t = { 0 };
    struct gpq_error e;
    if (late)
        (void)gpq_task_look(a->store, c->task, &t, &e);
    const struct gpv_attempt row = { .task = c->task,
                                     .ended = now,
                                     .outcome = c->outcome,
                                     .shape = GPV_NONE16,
                                     .set = gpv_keep_set(n->kept, NULL, 0) };
    (void)gpv_add_attempt(n->kept, &row);
    n->wrong = true;
    end(n, &(struct gpq_ended){ .task = c->task,
                                .class = gpq_now_class_of(a, c->shape),
                                .outcome = c->outcome,
                                .ready = (int64_t)t.ready,
                                .started = now,
                                .ended = now });
}

void gpq_now_attempt_ended(struct gpq_agent *a, const struct gpq_change *c, int64_t now)
{
    const struct gpq_unit *u = gpq_work_of(a, c->task);
    struct gpq_task t;
    struct gpq_error e;
    if (u && c->to == GPQ_DONE && c->outcome == GPQ_OUTCOME_SUCCESS && u->attempt == 1)
        note_success(a, c, u, now);
    else if (gpq_task_look(a->store, c->task, &t, &e) > 0)
        read_ended(a, &t);
    /* Its command never began, and has no row. */
    leave(a->now, &(struct gpq_ended){
                      .task = c->task, .number = 1, .outcome = GPV_RETURNED, .ended = now });
}
