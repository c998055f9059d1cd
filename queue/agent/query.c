/* SPDX-License-Identifier: MIT */
/* query.c - the rows of batches and tasks. */
#include <stdlib.h>
#include <string.h>

#include "queue/agent/lookup.h"
#include "queue/agent/page.h"

/* ---- Batches ---- */

struct batches {
    const char *name;
    uint32_t number, after, most;
    bool active;
};

const struct gpq_field gpq_batches_fields[] = {
    GPQ_MEMBER(batches, after, BATCH, 0, 0),
    GPQ_MEMBER(batches, most, U32, 1, GPQ_ROWS_MOST),
    GPQ_MEMBER(batches, name, TEXT, 1, GPQ_NAME_MOST),
    GPQ_MEMBER(batches, number, U32, 1, UINT32_MAX),
    GPQ_MEMBER(batches, active, BOOL, 0, 0),
    { 0 },
};

struct batch_page {
    struct gpq_page page;
    const struct batches *asked;
    uint32_t from; /* the batch that is asked for by its name */
};

/* Without memory it is left out. */
static void set_left(struct gpq_agent *a, const struct gpq_batch *b, json_t *row)
{
    int64_t least, most;
    gpq_now_left(a, b, &least, &most);
    if (row && least >= 0)
        (void)json_object_set_new(row, "left_least", json_integer((json_int_t)least));
    if (row && most >= 0)
        (void)json_object_set_new(row, "left_most", json_integer((json_int_t)most));
}

static int one_batch(const struct gpq_batch *b, void *user)
{
    struct batch_page *p = user;
    if (p->asked->name && b->id != p->from)
        return 1;
    if (p->asked->active && b->ended != 0)
        return 0;
    if (gpq_page_is_full(&p->page))
        return 1;
    json_t *row = gpq_batch_json(b);
    set_left(p->page.c->a, b, row);
    return gpq_page_add(&p->page, GPQ_TASK(b->id, 0), row, b->options.size);
}

json_t *gpq_do_batches(struct gpq_call *c)
{
    const struct gpq_engine *engine = c->a->store->engine;
    struct batches asked = { 0 };
    struct batch_page p = { .asked = &asked };
    int code = gpq_call_read(c, gpq_batches_fields, &asked);
    if (code < 0 || !gpq_page_begin(&p.page, c, asked.name ? 1 : asked.most))
        return NULL;
    if (asked.name)
        code = engine->batch_named(c->a->store, asked.name, asked.number, &p.from, c->e);
    else
        p.from = asked.after + 1;
    if (code == 0)
        code = engine->batches(c->a->store, p.from, one_batch, &p, c->e);
    if (asked.name)
        p.page.more = false;
    return gpq_page_end(&p.page, "batches", code);
}

/* ---- Tasks ---- */

struct tasks {
    struct gpq_which which;
    uint64_t after;
    uint32_t most;
    bool whole;
};

const struct gpq_field gpq_tasks_fields[] = {
    GPQ_WHICH_FIELDS,
    GPQ_MEMBER(tasks, after, TASK, 0, 0),
    GPQ_MEMBER(tasks, most, U32, 1, GPQ_ROWS_MOST),
    GPQ_MEMBER(tasks, whole, BOOL, 0, 0),
    { 0 },
};

struct task_page {
    struct gpq_page page;
    bool whole;
};

static int one_task(const struct gpq_task *t, void *user)
{
    struct task_page *p = user;
    if (gpq_page_is_full(&p->page))
        return 1;
    json_t *row = gpq_task_json(t, p->whole);
    gpq_work_describe(p->page.c->a, t, row);
    return gpq_page_add(&p->page, t->id, row, p->whole ? t->content.size + t->key.size : 0);
}

json_t *gpq_do_tasks(struct gpq_call *c)
{
    struct tasks asked = { 0 };
    struct task_page p;
    int code = gpq_call_read(c, gpq_tasks_fields, &asked);
    if (code == 0)
        code = gpq_which_read_rows(c, &asked.which);
    if (code < 0 || !gpq_page_begin(&p.page, c, asked.most)) {
        gpq_which_free(&asked.which);
        return NULL;
    }
    p.whole = asked.whole;
    code = c->a->store->engine->tasks(c->a->store, &asked.which.select, asked.after, asked.whole,
                                      one_task, &p, c->e);
    gpq_which_free(&asked.which);
    return gpq_page_end(&p.page, "tasks", code);
}

/* ---- One task ---- */

struct task {
    uint64_t task;
    bool environment;
};

const struct gpq_field gpq_task_fields[] = {
    GPQ_MEMBER(task, task, TASK, 0, 0),
    GPQ_MEMBER(task, environment, BOOL, 0, 0),
    { 0 },
};

struct whole_task {
    struct gpq_agent *a;
    json_t *json;
    uint32_t spec;
};

static int whole_task(const struct gpq_task *t, void *user)
{
    struct whole_task *w = user;
    w->json = gpq_task_json(t, true);
    gpq_work_describe(w->a, t, w->json);
    w->spec = t->spec;
    return w->json ? 1 : GPQ_ENOMEM;
}

struct whole_spec {
    json_t *json;
    bool environment;
};

static int whole_spec(const struct gpq_spec *spec, void *user)
{
    struct whole_spec *w = user;
    w->json = gpq_spec_json(spec, w->environment);
    return w->json ? 1 : GPQ_ENOMEM;
}

static int one_after(const struct gpq_after *after, bool met, void *user)
{
    json_t *row = json_pack("{s:o, s:s, s:b}", "id", gpq_id_json(after->id), "when",
                            gpq_condition_text(after->condition), "met", (int)met);
    return json_array_append_new(user, row) == 0 ? 0 : GPQ_ENOMEM;
}

static int set_spec(struct gpq_call *c, json_t *reply, uint32_t spec, bool environment)
{
    struct whole_spec w = { NULL, environment };
    int code = c->a->store->engine->spec(c->a->store, spec, whole_spec, &w, c->e);
    return code < 0 || gpq_reply_set(c, reply, "spec", w.json) ? code : GPQ_ENOMEM;
}

static int set_after(struct gpq_call *c, json_t *reply, uint64_t task)
{
    json_t *list = json_array();
    int code =
        list ? c->a->store->engine->after(c->a->store, task, one_after, list, c->e) : GPQ_ENOMEM;
    return gpq_reply_list(c, reply, "after", list, code);
}

json_t *gpq_do_task(struct gpq_call *c)
{
    struct task asked = { 0 };
    struct whole_task w = { .a = c->a };
    int code = gpq_call_read(c, gpq_task_fields, &asked);
    if (code == 0)
        code = gpq_task_exists(c, asked.task);
    if (code == 0)
        code = gpq_task_read(c->a->store, asked.task, whole_task, &w, c->e);
    if (code < 0)
        return NULL;
    code = set_spec(c, w.json, w.spec, asked.environment);
    if (code >= 0)
        code = set_after(c, w.json, asked.task);
    json_t *reply = json_object();
    if (code < 0 || !reply) {
        json_decref(w.json);
        json_decref(reply);
        return c->e->code < 0 ? NULL : gpq_no_memory(c);
    }
    (void)gpq_reply_set(c, reply, "task", w.json);
    return gpq_reply_end(c, reply);
}
