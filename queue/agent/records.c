/* SPDX-License-Identifier: MIT */
/* records.c - writes the records of the store, page by page. */
#include "queue/agent/records.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/agent/classes.h"
#include "queue/agent/first.h"
#include "queue/agent/needs.h"
#include "queue/agent/now.h"
#include "queue/agent/recent.h"
#include "queue/agent/record_lines.h"
#include "queue/agent/records_place.h"
#include "queue/agent/requests.h"
#include "queue/agent/spans.h"
#include "queue/grow.h"
#include "queue/utf8.h"

/* The costs of other lines, in rows. */
enum { COST_SHAPE = 5, COST_BATCH = 20, COST_AT_WORK = 5 };
/* Of tasks and batches, as many are passed over for the cost of a row; and so many tasks at once,
 * since a reader of the store cannot be stopped between its rows. */
enum { PASSED = 4, LOOKS = 1024 };

struct page {
    struct gpq_agent *a;
    const struct gpq_records *asked;
    struct gpq_error *e;
    struct gpq_record_lines lines;
    struct gpq_records_at at;
    uint32_t cost, passed;
    uint32_t *again; /* batches whose rows have changed */
    size_t n_again, again_room;
};

static bool is_full(const struct page *p)
{
    return p->cost + p->lines.shapes * COST_SHAPE >= p->asked->most ||
           p->lines.rows.size >= GPQ_PAGE_BYTES;
}

/* ---- The head ---- */

static void write_head(struct page *p)
{
    const struct gpq_classes *all = p->a->classes;
    struct gpv_lines *to = &p->lines.named;
    char host[256] = "";
    (void)gethostname(host, sizeof(host) - 1);
    gpv_line_begin(to, "records");
    gpv_line_number(to, GPV_LINES_VERSION);
    gpv_line_text(to, host);
    gpv_line_end(to);
    gpq_record_class(&p->lines, GPQ_COMMANDS);
    for (size_t i = 0; all && i < all->n; i++)
        gpq_record_class(&p->lines, all->list[i].name);
}

/* GPUs that the agent has not have their lines where rows name them. */
static void write_gpus(struct page *p, bool head)
{
    int n;
    struct gpud_device_info *rows = p->a->dispatcher ? gpq_devices_read(p->a, &n) : NULL;
    for (int i = 0; rows && i < n; i++)
        if (rows[i].kind != GPUD_DEVICE_CPU)
            gpq_record_gpu(&p->lines, &rows[i], head);
    free(rows);
}

/* ---- Spans ---- */

/* The agent writes the end of a row with a later commit. */
static int one_span(const struct gpq_span *span, void *user)
{
    struct page *p = user;
    struct gpq_span now = *span;
    if (is_full(p))
        return 1;
    if (now.until == 0 && p->asked->closed) /* of a killed agent: the next one ends it so */
        now.until = now.since > p->asked->alive ? now.since : p->asked->alive;
    else if (now.until == 0)
        gpq_spans_bring_up(p->a, &now);
    if (now.until == 0 || now.until >= p->asked->since)
        gpq_record_span(&p->lines, &now);
    p->at.span = span->id;
    p->cost++;
    return 0;
}

static int unwritten_span(const struct gpq_span *span, void *user)
{
    struct page *p = user;
    if (span->id != 0)
        return 0;
    if (span->until == 0 || span->until >= p->asked->since)
        gpq_record_span(&p->lines, span);
    p->cost++;
    return 0;
}

/* ---- Batches ---- */

/* The first id behind `behind` that is asked for; 0: there is none. */
static uint32_t next_asked(const struct gpq_records *asked, uint32_t behind)
{
    if (asked->n_batches == 0)
        return behind + 1;
    for (size_t i = 0; i < asked->n_batches; i++)
        if (asked->batch[i] > behind)
            return asked->batch[i];
    return 0;
}

/* A copy of a row: while its reader runs, no other one may. */
struct found {
    struct page *p;
    struct gpq_batch row; /* id 0: none, and the page may be full */
    char *name;
};

static int copy_batch(const struct gpq_batch *b, void *user)
{
    struct found *f = user;
    f->row = *b;
    f->name = strdup(b->name ? b->name : "");
    f->row.name = f->name;
    return f->name ? 1 : GPQ_ENOMEM;
}

static int find_batch(const struct gpq_batch *b, void *user)
{
    struct found *f = user;
    struct page *p = f->p;
    p->at.batch = b->id;
    if (p->asked->n_batches != 0 && next_asked(p->asked, b->id - 1) != b->id)
        return 1;
    if (b->ended != 0 && b->ended < p->asked->since) {
        p->cost += p->passed++ % PASSED == 0;
        return is_full(p) || p->asked->n_batches != 0;
    }
    return copy_batch(b, user);
}

