/* SPDX-License-Identifier: MIT */
/* history.c - the rows of spans: where the time of devices and tasks went. */
#include <string.h>

#include "queue/agent/page.h"

struct spans {
    uint64_t since, until, after;
    uint32_t most;
    json_t *kinds;
};

enum { KINDS_MOST = 16 };

#define AT(member) offsetof(struct spans, member)
const struct gpq_field gpq_spans_fields[] = {
    { "since", GPQ_FIELD_U64, AT(since), 0, INT64_MAX },
    { "until", GPQ_FIELD_U64, AT(until), 0, INT64_MAX },
    { "kinds", GPQ_FIELD_LIST, AT(kinds), 1, KINDS_MOST },
    { "after", GPQ_FIELD_U64, AT(after), 0, INT64_MAX },
    { "most", GPQ_FIELD_U32, AT(most), 1, GPQ_ROWS_MOST },
    { 0 },
};
#undef AT

struct span_page {
    struct gpq_page page;
    const struct spans *asked;
};

static bool is_asked(const struct spans *asked, const struct gpq_span *span)
{
    size_t i;
    json_t *kind;
    if (asked->until != 0 && span->since > asked->until)
        return false;
    json_array_foreach(asked->kinds, i, kind)
    {
        if (json_is_string(kind) && strcmp(json_string_value(kind), span->kind) == 0)
            return true;
    }
    return !asked->kinds;
}

/* A row that goes on has no end; that of a killed agent has none by CLOCK_BOOTTIME. */
static json_t *span_json(const struct gpq_span *span)
{
    json_t *row =
        json_pack("{s:I, s:s, s:s, s:s?, s:o, s:I, s:I, s:s?}", "span", (json_int_t)span->id,
                  "kind", span->kind, "subject", span->subject, "reason", span->reason, "text",
                  gpq_text_json(span->text), "since", (json_int_t)span->since, "since_boot",
                  (json_int_t)span->since_boot, "boot", span->boot);
    if (row && span->until != 0 &&
        json_object_set_new(row, "until", json_integer((json_int_t)span->until)) == 0 &&
        span->until_boot != 0)
        (void)json_object_set_new(row, "until_boot", json_integer((json_int_t)span->until_boot));
    return row;
}

static int one_span(const struct gpq_span *span, void *user)
{
    struct span_page *p = user;
    if (!is_asked(p->asked, span))
        return 0;
    if (gpq_page_is_full(&p->page))
        return 1;
    return gpq_page_add(&p->page, span->id, span_json(span), span->text ? strlen(span->text) : 0);
}

static int check_kinds(struct gpq_call *c, const struct spans *asked)
{
    const struct gpq_at at = { NULL, "kinds", GPQ_NO_INDEX };
    size_t i;
    json_t *kind;
    json_array_foreach(asked->kinds, i, kind)
    {
        if (!json_is_string(kind))
            return gpq_at_fail(&at, c->e, GPQ_EINVAL, "has an item that is no text");
    }
    return 0;
}

json_t *gpq_do_spans(struct gpq_call *c)
{
    struct spans asked = { 0 };
    struct span_page p = { .asked = &asked };
    int code = gpq_call_read(c, gpq_spans_fields, &asked);
    if (code == 0)
        code = check_kinds(c, &asked);
    if (code < 0 || !gpq_page_begin(&p.page, c, asked.most))
        return NULL;
    code = c->a->store->engine->spans(c->a->store, asked.since, asked.after, one_span, &p, c->e);
    json_t *reply = gpq_page_end(&p.page, "spans", code);
    if (reply && p.page.more) /* a number: spans have no ids of tasks */
        (void)gpq_reply_set(c, reply, "next", json_integer((json_int_t)p.page.last));
    return reply ? gpq_reply_end(c, reply) : NULL;
}
