/* SPDX-License-Identifier: MIT */
/* finding_rows.c - findings of rows that have a length: of GPUs, of workers and of the agent. */
#include <inttypes.h>
#include <stdio.h>

#include "view/night/batches.h"
#include "view/night/finding_parts.h"
#include "view/night/use.h"

static void note_part(struct gpv_finding *f, int64_t since, int64_t end)
{
    if (f->n_parts == 0 || since > f->last)
        f->n_parts++;
    else if (end <= f->last || f->n_parts > GPV_FINDING_PARTS)
        return;
    else
        since = f->part[f->n_parts - 1].from;
    if (f->n_parts <= GPV_FINDING_PARTS) {
        f->part[f->n_parts - 1].from = since;
        f->part[f->n_parts - 1].to = end;
    }
}

/* Joins a row to a finding; rows are added in the order of their begin.  until 0: it goes on. */
static int add_row(struct gpv_finding_maker *m, const struct gpv_finding_key *key, uint32_t row,
                   int64_t since, int64_t until)
{
    int64_t end = gpv_until(m->n, until), begin = since > m->n->from ? since : m->n->from;
    struct gpv_finding *f = gpv_finding_find(m, key);
    if (!f)
        return -1;
    note_part(f, since, end);
    if (f->count++ == 0) {
        f->first = since;
        f->row = row;
    } else if (begin < f->last) {
        begin = f->last;
    }
    f->ns += end > begin ? end - begin : 0;
    f->last = end > f->last ? end : f->last;
    f->goes_on = f->goes_on || until == 0 || until > m->n->to;
    return 0;
}

/* When the tasks that ran on a GPU at a time had ended. */
static int64_t cleared_at(const struct gpv_night *n, uint32_t gpu, int64_t time)
{
    int64_t last = 0;
    for (size_t i = 0; i < n->attempts.n && n->attempts.row[i].started <= time; i++) {
        const struct gpv_attempt *a = &n->attempts.row[i];
        int64_t end = gpv_until(n, a->ended);
        if (a->number != 0 && end > time && end > last && gpv_set_has(gpv_set(n, a->set), gpu))
            last = end;
    }
    return last;
}

static int add_outs(struct gpv_finding_maker *m)
{
    for (uint32_t i = 0; i < m->n->outs.n; i++) {
        const struct gpv_out *o = &m->n->outs.row[i];
        const struct gpv_finding_key key = {
            .kind = GPV_FINDING_OUT, .gpu = o->gpu, .text = o->text, .what = o->kind
        };
        if (add_row(m, &key, i, o->since, o->until) != 0)
            return -1;
        struct gpv_finding *f = gpv_finding_find(m, &key);
        if (f && f->count == 1)
            f->cleared = cleared_at(m->n, o->gpu, o->since);
    }
    return 0;
}

/* The reason that held for the longest part of a time, of tasks with several GPUs if `wide`. */
static uint32_t reason_of(const struct gpv_night *n, int64_t from, int64_t to, bool wide)
{
    uint32_t found = GPV_NONE;
    int64_t longest = 0;
    for (uint32_t i = 0; i < n->reasons.n && n->reasons.row[i].since < to; i++) {
        const struct gpv_reason *r = &n->reasons.row[i];
        int64_t end = gpv_until(n, r->until), begin = r->since > from ? r->since : from;
        if (wide && (r->shape >= n->shapes.n || n->shapes.row[r->shape].gpus < 2))
            continue;
        end = end < to ? end : to;
        if (end - begin > longest) {
            longest = end - begin;
            found = i;
        }
    }
    return found;
}

static uint32_t batch_of(const struct gpv_night *n, uint32_t reason)
{
    return reason != GPV_NONE ? GPV_BATCH_OF(n->reasons.row[reason].task) : 0;
}

uint32_t gpv_kept_for(const struct gpv_night *n, const struct gpv_tenancy *t)
{
    uint32_t batch, number;
    char colon;
    if (sscanf(gpv_text(n, t->text), "%" SCNu32 ".%" SCNu32 "%c", &batch, &number, &colon) == 3 &&
        colon == ':')
        return batch;
    return batch_of(n, reason_of(n, t->since, gpv_until(n, t->until), true));
}