static int keep_task(const struct gpq_task *t, void *user)
{
    *(struct gpq_task *)user = *t;
    return 1;
}

static int write_batch(struct page *p, const struct gpq_batch *b)
{
    struct gpq_waiting w;
    int code = gpq_first_waiting(p->a->store, b, &w, p->e);
    if (code == 0)
        gpq_record_batch(&p->lines, b, &w);
    p->cost += w.looks / PASSED + COST_BATCH + (b->total < LOOKS ? b->total : LOOKS) / PASSED;
    return code;
}

/* ---- Attempts ---- */

static int put_row(const struct gpq_history *h, void *user)
{
    struct page *p = user;
    struct gpq_at_work at_work = { 0 };
    const struct gpq_attempt *a = &h->attempt;
    char devices[512];
    if (a->number != 0 && a->outcome == 0 && a->returned_at == 0) {
        at_work.started = gpq_work_since(p->a, a->task, devices);
        at_work.devices = devices;
        p->cost += COST_AT_WORK;
    }
    (void)gpq_record_attempt(&p->lines, h, &at_work);
    p->cost++;
    return 0;
}

static int one_row(const struct gpq_history *h, void *user)
{
    struct page *p = user;
    const struct gpq_attempt *a = &h->attempt;
    if (is_full(p))
        return 1;
    p->at.row = (struct gpq_attempt){ .task = a->task, .round = a->round, .number = a->number };
    return put_row(h, user);
}

/* ---- Rows that have changed since the page before ---- */

static bool is_asked(const struct page *p, uint32_t batch)
{
    return p->asked->n_batches == 0 || next_asked(p->asked, batch - 1) == batch;
}

static int add_again(struct page *p, uint32_t batch)
{
    for (size_t i = p->n_again; i > 0; i--)
        if (p->again[i - 1] == batch)
            return 0;
    uint32_t *larger = gpq_grown(p->again, p->n_again, &p->again_room, sizeof(*larger));
    if (!larger)
        return gpq_fail(p->e, GPQ_ENOMEM, "no memory for the records");
    p->again = larger;
    p->again[p->n_again++] = batch;
    p->cost += COST_BATCH;
    return 0;
}

/* All rows of the task, if the reader has got some.  Number 0: the batch alone. */
static int changed_task(uint64_t task, void *user)
{
    struct page *p = user;
    const uint32_t batch = GPQ_BATCH_OF(task);
    const struct gpq_attempt behind = { .task = task - 1, .round = UINT32_MAX };
    if (is_full(p))
        return 1;
    if (batch > p->at.batch || !is_asked(p, batch))
        return 0;
    int code = add_again(p, batch);
    if (code == 0 && GPQ_NUMBER_OF(task) != 0 &&
        (batch < p->at.batch || p->at.part == GPQ_PART_BATCHES || task <= p->at.row.task))
        code =
            p->a->store->engine->history(p->a->store, batch, GPQ_NUMBER_OF(task), p->asked->since,
                                         &behind, p->asked->names, put_row, p, p->e);
    return code;
}

static int write_again(struct page *p, uint32_t batch)
{
    struct found f = { .p = p };
    int code = p->a->store->engine->batches(p->a->store, batch, copy_batch, &f, p->e);
    if (code > 0 && f.row.id == batch)
        code = write_batch(p, &f.row);
    free(f.name);
    return code < 0 ? code : 0;
}

/* A task counts in the batches that have joined it, too.  1: the page is full. */
static int write_changed(struct page *p)
{
    int full = gpq_recent_each(p->a, &p->at.number, changed_task, p), code = full;
    for (uint32_t id = 0; code >= 0 && p->n_again != 0;) {
        id = gpq_now_joined(p->a, id);
        if (id == 0 || id > p->at.batch)
            break;
        code = is_asked(p, id) ? add_again(p, id) : 0;
    }
    for (size_t i = 0; code >= 0 && i < p->n_again; i++)
        code = write_again(p, p->again[i]);
    p->cost = 0; /* the page has further rows, too, or a reader of a busy queue would get no end */
    return code < 0 ? code : full;
}

/* ---- A page ---- */

/* 0: there is none. */
static int write_next_batch(struct page *p)
{
    struct found f = { .p = p };
    uint32_t next = next_asked(p->asked, p->at.batch);
    int code =
        next == 0 ? 0 : p->a->store->engine->batches(p->a->store, next, find_batch, &f, p->e);
    if (code == GPQ_ENOMEM)
        (void)gpq_fail(p->e, code, "no memory for the records");
    if (!f.name)
        return code;
    code = write_batch(p, &f.row);
    free(f.name);
    p->at.row = (struct gpq_attempt){ .task = GPQ_TASK(p->at.batch, 0) };
    p->at.part = GPQ_PART_ROWS;
    return code < 0 ? code : 1;
}

/* Rows of the next tasks of the batch.  Behind them the place is that of the next task there is,
 * since numbers may be missing. */
