/* SPDX-License-Identifier: MIT */
/* batches.c - batches and why they wait, and classes and their workers, from records. */
#include <stdlib.h>
#include <string.h>

#include "view/night/batches.h"
#include "view/names.h"
#include "view/now/filling.h"

#define SECOND INT64_C(1000000000)
#define HOUR (3600 * SECOND)

/* ---- Why tasks of a shape wait ---- */

/* The row that is open; GPV_NONE: there is none. */
static uint32_t reason_of(const struct gpv_night *p, uint32_t shape)
{
    uint32_t found = GPV_NONE;
    for (uint32_t i = 0; i < p->reasons.n; i++)
        if (p->reasons.row[i].shape == shape && p->reasons.row[i].until == 0)
            found = i;
    return found;
}

static bool is_kept(const struct gpv_night *p)
{
    for (size_t i = 0; i < p->tenancies.n; i++)
        if (p->tenancies.row[i].kind == GPV_TENANCY_KEPT && p->tenancies.row[i].until == 0)
            return true;
    return false;
}

static uint32_t why_of(const struct gpv_night *p, uint32_t shape)
{
    struct gpv_wait w = { .reason = reason_of(p, shape) };
    if (w.reason == GPV_NONE)
        return GPV_WHY_UNSEEN;
    w.word = p->reasons.row[w.reason].word;
    w.kept = shape < p->shapes.n && p->shapes.row[shape].gpus >= 2 && is_kept(p);
    return gpv_why_of(p, &w);
}

static void put_reason(struct gpv_now_batch *row, const struct gpv_night *p, uint32_t shape)
{
    uint32_t reason = reason_of(p, shape);
    row->why = why_of(p, shape);
    if (reason == GPV_NONE)
        return;
    const struct gpv_reason *r = &p->reasons.row[reason];
    row->since = r->since;
    gpv_now_text(row->reason, sizeof(row->reason), gpv_text(p, r->word));
    gpv_now_text(row->text, sizeof(row->text), gpv_text(p, r->text));
}

/* ---- Batches ---- */

double gpv_now_per_hour(uint64_t ends, int64_t made, int64_t now)
{
    int64_t span = now - made < HOUR ? now - made : HOUR;
    return (double)ends * (double)HOUR / (double)(span > 60 * SECOND ? span : 60 * SECOND);
}

/* Tasks of each batch that ended in the last hour. */
static void count_ends(const struct gpv_night *p, uint64_t *ends)
{
    for (size_t i = 0; i < p->attempts.n; i++) {
        const struct gpv_attempt *a = &p->attempts.row[i];
        if (!a->last || a->outcome == GPV_RETURNED || a->ended == 0 || a->ended <= p->to - HOUR)
            continue;
        uint32_t batch = gpv_find_batch(p, GPV_BATCH_OF(a->task));
        if (batch != GPV_NONE)
            ends[batch]++;
    }
}

static void put_batch(struct gpv_now_batch *row, const struct gpv_night *p,
                      const struct gpv_batch *b, uint64_t ends)
{
    *row = (struct gpv_now_batch){ .id = b->id,
                                   .priority = b->priority,
                                   .made = b->made,
                                   .ended = b->ended,
                                   .total = b->total,
                                   .ok = b->ended_by[GPV_OK],
                                   .running = b->running,
                                   .ready = b->ready,
                                   .held = b->held,
                                   .turn = b->turn,
                                   .why = GPV_WHY_UNSEEN,
                                   .least = -1,
                                   .most = -1,
                                   .per_hour = gpv_now_per_hour(ends, b->made, p->to) };
    for (uint32_t outcome = 0; outcome < GPV_OUTCOMES; outcome++)
        row->bad += gpv_is_bad(outcome) ? b->ended_by[outcome] : 0;
    gpv_now_text(row->name, sizeof(row->name), gpv_text(p, b->name));
    if (b->first == 0 || b->ready + b->turn == 0) /* that may be one that is held */
        return;
    row->first = GPV_TASK(b->id, b->first);
    row->gpus = b->shape < p->shapes.n ? p->shapes.row[b->shape].gpus : 0;
    row->gpus = row->gpus >= 2 ? row->gpus : 0;
    put_reason(row, p, b->shape);
}

