/* SPDX-License-Identifier: MIT */
/* facts.c - marks and spans. */
#include "operations.h"

#include <string.h>

static struct gpq_mark *find(struct mem_state *s, const char *kind, const char *subject)
{
    MEM_EACH (struct gpq_mark, mark, s, marks)
        if (!strcmp(mark->kind, kind) && !strcmp(mark->subject, subject))
            return mark;
    return NULL;
}

static bool precedes(const struct gpq_mark *a, const struct gpq_mark *b)
{
    int order = strcmp(a->kind, b->kind);

    return order < 0 || (!order && strcmp(a->subject, b->subject) < 0);
}

/* Marks lie in the order of kind and subject. */
static struct gpq_mark *add_mark(struct mem_state *s, const struct gpq_mark *mark)
{
    struct gpq_mark *row = MEM_ADD(s, marks);

    for (; row > s->marks && precedes(mark, &row[-1]); row--)
        *row = row[-1];
    return row;
}

int mem_mark(struct gpq_store *store, const struct gpq_mark *mark, struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);

    if (!m->within)
        return gpq_fail(e, GPQ_EINVAL, "mark: no transaction");

    struct gpq_mark *row = find(&m->now, mark->kind, mark->subject);

    if (!row)
        row = add_mark(&m->now, mark);
    *row = (struct gpq_mark){
        .kind = mem_text(m, mark->kind),
        .subject = mem_text(m, mark->subject),
        .text = mem_text(m, mark->text),
        .since = mark->since,
    };
    return 0;
}

int mem_unmark(struct gpq_store *store, const char *kind, const char *subject, struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);

    if (!m->within)
        return gpq_fail(e, GPQ_EINVAL, "unmark: no transaction");

    struct gpq_mark *row = find(&m->now, kind, subject);

    if (!row)
        return gpq_fail(e, GPQ_ENOTFOUND, "%s %s: no such mark", kind, subject);
    MEM_DROP(&m->now, marks, row);
    return 0;
}

int mem_span_begin(struct gpq_store *store, const struct gpq_span *span, uint64_t *ret_id,
                   struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);

    if (!m->within)
        return gpq_fail(e, GPQ_EINVAL, "span_begin: no transaction");

    struct mem_span *row = MEM_ADD(&m->now, spans);

    row->id = ++m->now.last_span;
    row->row = *span;
    row->row.kind = mem_text(m, span->kind);
    row->row.subject = mem_text(m, span->subject);
    row->row.reason = mem_text(m, span->reason);
    row->row.text = mem_text(m, span->text);
    row->row.boot = mem_text(m, span->boot);
    row->row.id = row->id;
    *ret_id = row->id;
    return 0;
}

int mem_span_end(struct gpq_store *store, uint64_t id, uint64_t until, uint64_t until_boot,
                 struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);

    if (!m->within)
        return gpq_fail(e, GPQ_EINVAL, "span_end: no transaction");
    MEM_EACH (struct mem_span, span, &m->now, spans) {
        if (span->id != id || span->row.until)
            continue;
        span->row.until = until;
        span->row.until_boot = until_boot;
        return 0;
    }
    return gpq_fail(e, GPQ_ENOTFOUND, "no such span");
}

int mem_marks(struct gpq_store *store, gpq_mark_fn fn, void *user, struct gpq_error *e)
{
    int stopped = 0;

    (void)e;
    MEM_EACH (const struct gpq_mark, mark, &mem_of(store)->now, marks)
        if (!stopped)
            stopped = fn(mark, user);
    return stopped;
}

int mem_spans(struct gpq_store *store, uint64_t since, uint64_t from, gpq_span_fn fn, void *user,
              struct gpq_error *e)
{
    int stopped = 0;

    (void)e;
    MEM_EACH (const struct mem_span, span, &mem_of(store)->now, spans)
        if (!stopped && span->id > from && (!span->row.until || span->row.until >= since))
            stopped = fn(&span->row, user);
    return stopped;
}
