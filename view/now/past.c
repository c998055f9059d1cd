/* SPDX-License-Identifier: MIT */
/* past.c - what went wrong in the last 24 h, and what ended last, from records. */
#include <stdlib.h>

#include "view/names.h"
#include "view/night/tasks.h"
#include "view/now/filling.h"

/* ---- Findings ---- */

void gpv_now_finding_of(const struct gpv_night *n, const struct gpv_finding *f,
                        struct gpv_now_finding *ret)
{
    const uint16_t gpu = (uint16_t)f->gpu;
    const struct gpv_set one = { &gpu, f->gpu < n->gpus.n }, set = gpv_set(n, f->set);
    *ret = (struct gpv_now_finding){ .kind = f->kind,
                                     .outcome = f->outcome,
                                     .batch = f->batch,
                                     .first = f->first,
                                     .last = f->last,
                                     .count = f->count,
                                     .tasks = f->n_tasks };
    (void)gpv_finding_text(n, f, ret->what, sizeof(ret->what));
    gpv_now_whose(ret->whose, sizeof(ret->whose), gpv_batch_name(n, f->batch), f);
    (void)gpv_finding_detail(n, f, ret->text, sizeof(ret->text));
    gpv_put_gpus(ret->gpus, sizeof(ret->gpus), n, set.n > 0 ? set : one);
    gpv_now_text(ret->command, sizeof(ret->command), f->command);
}

int gpv_now_bad_tasks(const struct gpv_findings *f, int64_t after, uint64_t *ret)
{
    struct gpv_tasks tasks = { 0 };
    int code = 0;
    *ret = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct gpv_finding *row = &f->row[i];
        if (row->kind != GPV_FINDING_BAD || row->last <= after)
            continue;
        *ret += row->more;
        for (uint32_t k = 0; code == 0 && k < row->n_ranges; k++)
            code = gpv_tasks_add_range(&tasks, row->batch, row->range[k].from, row->range[k].to);
    }
    gpv_tasks_join(&tasks);
    for (size_t i = 0; i < tasks.n; i++)
        *ret += tasks.row[i].to - tasks.row[i].from + 1;
    gpv_tasks_free(&tasks);
    return code;
}

/* Newest first; else in the order of the report. */
static int newest_first(const void *left, const void *right)
{
    const struct gpv_now_finding *a = left, *b = right;
    if (a->last != b->last)
        return a->last > b->last ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

void gpv_now_sort_findings(struct gpv_now_finding *finding, size_t n)
{
    if (n > 1)
        qsort(finding, n, sizeof(*finding), newest_first);
}

int gpv_fill_findings(struct gpv_snapshot *s, struct gpv_night *day)
{
    struct gpv_findings *f = gpv_findings_of(day);
    int code = f ? gpv_now_bad_tasks(f, 0, &s->bad_tasks_24h) : -1;
    s->bad_24h = f ? f->bad : 0;
    for (size_t i = 0; code == 0 && i < f->n; i++) {
        struct gpv_now_finding *row = gpv_now_finding(s);
        if (row)
            gpv_now_finding_of(day, &f->row[i], row);
        code = row ? 0 : -1;
    }
    gpv_findings_free(f);
    if (code == 0)
        gpv_now_sort_findings(s->findings.row, s->findings.n);
    return code;
}

/* ---- What ended last ---- */

static bool is_later(const struct gpv_attempt *a, const struct gpv_attempt *b)
{
    return a->ended != b->ended ? a->ended > b->ended : a->task > b->task;
}

static void put_end(struct gpv_now_end *row, const struct gpv_night *p, const struct gpv_attempt *a)
{
    int64_t start = a->number != 0 ? a->started : a->ended;
    row->time = a->ended;
    row->ran = a->number != 0 ? a->ended - a->started : -1;
    row->waited = a->ready != 0 ? start - a->ready : -1;
    row->task = a->task;
    row->outcome = a->outcome;
    gpv_now_text(row->batch_name, sizeof(row->batch_name),
                 gpv_batch_name(p, GPV_BATCH_OF(a->task)));
    gpv_put_gpus(row->gpus, sizeof(row->gpus), p, gpv_set(p, a->set));
}

int gpv_fill_ends(struct gpv_snapshot *s, const struct gpv_night *p)
{
    const struct gpv_attempt *last[GPV_NOW_ENDS];
    size_t n = 0;
    for (size_t i = 0; i < p->attempts.n; i++) {
        const struct gpv_attempt *a = &p->attempts.row[i];
        if (a->ended == 0 || (n == GPV_NOW_ENDS && !is_later(a, last[n - 1])))
            continue;
        size_t at = n < GPV_NOW_ENDS ? n++ : n - 1;
        for (; at > 0 && is_later(a, last[at - 1]); at--)
            last[at] = last[at - 1];
        last[at] = a;
    }
    for (size_t i = 0; i < n; i++) {
        struct gpv_now_end *row = gpv_now_end(s);
        if (!row)
            return -1;
        put_end(row, p, last[i]);
    }
    return 0;
}