static int write_rows(struct page *p)
{
    const struct gpq_engine *o = p->a->store->engine;
    uint32_t number = GPQ_NUMBER_OF(p->at.row.task);
    uint32_t last = number < INT32_MAX - LOOKS ? number + LOOKS : INT32_MAX;
    const struct gpq_attempt begin = p->at.row; /* which moves with each row */
    struct gpq_task next = { 0 };
    int code = o->history(p->a->store, p->at.batch, last, p->asked->since, &begin, p->asked->names,
                          one_row, p, p->e);
    if (code != 0)
        return code;
    const struct gpq_select behind = { .batch = p->at.batch, .first = last + 1, .last = INT32_MAX };
    if (last < INT32_MAX)
        code = o->tasks(p->a->store, &behind, 0, false, keep_task, &next, p->e);
    if (next.id == 0) {
        p->at.part = GPQ_PART_BATCHES;
    } else {
        p->at.row = (struct gpq_attempt){ .task = next.id - 1, .round = UINT32_MAX };
        p->cost += LOOKS / PASSED;
    }
    return code < 0 ? code : 0;
}

/* 1: the page is full. */
static int write_all(struct page *p)
{
    int code = 0;
    if (p->at.part == GPQ_PART_SPANS) {
        code =
            p->a->store->engine->spans(p->a->store, p->asked->since, p->at.span, one_span, p, p->e);
        if (code == 0)
            code = gpq_spans_each(p->a, unwritten_span, p);
        if (code != 0)
            return code;
        p->at.part = GPQ_PART_BATCHES;
    }
    while (code == 0) {
        if (is_full(p))
            return 1;
        if (p->at.part == GPQ_PART_ROWS) {
            code = write_rows(p);
            continue;
        }
        int found = write_next_batch(p);
        if (found <= 0)
            return found;
    }
    return code;
}

static int one_shape(const struct gpq_shape *shape, void *user)
{
    struct page *p = user;
    gpq_record_shape(&p->lines, p->a, shape);
    return 0;
}

/* Those that no task has any more have no line. */
static int write_shapes(struct page *p)
{
    for (size_t i = 0; i < p->lines.shapes; i++) {
        struct gpq_error e = { 0 };
        int code = p->a->store->engine->shape(p->a->store, p->lines.shape[i], one_shape, p, &e);
        if (code < 0 && code != GPQ_ENOTFOUND) {
            *p->e = e;
            return code;
        }
    }
    return 0;
}

/* The lines that rows name are before them.  Texts of the store may have been cut within a
 * character. */
static int join(struct page *p, bool last, struct gpv_lines *ret)
{
    struct gpv_lines *named = &p->lines.named, *rows = &p->lines.rows;
    if (last) {
        gpv_line_begin(rows, "now");
        gpv_line_time(rows, p->asked->now);
        gpv_line_end(rows);
    }
    char *larger = realloc(named->text, named->size + rows->size + 1);
    if (!larger || named->failed || rows->failed) {
        named->text = larger ? larger : named->text;
        return gpq_fail(p->e, GPQ_ENOMEM, "no memory for the records");
    }
    if (rows->size != 0)
        memcpy(larger + named->size, rows->text, rows->size);
    named->text = NULL;
    *ret = (struct gpv_lines){ .text = larger, .size = named->size + rows->size };
    for (size_t at = 0; (at += gpq_utf8_fault(larger + at, ret->size - at)) < ret->size;)
        larger[at] = '?';
    return 0;
}

static int by_id(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

void gpq_records_sort(uint32_t *batch, size_t n)
{
    if (n != 0)
        qsort(batch, n, sizeof(*batch), by_id);
}

int gpq_records_page(struct gpq_agent *a, const struct gpq_records *r,
                     char place[GPQ_RECORDS_PLACE], struct gpv_lines *ret, struct gpq_error *e)
{
    struct page p = { .a = a, .asked = r, .e = e };
    bool head = *place == '\0';
    *ret = (struct gpv_lines){ 0 };
    const uint32_t next = r->again ? gpq_recent_next(a) : 0; /* also for a page of another agent */
    if (!gpq_records_place_read(&p.at, place))
        return gpq_fail(e, GPQ_EINVAL, "after is \"%.64s\", expected the value of next", place);
    if (head) {
        p.at.number = next;
        write_head(&p);
    }
    write_gpus(&p, head);
    int more = r->again ? write_changed(&p) : 0;
    if (more == 0)
        more = write_all(&p);
    int code = more < 0 ? more : write_shapes(&p);
    if (code == 0)
        code = join(&p, more == 0, ret);
    place[0] = '\0';
    if (code == 0 && more != 0)
        gpq_records_place_write(&p.at, place);
    gpq_record_lines_free(&p.lines);
    free(p.again);
    return code;
}