int gpv_fill_batches(struct gpv_snapshot *s, const struct gpv_night *p)
{
    uint64_t *ends = calloc(p->batches.n + 1, sizeof(*ends));
    int code = ends ? 0 : -1;
    if (ends)
        count_ends(p, ends);
    for (size_t i = 0; code == 0 && i < p->batches.n; i++) {
        const struct gpv_batch *b = &p->batches.row[i];
        if (b->ended != 0 && b->ended <= p->to - 24 * HOUR)
            continue;
        struct gpv_now_batch *row = gpv_now_batch(s);
        if (row)
            put_batch(row, p, b, ends[i]);
        code = row ? 0 : -1;
    }
    free(ends);
    if (code == 0)
        gpv_now_sort_batches(s->batches.row, s->batches.n);
    return code;
}

/* ---- Workers ---- */

/* One that restarts takes the place of one that has died without a row. */
static void see_tenancy(struct gpv_workers *w, const struct gpv_night *p,
                        const struct gpv_tenancy *t)
{
    if (t->kind == GPV_TENANCY_UNLOAD) {
        w->there -= w->there > 0;
        return;
    }
    w->there += w->there == 0 || !gpv_is_restart(p, t);
    w->loading += t->until == 0;
    w->class = t->class;
}

static struct gpv_workers workers_at(const struct gpv_night *p, uint32_t class, uint32_t gpu,
                                     int64_t since)
{
    struct gpv_workers w = { .class = GPV_NONE };
    for (size_t i = 0; i < p->tenancies.n; i++) {
        const struct gpv_tenancy *t = &p->tenancies.row[i];
        if (t->gpu == gpu && t->class == class && t->kind != GPV_TENANCY_KEPT && t->since >= since)
            see_tenancy(&w, p, t);
    }
    return w;
}

struct gpv_workers gpv_workers_of(const struct gpv_night *p, uint32_t class, uint32_t gpu)
{
    struct gpv_workers sum = { .class = GPV_NONE };
    int64_t since;
    if (!gpv_agent_runs(p, &since)) /* workers end with their agent */
        return sum;
    for (uint32_t c = 0; c < p->classes.n; c++)
        for (uint32_t g = 0; g < p->gpus.n; g++) {
            if ((class != GPV_NONE && c != class) || (gpu != GPV_NONE && g != gpu))
                continue;
            const struct gpv_workers w = workers_at(p, c, g, since);
            sum.there += w.there;
            sum.loading += w.loading;
            sum.class = w.there > 0 ? c : sum.class;
        }
    return sum;
}

/* GPUs of a worker: those of a task of the class. */
static uint32_t gpus_of(const struct gpv_night *p, uint32_t class)
{
    uint32_t gpus = 1;
    for (size_t i = 0; i < p->shapes.n; i++)
        if (p->shapes.row[i].class == class && p->shapes.row[i].gpus > gpus)
            gpus = p->shapes.row[i].gpus;
    return gpus;
}

static void put_workers(struct gpv_now_class *row, const struct gpv_night *p, uint32_t class)
{
    const struct gpv_workers w = gpv_workers_of(p, class, GPV_NONE);
    uint32_t gpus = gpus_of(p, class);
    row->workers = w.there / gpus;
    row->loading = w.loading / gpus;
    row->ready = row->workers > row->loading ? row->workers - row->loading : 0;
}

/* ---- Classes ---- */

struct lengths {
    struct gpv_lengths boot, run;
};

