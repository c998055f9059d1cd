/* SPDX-License-Identifier: MIT */
/* explain.c - why a task does not start. */
#include <string.h>

#include "queue/agent/lookup.h"
#include "queue/agent/requests.h"

struct explain {
    uint64_t task;
};

const struct gpq_field gpq_explain_fields[] = {
    GPQ_MEMBER(explain, task, TASK, 0, 0),
    { 0 },
};

/* Tasks before this one that are counted: more would keep other clients waiting. */
enum { PLACES = 100000 };

/* ---- Its place in its shape ---- */

struct place {
    uint64_t task;
    uint32_t shape, before, ready;
    bool found;
};

static int one_ready(const struct gpq_task *t, void *user)
{
    struct place *p = user;
    p->found = t->id == p->task;
    p->before += !p->found;
    return p->found;
}

static int one_shape(const struct gpq_shape *s, void *user)
{
    struct place *p = user;
    p->ready = s->id == p->shape ? s->ready : p->ready;
    return s->id == p->shape;
}

static int set_place(struct gpq_call *c, json_t *reply, const struct gpq_task *t)
{
    const struct gpq_engine *engine = c->a->store->engine;
    struct place p = { .task = t->id, .shape = t->shape };
    int code =
        engine->ready(c->a->store, t->shape, INT32_MAX, INT64_MIN, PLACES, one_ready, &p, c->e);
    if (code >= 0)
        code = engine->shapes(c->a->store, one_shape, &p, c->e);
    if (code < 0)
        return code;
    if (p.found && !gpq_reply_set(c, reply, "place", json_integer((json_int_t)p.before + 1)))
        return GPQ_ENOMEM;
    return gpq_reply_set(c, reply, "ready", json_integer((json_int_t)p.ready)) ? 0 : GPQ_ENOMEM;
}

/* ---- What is in the way ---- */

static int one_condition(const struct gpq_after *after, bool met, void *user)
{
    if (met)
        return 0;
    json_t *row = json_pack("{s:o, s:s}", "id", gpq_id_json(after->id), "when",
                            gpq_condition_text(after->condition));
    return json_array_append_new(user, row) == 0 ? 0 : GPQ_ENOMEM;
}

static int one_pause(const struct gpq_mark *m, void *user)
{
    if (strcmp(m->kind, "pause") != 0)
        return 0;
    json_t *row = json_pack("{s:o, s:o, s:I}", "class", gpq_text_json(m->subject), "reason",
                            gpq_text_json(m->text), "since", (json_int_t)m->since);
    return json_array_append_new(user, row) == 0 ? 0 : GPQ_ENOMEM;
}

static int set_waiting(struct gpq_call *c, json_t *reply, const struct gpq_task *t)
{
    json_t *list = json_array();
    int code = list ? c->a->store->engine->marks(c->a->store, one_pause, list, c->e) : GPQ_ENOMEM;
    code = gpq_reply_list(c, reply, "pauses", list, code);
    return code == 0 ? set_place(c, reply, t) : code;
}

static int note_at_once(const struct gpq_batch *b, void *user)
{
    *(uint32_t *)user = b->at_once;
    return 1;
}

/* A RUNNING task may wait, too: for a worker of its class (workers.h). */
static int set_reasons(struct gpq_call *c, json_t *reply, const struct gpq_task *t)
{
    const struct gpq_engine *engine = c->a->store->engine;
    int code = 0;
    json_t *list;
    uint32_t at_once = 0;
    if (t->holds & GPQ_HOLD_TURN)
        code = gpq_batch_read(c->a->store, GPQ_BATCH_OF(t->id), note_at_once, &at_once, c->e);
    if (code >= 0 && at_once != 0)
        code = gpq_reply_set(c, reply, "at_once", json_integer(at_once)) ? 0 : GPQ_ENOMEM;
    if (code >= 0 && t->holds & GPQ_HOLD_AFTER) {
        list = json_array();
        code = list ? engine->after(c->a->store, t->id, one_condition, list, c->e) : GPQ_ENOMEM;
        code = gpq_reply_list(c, reply, "after", list, code);
    }
    if (code < 0 || (t->state != GPQ_READY && t->state != GPQ_RUNNING))
        return code;
    if (t->state == GPQ_READY)
        code = set_waiting(c, reply, t);
    if (code < 0)
        return code;
    list = json_array();
    code = list ? gpq_work_explain(c->a, t, list) : GPQ_ENOMEM;
    if (code == 0 && *c->a->wait_text && t->state == GPQ_READY)
        code = json_array_insert_new(list, 0,
                                     json_pack("{s:s, s:o}", "reason", "STARTS_WAIT", "text",
                                               gpq_text_json(c->a->wait_text))) == 0
                   ? 0
                   : GPQ_ENOMEM;
    return gpq_reply_list(c, reply, "reasons", list, code);
}

/* ---- The whole ---- */

struct copy {
    struct gpq_task task;
    json_t *json;
};

static int copy_task(const struct gpq_task *t, void *user)
{
    struct copy *copy = user;
    copy->task = *t;
    copy->json = gpq_task_json(t, true);
    return 1;
}

json_t *gpq_do_explain(struct gpq_call *c)
{
    struct explain asked = { 0 };
    struct copy copy = { 0 };
    int code = gpq_call_read(c, gpq_explain_fields, &asked);
    if (code == 0)
        code = gpq_task_exists(c, asked.task);
    if (code == 0)
        code = gpq_task_read(c->a->store, asked.task, copy_task, &copy, c->e);
    if (code < 0)
        return NULL;
    json_t *reply = json_pack("{s:o}", "task", copy.json);
    if (!reply || set_reasons(c, reply, &copy.task) < 0) {
        json_decref(reply);
        return c->e->code < 0 ? NULL : gpq_no_memory(c);
    }
    return gpq_reply_end(c, reply);
}
