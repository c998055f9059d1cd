/* SPDX-License-Identifier: MIT */
/*
 * wrong.c - the findings of the last 24 h.
 *
 * `kept` has the rows that findings are made of (night/findings.h).  Of attempts that ended well
 * only the time is needed, in which their GPU was not idle: `busy` of each GPU.  When many ends
 * have come together, their findings stay in place of them.
 */
#include <stdlib.h>
#include <string.h>

#include "queue/agent/keep.h"
#include "queue/agent/lookup.h"
#include "queue/agent/spans.h"
#include "view/night/part.h"
#include "view/now/moment.h"

/* Rows of ended attempts, and findings of earlier ones. */
enum { ROWS = 4096, EARLIER = 256 };
/* Findings that take long are made anew after a hundred times as long. */
enum { PAUSE = 100 };

static int put_gpus(struct gpq_agent *a, struct gpv_night *to)
{
    const struct gpq_now *n = a->now;
    for (size_t i = 0; i < n->gpus.n; i++) {
        const struct gpq_kept_gpu *g = &n->gpus.row[i];
        const struct gpv_gpu row = { .name = gpv_keep(to, g->name, strlen(g->name)),
                                     .uuid = gpv_keep(to, g->uuid, strlen(g->uuid)),
                                     .index = (uint32_t)i };
        if (row.name == GPV_NONE || row.uuid == GPV_NONE || gpv_add_gpu(to, &row) < 0)
            return -1;
    }
    return 0;
}

int gpq_wrong_open(struct gpq_agent *a)
{
    a->now->kept = gpv_night_new();
    return a->now->kept ? put_gpus(a, a->now->kept) : -1;
}

void gpq_wrong_close(struct gpq_now *n)
{
    gpv_night_free(n->kept);
    gpv_findings_free(n->earlier);
    gpq_record_lines_free(&n->lines);
    free(n->findings.row);
}

/* ---- Rows ---- */

struct shapes {
    struct gpq_agent *a;
    struct gpq_record_lines *lines;
};

static int one_shape(const struct gpq_shape *shape, void *user)
{
    const struct shapes *s = user;
    gpq_record_shape(s->lines, s->a, shape);
    return 0;
}

/* Lines of shapes that the night does not have. */
static void put_shapes(struct gpq_agent *a, const struct gpv_night *to)
{
    struct gpq_record_lines *l = &a->now->lines;
    struct shapes s = { a, l };
    struct gpq_error e;
    for (size_t i = 0; i < l->shapes; i++)
        if (gpv_find_shape(to, l->shape[i]) == GPV_NONE)
            (void)a->store->engine->shape(a->store, l->shape[i], one_shape, &s, &e);
    l->shapes = 0;
}

int gpq_wrong_read(struct gpq_agent *a, struct gpv_night *to)
{
    struct gpq_record_lines *l = &a->now->lines;
    put_shapes(a, to);
    bool failed = l->named.failed || l->rows.failed;
    int code = failed ? -1 : gpv_lines_read(to, l->named.text, l->named.size);
    if (code == 0)
        code = gpv_lines_read(to, l->rows.text, l->rows.size);
    l->named.size = l->rows.size = l->gpus = 0;
    l->named.failed = l->rows.failed = false;
    return code;
}

/* ---- Few rows in place of many ---- */

/* The texts and sets of findings, in another night. */
static int move_findings(struct gpv_findings *f, const struct gpv_night *from, struct gpv_night *to)
{
    for (size_t i = 0; i < f->n; i++) {
        struct gpv_finding *row = &f->row[i];
        const char *text = gpv_text(from, row->text);
        const struct gpv_set set = gpv_set(from, row->set);
        row->text = gpv_keep(to, text, strlen(text));
        row->set = gpv_keep_set(to, set.gpu, set.n);
        if (row->text == GPV_NONE)
            return -1;
    }
    return 0;
}

static int newest_first(const void *left, const void *right)
{
    const struct gpv_finding *a = left, *b = right;
    return (a->last < b->last) - (a->last > b->last);
}

/* Those of bad ends within 24 h, the newest ones. */
static void shorten(struct gpv_findings *f, int64_t now)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->row[i].kind == GPV_FINDING_BAD && f->row[i].last > now - GPQ_DAY)
            f->row[n++] = f->row[i];
    f->n = n;
    if (n > 1)
        qsort(f->row, n, sizeof(f->row[0]), newest_first);
    f->n = n < EARLIER ? n : EARLIER;
}

