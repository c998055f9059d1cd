/* SPDX-License-Identifier: MIT */
/* findings.c - faults and other events: alike rows in groups. */
#include "view/night/findings.h"

#include <stdlib.h>

#include "view/night/finding_parts.h"
#include "view/night/next.h"

/* ---- Bad ends ---- */

static void note_end(struct gpv_finding *f, const struct gpv_attempt *a, uint32_t row)
{
    f->varied = f->varied || (f->count != 0 && a->text != f->text);
    if (f->count == 0 || a->ended < f->first) {
        f->first = a->ended;
        f->text = a->text;
        f->row = row;
    }
    if (f->count == 0 || a->ended > f->last)
        f->last = a->ended;
    f->count++;
}

static void note_gpus(struct gpv_finding_maker *m, const struct gpv_finding *f, uint16_t index)
{
    const struct gpv_set set = gpv_set(m->n, index);
    for (uint32_t i = 0; i < set.n; i++)
        gpv_finding_note_gpu(m, f, set.gpu[i]);
}

static int add_end(struct gpv_finding_maker *m, uint32_t row)
{
    const struct gpv_attempt *a = &m->n->attempts.row[row];
    const struct gpv_finding_key key = { .kind = GPV_FINDING_BAD,
                                         .batch = GPV_BATCH_OF(a->task),
                                         .gpu = GPV_NONE,
                                         .text = a->text,
                                         .what = a->outcome,
                                         .status = a->status };
    struct gpv_finding *f = gpv_finding_find(m, &key);
    if (!f)
        return -1;
    f->outcome = a->outcome;
    f->status = a->status;
    note_end(f, a, row);
    m->f->bad++;
    uint32_t finding = (uint32_t)(f - m->f->row);
    note_gpus(m, f, a->set);
    return gpv_tasks_add(&m->tasks, finding, GPV_NUMBER_OF(a->task));
}

static int add_ends(struct gpv_finding_maker *m)
{
    for (uint32_t i = 0; i < m->n->attempts.n; i++) {
        const struct gpv_attempt *a = &m->n->attempts.row[i];
        if (a->last && a->outcome != GPV_OK &&
            gpv_tasks_add(&m->not_ok, GPV_BATCH_OF(a->task), GPV_NUMBER_OF(a->task)) != 0)
            return -1;
        if (gpv_is_bad(a->outcome) && add_end(m, i) != 0)
            return -1;
    }
    return 0;
}

/* Its tasks are a range each, since sets of tasks may be large. */
static int add_earlier_tasks(struct gpv_finding_maker *m, uint32_t finding,
                             const struct gpv_finding *f)
{
    for (uint32_t i = 0; i < f->n_ranges; i++)
        if (gpv_tasks_add_range(&m->tasks, finding, f->range[i].from, f->range[i].to) != 0 ||
            gpv_tasks_add_range(&m->not_ok, f->batch, f->range[i].from, f->range[i].to) != 0)
            return -1;
    return 0;
}

static int add_earlier(struct gpv_finding_maker *m, const struct gpv_finding *earlier)
{
    const struct gpv_finding_key key = { .kind = GPV_FINDING_BAD,
                                         .batch = earlier->batch,
                                         .gpu = GPV_NONE,
                                         .text = earlier->text,
                                         .what = earlier->outcome,
                                         .status = earlier->status };
    struct gpv_finding *f = gpv_finding_find(m, &key);
    if (!f)
        return -1;
    f->outcome = earlier->outcome;
    f->status = earlier->status;
    f->varied = f->varied || earlier->varied || (f->count != 0 && earlier->text != f->text);
    f->text = earlier->text;
    f->first = f->count == 0 || earlier->first < f->first ? earlier->first : f->first;
    f->last = earlier->last > f->last ? earlier->last : f->last;
    f->count += earlier->count;
    f->more += earlier->more;
    f->n_tasks += earlier->more;
    m->f->bad += earlier->count;
    uint32_t finding = (uint32_t)(f - m->f->row);
    note_gpus(m, f, earlier->set);
    return add_earlier_tasks(m, finding, earlier);
}

static int add_all_earlier(struct gpv_finding_maker *m, const struct gpv_findings *earlier)
{
    for (size_t i = 0; earlier && i < earlier->n; i++)
        if (earlier->row[i].kind == GPV_FINDING_BAD && add_earlier(m, &earlier->row[i]) != 0)
            return -1;
    return 0;
}