static void see_attempt(struct gpv_now_class *row, struct lengths *l, const struct gpv_attempt *a)
{
    if (a->ended != 0) {
        row->ended_by[a->outcome % GPV_OUTCOMES]++;
        row->tasks_by[a->outcome % GPV_OUTCOMES] += a->last && a->outcome != GPV_RETURNED;
    }
    if (a->number == 0)
        return;
    if (a->ready != 0)
        gpv_histogram_add(&row->wait, a->started - a->ready);
    if (a->ended == 0)
        return;
    gpv_histogram_add(&row->run, a->ended - a->started);
    if (a->outcome == GPV_OK)
        gpv_lengths_add(&l->run, a->ended - a->started);
}

static void see_worker(struct gpv_now_class *row, struct lengths *l, const struct gpv_night *p,
                       const struct gpv_tenancy *t)
{
    row->evicted += gpv_is_eviction(p, t);
    row->restarts += gpv_is_restart(p, t);
    if (t->kind == GPV_TENANCY_BOOT && t->until != 0)
        gpv_lengths_add(&l->boot, t->until - t->since);
}

/* The row of a class; of none, or of a shape that is gone, that of commands, or the last one. */
static uint32_t row_of(const struct gpv_night *p, uint32_t class)
{
    uint32_t commands;
    if (class < p->classes.n)
        return class;
    commands = gpv_find_class(p, gpv_class_label(p, GPV_NONE));
    return commands < p->classes.n ? commands : (uint32_t)p->classes.n;
}

static void see_rows(struct gpv_snapshot *s, struct lengths *l, const struct gpv_night *p)
{
    for (size_t i = 0; i < p->attempts.n; i++) {
        uint32_t row = row_of(p, gpv_class_of(p, &p->attempts.row[i]));
        see_attempt(&s->classes.row[row], &l[row], &p->attempts.row[i]);
    }
    for (size_t i = 0; i < p->tenancies.n; i++) {
        uint32_t class = p->tenancies.row[i].class;
        if (p->tenancies.row[i].kind != GPV_TENANCY_KEPT && class < p->classes.n)
            see_worker(&s->classes.row[class], &l[class], p, &p->tenancies.row[i]);
    }
    for (size_t i = 0; i < p->batches.n; i++) {
        const struct gpv_batch *b = &p->batches.row[i];
        uint32_t shape = b->shape;
        uint32_t row = row_of(p, shape < p->shapes.n ? p->shapes.row[shape].class : GPV_NONE);
        if (b->ready + b->turn > 0)
            s->classes.row[row].waiting[why_of(p, shape)] += b->ready + b->turn;
        s->classes.row[row].held += b->held - b->turn;
    }
}

static bool is_used(const struct gpv_now_class *row)
{
    uint64_t sum = row->run.count + row->wait.count + row->held;
    for (uint32_t i = 0; i < GPV_WHYS; i++)
        sum += row->waiting[i];
    for (uint32_t i = 0; i < GPV_OUTCOMES; i++)
        sum += row->ended_by[i];
    return sum > 0;
}

static void put_class(struct gpv_now_class *row, const struct gpv_night *p, uint32_t class,
                      const struct lengths *l)
{
    gpv_now_text(row->name, sizeof(row->name), gpv_class_label(p, class));
    row->boot_p50 = gpv_lengths_p50(&l->boot);
    row->run_p50 = gpv_lengths_p50(&l->run);
    if (class < p->classes.n)
        put_workers(row, p, class);
}

int gpv_fill_classes(struct gpv_snapshot *s, const struct gpv_night *p)
{
    struct lengths *l = calloc(p->classes.n + 1, sizeof(*l));
    int code = l ? 0 : -1;
    for (uint32_t i = 0; code == 0 && i <= p->classes.n; i++)
        code = gpv_now_class(s) ? 0 : -1;
    if (code == 0) {
        see_rows(s, l, p);
        for (uint32_t i = 0; i <= p->classes.n; i++)
            put_class(&s->classes.row[i], p, i, &l[i]);
        s->classes.n -= !is_used(&s->classes.row[p->classes.n]);
    }
    free(l);
    return code;
}
