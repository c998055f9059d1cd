/* SPDX-License-Identifier: MIT */
/* results.c - how tasks ended: their results, attempts and rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/agent/base64.h"
#include "queue/agent/page.h"
#include "queue/files/files.h"

/* ---- Results ---- */

struct results {
    struct gpq_which which;
    uint64_t after;
    uint32_t most;
};

const struct gpq_field gpq_results_fields[] = {
    GPQ_WHICH_FIELDS,
    GPQ_MEMBER(results, after, TASK, 0, 0),
    GPQ_MEMBER(results, most, U32, 1, GPQ_ROWS_MOST),
    { 0 },
};

/* Tasks that have ended: their results are read behind them, as a reader may call no reader. */
struct ended {
    struct gpq_page page;
    uint64_t *id;
};

static int one_ended(const struct gpq_task *t, void *user)
{
    struct ended *d = user;
    size_t n = json_array_size(d->page.rows);
    if (gpq_page_is_full(&d->page))
        return 1;
    d->id[n] = t->id;
    return gpq_page_add(&d->page, t->id, gpq_task_json(t, true), t->content.size + t->key.size);
}

struct row {
    json_t *json;
    size_t bytes;
    int fault;
};

static int one_result(const struct gpq_result *r, void *user)
{
    struct row *row = user;
    char path[GPQ_PATH];
    row->fault = json_object_set_new(row->json, "size", json_integer((json_int_t)r->size));
    if (row->fault != 0)
        return 1;
    if (r->file) {
        (void)snprintf(path, sizeof(path), "results/%s", r->file);
        row->fault = json_object_set_new(row->json, "file", gpq_text_json(path));
    } else {
        json_t *text = gpq_bytes_text(r->data);
        row->fault = text ? json_object_set_new(row->json, "text", text)
                          : json_object_set_new(row->json, "base64", gpq_base64_json(r->data));
        row->bytes = r->data.size;
    }
    return 1;
}

/* Adds the results, and ends the page where they are too much for one reply. */
static int set_results(struct gpq_call *c, struct ended *d)
{
    size_t n = json_array_size(d->page.rows), i = 0;
    int code = 0;
    for (; code == 0 && i < n && (i == 0 || d->page.bytes < 2 * GPQ_PAGE_BYTES); i++) {
        struct row row = { .json = json_array_get(d->page.rows, i) };
        code = c->a->store->engine->result(c->a->store, d->id[i], one_result, &row, c->e);
        code = code > 0 ? 0 : code; /* 0: a command without one */
        if (row.fault != 0) {
            (void)gpq_no_memory(c);
            code = GPQ_ENOMEM;
        }
        d->page.bytes += row.bytes;
    }
    if (code < 0 || i == n)
        return code;
    while (json_array_size(d->page.rows) > i)
        (void)json_array_remove(d->page.rows, json_array_size(d->page.rows) - 1);
    d->page.last = d->id[i - 1];
    d->page.more = true;
    return 0;
}

json_t *gpq_do_results(struct gpq_call *c)
{
    struct results asked = { 0 };
    struct ended d = { 0 };
    json_t *reply = NULL;
    int code = gpq_call_read(c, gpq_results_fields, &asked);
    if (code == 0)
        code = gpq_which_read_rows(c, &asked.which);
    if (code == 0 && gpq_page_begin(&d.page, c, asked.most)) {
        asked.which.select.states = 1U << GPQ_DONE;
        d.id = calloc(d.page.most, sizeof(*d.id));
        code = d.id ? c->a->store->engine->tasks(c->a->store, &asked.which.select, asked.after,
                                                 true, one_ended, &d, c->e)
                    : GPQ_ENOMEM;
        if (!d.id)
            (void)gpq_no_memory(c);
        if (code >= 0)
            code = set_results(c, &d);
        reply = gpq_page_end(&d.page, "results", code);
    }
    gpq_which_free(&asked.which);
    free(d.id);
    return reply;
}

/* ---- Attempts ---- */

struct attempts {
    uint64_t task;
    uint32_t after, most;
};

const struct gpq_field gpq_attempts_fields[] = {
    GPQ_MEMBER(attempts, task, TASK, 0, 0),
    GPQ_MEMBER(attempts, after, U32, 0, UINT32_MAX),
    GPQ_MEMBER(attempts, most, U32, 1, GPQ_ROWS_MOST),
    { 0 },
};

struct attempt_page {
    struct gpq_page page;
    uint32_t after;
};

static int one_attempt(const struct gpq_attempt *a, void *user)
{
    struct attempt_page *p = user;
    if (a->number <= p->after)
        return 0;
    if (gpq_page_is_full(&p->page))
        return 1;
    return gpq_page_add(&p->page, a->number, gpq_attempt_json(a), 0);
}

static int one_round(const struct gpq_round *r, void *user)
{
    json_t *row = json_pack("{s:I, s:s, s:I, s:I}", "round", (json_int_t)r->round, "outcome",
                            gpq_outcome_text(r->outcome), "attempt", (json_int_t)r->attempt,
                            "ended", (json_int_t)r->ended);
    if (row && r->cause != 0)
        (void)json_object_set_new(row, "cause", gpq_id_json(r->cause));
    return json_array_append_new(user, row) == 0 ? 0 : GPQ_ENOMEM;
}

json_t *gpq_do_attempts(struct gpq_call *c)
{
    const struct gpq_engine *engine = c->a->store->engine;
    struct attempts asked = { 0 };
    struct attempt_page p = { 0 };
    int code = gpq_call_read(c, gpq_attempts_fields, &asked);
    if (code == 0)
        code = gpq_task_exists(c, asked.task);
    if (code < 0 || !gpq_page_begin(&p.page, c, asked.most))
        return NULL;
    p.after = asked.after;
    code = engine->attempts(c->a->store, asked.task, one_attempt, &p, c->e);
    json_t *rounds = code < 0 ? NULL : json_array();
    if (rounds)
        code = engine->rounds(c->a->store, asked.task, one_round, rounds, c->e);
    bool more = p.page.more;
    p.page.more = false; /* "next" is a number here */
    json_t *reply = gpq_page_end(&p.page, "attempts", code);
    if (!reply) {
        json_decref(rounds);
        return c->e->code < 0 ? NULL : gpq_no_memory(c);
    }
    if (gpq_reply_set(c, reply, "rounds", rounds) && more)
        (void)gpq_reply_set(c, reply, "next", json_integer((json_int_t)p.page.last));
    return gpq_reply_end(c, reply);
}