static void add_range(struct gpv_finding_maker *m, const struct gpv_task_range *r)
{
    struct gpv_finding *f = &m->f->row[r->owner];
    uint32_t n = r->to - r->from + 1, lowest = 0;
    uint64_t still = gpv_tasks_among(&m->not_ok, f->batch, r->from, r->to, &lowest);
    if (f->still == 0 && still != 0)
        f->still_first = lowest;
    f->still += still;
    f->n_tasks += n;
    if (f->n_ranges < GPV_FINDING_RANGES) {
        f->range[f->n_ranges].from = r->from;
        f->range[f->n_ranges++].to = r->to;
    } else {
        f->more += n;
    }
}

static void finish_ends(struct gpv_finding_maker *m)
{
    gpv_tasks_join(&m->tasks);
    gpv_tasks_join(&m->not_ok);
    for (size_t i = 0; i < m->tasks.n; i++)
        add_range(m, &m->tasks.row[i]);
}

/* ---- The list ---- */

static uint16_t keep_gpus(struct gpv_finding_maker *m, size_t finding, uint16_t *room)
{
    const uint64_t *bits = m->gpus + finding * m->words;
    uint32_t n = 0;
    for (size_t i = 0; i < m->n->gpus.n; i++)
        if (bits[i / 64] >> i % 64 & 1)
            room[n++] = (uint16_t)i;
    return gpv_keep_set(m->n, room, n);
}

static int keep_sets(struct gpv_finding_maker *m)
{
    uint16_t *room = malloc((m->n->gpus.n + 1) * sizeof(*room));
    for (size_t i = 0; room && i < m->f->n; i++)
        m->f->row[i].set = keep_gpus(m, i, room);
    free(room);
    return room ? 0 : -1;
}

/* A GPU that was kept free for less than half an hour in all is no finding. */
static void drop_short(struct gpv_findings *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->row[i].kind != GPV_FINDING_KEPT || f->row[i].ns >= GPV_HALF_HOUR)
            f->row[n++] = f->row[i];
    f->n = n;
}

static int descending(int64_t a, int64_t b)
{
    return (a < b) - (a > b);
}

static int compare(const void *left, const void *right)
{
    const struct gpv_finding *a = left, *b = right;
    bool by_count = a->kind == GPV_FINDING_BAD || a->kind == GPV_FINDING_EVICTED;
    int order = descending(b->kind, a->kind);
    if (order == 0)
        order = descending(a->n_tasks, b->n_tasks);
    if (order == 0 && by_count)
        order = descending((int64_t)a->count, (int64_t)b->count);
    if (order == 0 && !by_count)
        order = descending(a->ns, b->ns);
    if (order == 0)
        order = descending(b->first, a->first);
    if (order == 0)
        order = descending(b->gpu, a->gpu);
    return order ? order : descending(b->row, a->row);
}

static int add_all(struct gpv_finding_maker *m, const struct gpv_findings *earlier)
{
    if (add_ends(m) != 0 || add_all_earlier(m, earlier) != 0)
        return -1;
    finish_ends(m);
    if (gpv_finding_add_rows(m) != 0 || keep_sets(m) != 0)
        return -1;
    drop_short(m->f);
    for (size_t i = 0; i < m->f->n; i++)
        gpv_finding_command(m->n, &m->f->row[i]);
    if (m->f->n > 1)
        qsort(m->f->row, m->f->n, sizeof(m->f->row[0]), compare);
    return 0;
}

struct gpv_findings *gpv_findings_beside(struct gpv_night *n, const struct gpv_findings *earlier)
{
    struct gpv_finding_maker m = { .n = n,
                                   .f = calloc(1, sizeof(*m.f)),
                                   .words = n->gpus.n / 64 + 1 };
    int code = m.f ? add_all(&m, earlier) : -1;
    free(m.groups.row);
    free(m.slot);
    free(m.gpus);
    gpv_tasks_free(&m.tasks);
    gpv_tasks_free(&m.not_ok);
    if (code != 0) {
        gpv_findings_free(m.f);
        return NULL;
    }
    return m.f;
}

struct gpv_findings *gpv_findings_of(struct gpv_night *n)
{
    return gpv_findings_beside(n, NULL);
}

void gpv_findings_free(struct gpv_findings *f)
{
    if (f)
        free(f->row);
    free(f);
}