static int add_kept(struct gpv_finding_maker *m, uint32_t row)
{
    const struct gpv_tenancy *t = &m->n->tenancies.row[row];
    const struct gpv_finding_key key = {
        .kind = GPV_FINDING_KEPT, .gpu = t->gpu, .text = t->text, .batch = gpv_kept_for(m->n, t)
    };
    return add_row(m, &key, row, t->since, t->until);
}

static int add_evicted(struct gpv_finding_maker *m, uint32_t row)
{
    const struct gpv_tenancy *t = &m->n->tenancies.row[row];
    const struct gpv_finding_key key = { .kind = GPV_FINDING_EVICTED,
                                         .gpu = GPV_NONE,
                                         .text = t->text,
                                         .what = t->class };
    if (add_row(m, &key, row, t->since, t->until) != 0)
        return -1;
    const struct gpv_finding *f = gpv_finding_find(m, &key);
    if (f)
        gpv_finding_note_gpu(m, f, t->gpu);
    return 0;
}

static int add_tenancies(struct gpv_finding_maker *m)
{
    int code = 0;
    for (uint32_t i = 0; code == 0 && i < m->n->tenancies.n; i++) {
        const struct gpv_tenancy *t = &m->n->tenancies.row[i];
        if (t->kind == GPV_TENANCY_KEPT)
            code = add_kept(m, i);
        else if (gpv_is_eviction(m->n, t))
            code = add_evicted(m, i);
    }
    return code;
}

struct limited {
    struct gpv_finding_maker *m;
    uint32_t gpu;
};

static int add_limited(const struct gpv_stretch *s, void *user)
{
    const struct limited *l = user;
    const struct gpv_night *n = l->m->n;
    if (s->use != GPV_USE_LIMITED || s->to - s->from < GPV_HALF_HOUR)
        return 0;
    uint32_t reason = reason_of(n, s->from, s->to, false);
    const struct gpv_finding_key key = { .kind = GPV_FINDING_LIMITED,
                                         .gpu = l->gpu,
                                         .batch = batch_of(n, reason),
                                         .text =
                                             reason != GPV_NONE ? n->reasons.row[reason].text : 0 };
    return add_row(l->m, &key, reason, s->from, s->to < n->to ? s->to : 0);
}

static int add_idle(struct gpv_finding_maker *m)
{
    for (uint32_t i = 0; i < m->n->gpus.n; i++) {
        struct limited l = { m, i };
        if (gpv_use_each(m->n, i, m->n->from, m->n->to, add_limited, &l) != 0)
            return -1;
    }
    return 0;
}

/* The time between two lives, or before the first and after the last one. */
static int add_gap(struct gpv_finding_maker *m, uint32_t row, int64_t since, int64_t until)
{
    const struct gpv_finding_key key = { .kind = GPV_FINDING_UNKNOWN, .gpu = GPV_NONE };
    return since < until ? add_row(m, &key, row, since, until < m->n->to ? until : 0) : 0;
}

/* Where no life was recorded, as in a log of decisions, no agent is missing. */
static int add_lives(struct gpv_finding_maker *m)
{
    const struct gpv_night *n = m->n;
    int64_t known = n->from;
    uint32_t before = GPV_NONE;
    for (uint32_t i = 0; i < n->lives.n; i++) {
        const struct gpv_life *l = &n->lives.row[i];
        const struct gpv_finding_key key = { .kind = GPV_FINDING_CLOCK,
                                             .gpu = GPV_NONE,
                                             .text = l->text };
        if (l->kind == GPV_LIFE_CLOCK && add_row(m, &key, i, l->since, l->since) != 0)
            return -1;
        if (l->kind != GPV_LIFE_OPENED)
            continue;
        if (add_gap(m, before, known, l->since) != 0)
            return -1;
        int64_t end = gpv_until(n, l->until);
        known = end > known ? end : known;
        before = i;
    }
    return n->lived ? add_gap(m, before, known, n->to) : 0;
}

int gpv_finding_add_rows(struct gpv_finding_maker *m)
{
    return add_outs(m) == 0 && add_tenancies(m) == 0 && add_idle(m) == 0 && add_lives(m) == 0 ? 0
                                                                                              : -1;
}