/* All rows but attempts in a night with texts of its own, and the findings of the attempts. */
static int fold(struct gpq_now *n, struct gpv_night *part, int64_t now)
{
    struct gpv_findings *f = gpv_findings_beside(part, n->earlier);
    struct gpv_lines lines = { 0 };
    struct gpv_night *fresh = gpv_night_new();
    part->attempts.n = 0;
    int code = f && fresh && gpv_night_write(part, &lines)
                   ? gpv_lines_read(fresh, lines.text, lines.size)
                   : -1;
    if (code == 0) {
        shorten(f, now);
        code = move_findings(f, part, fresh);
    }
    gpv_lines_free(&lines);
    if (code < 0) {
        gpv_findings_free(f);
        gpv_night_free(fresh);
        return -1;
    }
    gpv_night_free(n->kept);
    gpv_findings_free(n->earlier);
    n->kept = fresh;
    n->earlier = f;
    return 0;
}

void gpq_wrong_bound(struct gpq_agent *a)
{
    struct gpq_now *n = a->now;
    int64_t now = (int64_t)gpq_wall();
    size_t rows = n->kept->tenancies.n + n->kept->reasons.n + n->kept->outs.n + n->kept->lives.n;
    if (n->kept->attempts.n < ROWS && rows < ROWS)
        return;
    struct gpv_night *part =
        gpv_night_end(n->kept, now) == 0 ? gpv_night_part(n->kept, now - GPQ_DAY, now) : NULL;
    if (!part || fold(n, part, now) < 0) { /* without memory */
        n->kept->attempts.n = n->kept->tenancies.n = n->kept->reasons.n = 0;
        n->kept->outs.n = n->kept->lives.n = 0;
    }
    gpv_night_free(part);
}

/* ---- A purge ---- */

/* Tasks that the store has forgotten, by their ids. */
struct gone {
    uint64_t *task;
    size_t n;
};

static int by_id(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static bool is_gone(const struct gone *g, uint64_t task)
{
    return bsearch(&task, g->task, g->n, sizeof(task), by_id);
}

static void drop_attempts(struct gpv_night *from, const struct gone *g)
{
    size_t n = 0;
    for (size_t i = 0; from && i < from->attempts.n; i++)
        if (!is_gone(g, from->attempts.row[i].task))
            from->attempts.row[n++] = from->attempts.row[i];
    if (from)
        from->attempts.n = n;
}

static void drop_ends(struct gpq_now *now, const struct gone *g)
{
    size_t n = 0;
    for (size_t i = 0; i < now->n_ended; i++)
        if (!is_gone(g, now->ended[i].task))
            now->ended[n++] = now->ended[i];
    now->n_ended = n;
}

/* Of earlier findings the tasks are not known: they go with their batch. */
static void drop_earlier(struct gpq_agent *a)
{
    struct gpv_findings *f = a->now->earlier;
    struct gpq_error e;
    size_t rows = 0;
    for (size_t i = 0; f && i < f->n; i++)
        if (gpq_batch_read(a->store, f->row[i].batch, NULL, NULL, &e) != GPQ_ENOTFOUND)
            f->row[rows++] = f->row[i];
    if (f)
        f->n = rows;
}

void gpq_wrong_forget(struct gpq_agent *a)
{
    struct gone gone = { 0 };
    for (size_t i = 0; i < a->store->n_changes; i++)
        gone.n += a->store->changes[i].to == 0;
    if (gone.n == 0 || !(gone.task = calloc(gone.n, sizeof(*gone.task))))
        return;
    gone.n = 0;
    for (size_t i = 0; i < a->store->n_changes; i++)
        if (a->store->changes[i].to == 0)
            gone.task[gone.n++] = a->store->changes[i].task;
    qsort(gone.task, gone.n, sizeof(*gone.task), by_id);
    drop_attempts(a->now->kept, &gone);
    drop_attempts(a->now->past, &gone);
    drop_ends(a->now, &gone);
    drop_earlier(a);
    free(gone.task);
    a->now->wrong = true;
}

/* ---- Findings ---- */

static int add_busy(struct gpv_night *day, uint32_t gpu, int64_t from, int64_t to)
{
    const uint16_t index = (uint16_t)gpu;
    const struct gpv_attempt row = { .started = from,
                                     .ended = to,
                                     .number = 1,
                                     .task = GPV_TASK(0, gpu + 1),
                                     .shape = GPV_NONE16,
                                     .set = gpv_keep_set(day, &index, 1),
                                     .outcome = to != 0 ? GPV_OK : GPV_RUNNING };
    return gpv_add_attempt(day, &row);
}

static int add_work(const struct gpq_now *n, struct gpv_night *day)
{
    int code = 0;
    for (uint32_t i = 0; code == 0 && i < n->gpus.n; i++)
        for (size_t k = 0; code == 0 && k < n->gpus.row[i].busy.n; k++)
            code = add_busy(day, i, n->gpus.row[i].busy.row[k].from, n->gpus.row[i].busy.row[k].to);
    for (size_t i = 0; code == 0 && i < n->running.n; i++) {
        const struct gpq_running *w = &n->running.row[i];
        const struct gpv_attempt row = { .task = w->task,
                                         .number = w->attempt,
                                         .started = w->since,
                                         .shape = GPV_NONE16,
                                         .set = gpv_keep_set(day, w->gpu, w->n) };
        code = gpv_add_attempt(day, &row);
    }
    return code;
}

static int add_batches(const struct gpq_now *n, struct gpv_night *day)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < n->batches.n; i++) {
        const struct gpq_kept_batch *b = &n->batches.row[i];
        struct gpv_batch row = { .id = b->row.id,
                                 .name = gpv_keep(day, b->row.name, strlen(b->row.name)),
                                 .total = b->row.total,
                                 .held = b->row.held,
                                 .ready = b->row.ready,
                                 .running = b->row.running,
                                 .first = GPV_NUMBER_OF(b->row.first),
                                 .made = b->row.made,
                                 .ended = b->row.ended };
        memcpy(row.ended_by, b->ended_by, sizeof(row.ended_by));
        code = row.name != GPV_NONE ? gpv_add_batch(day, &row) : -1;
    }
    return code;
}

static int open_span(const struct gpq_span *span, void *user)
{
    struct gpq_now *n = user;
    if (span->until == 0)
        gpq_record_span(&n->lines, span);
    return 0;
}

/* The span begins with the first known agent, so that no agent is missing before it. */
static int64_t begin_of(const struct gpv_night *day, int64_t now)
{
    int64_t first = now;
    for (size_t i = 0; i < day->lives.n; i++)
        if (day->lives.row[i].kind == GPV_LIFE_OPENED && day->lives.row[i].since < first)
            first = day->lives.row[i].since;
    return first > now - GPQ_DAY ? first : now - GPQ_DAY;
}

static struct gpv_night *make_day(struct gpq_agent *a, int64_t now)
{
    struct gpq_now *n = a->now;
    if (gpv_night_end(n->kept, now) < 0)
        return NULL;
    struct gpv_night *day = gpv_night_part(n->kept, now - GPQ_DAY, now);
    if (!day)
        return NULL;
    (void)gpq_spans_each(a, open_span, n);
    if (gpq_wrong_read(a, day) == 0 && add_work(n, day) == 0 && add_batches(n, day) == 0 &&
        gpv_night_end(day, now) == 0) {
        day->from = begin_of(day, now);
        day->to = now;
        return day;
    }
    gpv_night_free(day);
    return NULL;
}

static void take(struct gpq_now *n, const struct gpv_night *day, const struct gpv_findings *f)
{
    n->findings.n = 0;
    n->bad = f->bad;
    if (gpv_now_bad_tasks(f, day->to - GPQ_DAY, &n->bad_tasks) < 0)
        n->bad_tasks = 0; /* not known */
    for (size_t i = 0; i < f->n; i++) {
        struct gpv_now_finding *row =
            f->row[i].last > day->to - GPQ_DAY ? gpq_now_row(&n->findings, sizeof(*row)) : NULL;
        if (row)
            gpv_now_finding_of(day, &f->row[i], row);
        else
            n->bad -= f->row[i].kind == GPV_FINDING_BAD ? f->row[i].count : 0;
    }
    gpv_now_sort_findings(n->findings.row, n->findings.n);
}

void gpq_wrong_find(struct gpq_agent *a, int64_t now)
{
    struct gpq_now *n = a->now;
    bool old = n->wrong || now - n->found_at >= GPQ_MINUTE || now < n->found_at;
    uint64_t begin = gpq_monotonic();
    if (!old || begin < n->find_at)
        return;
    struct gpv_night *day = make_day(a, now);
    struct gpv_findings *f = day ? gpv_findings_beside(day, n->earlier) : NULL;
    if (f)
        take(n, day, f);
    gpv_findings_free(f);
    gpv_night_free(day);
    uint64_t end = gpq_monotonic();
    n->wrong = false;
    n->found_at = now;
    n->find_at = end + PAUSE * (end - begin);
}
