/* SPDX-License-Identifier: MIT */
/* steps.c - short forms of a store's operations. */
#include "steps.h"

#include <stdio.h>
#include <string.h>

#include "view.h"

/* A case has one store at a time. */
static bool within;

void step_begin(struct gpq_store *s)
{
    struct gpq_error e;

    T_EQ(s->engine->begin(s, &e), 0);
    within = true;
}

void step_commit(struct gpq_store *s)
{
    struct gpq_error e;

    T_EQ(s->engine->commit(s, &e), 0);
    within = false;
}

void step_rollback(struct gpq_store *s)
{
    s->engine->rollback(s);
    within = false;
}

/* Runs an operation, in a transaction of its own unless one is open.  A refusal has a text. */
#define STEP(s, call)                     \
    __extension__({                       \
        struct gpq_error e = { 0 };       \
        bool own = !within;               \
        if (own)                          \
            step_begin(s);                \
        int64_t code = (s)->engine->call; \
        if (code < 0) {                   \
            T_EQ(e.code, code);           \
            T_CHECK(e.text[0]);           \
        }                                 \
        if (own)                          \
            step_commit(s);               \
        code;                             \
    })

static int64_t must(int64_t code)
{
    T_CMP(code, >=, 0);
    return code;
}

static struct gpq_bytes bytes(const char *text, size_t size)
{
    return (struct gpq_bytes){ .data = text, .size = size };
}

static struct gpq_bytes bytes_of(const char *text)
{
    return bytes(text, text ? strlen(text) : 0);
}

static struct gpq_spec spec_of(const struct sketch *what)
{
    struct gpq_spec spec = {
        .content = bytes_of(what->content ? what->content : "class"),
        .shape = bytes_of(what->shape ? what->shape : "1 gpu"),
        .priority = what->priority,
        .backoff = what->backoff,
        .backoff_cap = what->backoff_cap,
        .begin = what->begin,
        .expires = what->expires,
        .after = what->after,
        .at_most_once = what->once,
        .held = what->held,
    };

    memcpy(spec.retries, what->retries, sizeof(spec.retries));
    while (spec.n_after < AFTERS && what->after[spec.n_after].id)
        spec.n_after++;
    return spec;
}

int try_submit(struct gpq_store *s, const struct sketch *what, struct gpq_submitted *ret)
{
    enum { ITEMS = 64 };
    struct gpq_item items[ITEMS] = { 0 };
    struct gpq_spec spec = spec_of(what);
    struct gpq_submitted answer;
    struct gpq_submit order = {
        .request = what->request,
        .name = what->name,
        .batch = what->batch,
        .at_once = what->at_once,
        .max_fails = what->max_fails,
        .max_fails_percent = what->percent,
        .fails_limited = what->fails_limited,
        .open = what->open,
        .join = what->join,
        .join_anyway = what->join_anyway,
        .only_try = what->only_try,
        .notify = what->notify,
        .specs = &spec,
        .items = items,
        .n_specs = 1,
    };

    for (const char *at = what->items; at && *at; at += strspn(at, " ")) {
        T_CMP(order.n_items, <, ITEMS);
        items[order.n_items++] = (struct gpq_item){
            .line = what->line,
            .name = what->task_name,
            .content = bytes(at, strcspn(at, " ")),
            .key = bytes_of(what->key),
            .stamp = bytes_of(what->stamp),
        };
        at += strcspn(at, " ");
    }
    return (int)STEP(s,
                     submit(s, what->at ? what->at : NOW, &order, ret ? ret : &answer, NULL, &e));
}

uint32_t submit(struct gpq_store *s, const struct sketch *what)
{
    struct gpq_submitted answer;

    T_EQ(try_submit(s, what, &answer), 0);
    return answer.batch;
}

const char *placed(struct gpq_store *s, const struct sketch *what)
{
    static char text[64];
    struct gpq_submitted answer;

    T_EQ(try_submit(s, what, &answer), 0);
    (void)snprintf(text, sizeof(text), "%u %u %u %u", answer.count[GPQ_PLACED_ADDED],
                   answer.count[GPQ_PLACED_JOINED], answer.count[GPQ_PLACED_AGAIN],
                   answer.count[GPQ_PLACED_CHANGED]);
    return text;
}

void seal(struct gpq_store *s, uint32_t id)
{
    must(STEP(s, seal(s, NOW, id, &e)));
}

int64_t try_claim(struct gpq_store *s, uint64_t id)
{
    return STEP(s, claim(s, NOW, id, "0", "boot 1", &e));
}

uint32_t claim(struct gpq_store *s, uint64_t id)
{
    return (uint32_t)must(try_claim(s, id));
}

int try_complete(struct gpq_store *s, const struct gpq_end *what)
{
    return (int)STEP(s, complete(s, what, &e));
}

int end(struct gpq_store *s, uint64_t id, uint32_t outcome, uint64_t at)
{
    const struct gpq_end what = {
        .task = id, .attempt = task(s, id).attempt, .outcome = outcome, .ended = at
    };

    return (int)must(try_complete(s, &what));
}

int try_return(struct gpq_store *s, const struct gpq_back *back)
{
    return (int)STEP(s, give_back(s, NOW, back, &e));
}

int try_give_back(struct gpq_store *s, uint64_t id, uint32_t attempt, uint32_t why)
{
    const struct gpq_back back = { .task = id, .attempt = attempt, .why = why, .text = "because" };

    return try_return(s, &back);
}

int run(struct gpq_store *s, uint64_t id, uint32_t outcome)
{
    (void)claim(s, id);
    return end(s, id, outcome, NOW);
}

int64_t cancel(struct gpq_store *s, const struct gpq_select *which)
{
    return must(STEP(s, cancel(s, NOW, which, &e)));
}

int64_t retry(struct gpq_store *s, const struct gpq_select *which, uint64_t at)
{
    return must(STEP(s, retry(s, at, which, &e)));
}

int64_t hold(struct gpq_store *s, const struct gpq_select *which, bool held)
{
    return must(STEP(s, hold(s, NOW, which, held, &e)));
}

int64_t respec(struct gpq_store *s, const struct gpq_select *which, const struct gpq_spec *spec)
{
    return must(STEP(s, respec(s, NOW, which, spec, &e)));
}

int64_t first(struct gpq_store *s, const struct gpq_select *which)
{
    return must(STEP(s, first(s, which, &e)));
}

int64_t due(struct gpq_store *s, uint64_t at, uint64_t *ret_next)
{
    return must(STEP(s, due(s, at, ret_next, &e)));
}

int64_t purge(struct gpq_store *s, uint64_t before, bool keep_failed, uint32_t most)
{
    return must(STEP(s, purge(s, before, keep_failed, most, NULL, &e)));
}

/* ---- What is shown ---- */

struct line {
    char text[512];
    size_t n;
};

static struct line *line_new(void)
{
    static struct line lines[8];
    static unsigned next;
    struct line *l = &lines[next++ % T_LENGTH(lines)];

    l->text[0] = '\0';
    l->n = 0;
    return l;
}

#define LINE_ADD(l, ...) \
    ((l)->n += (size_t)snprintf((l)->text + (l)->n, sizeof((l)->text) - (l)->n, __VA_ARGS__))

static int copy_task(const struct gpq_task *t, void *user)
{
    *(struct gpq_task *)user = *t;
    return 1;
}

struct gpq_task task(struct gpq_store *s, uint64_t id)
{
    struct gpq_task t = { 0 };
    struct gpq_error e;

    T_EQ(s->engine->tasks(s, ONE(id), 0, false, copy_task, &t, &e), 1);
    T_CHECK(t.id == id);
    t.name = NULL;
    t.content = t.key = t.stamp = (struct gpq_bytes){ 0 };
    return t;
}

const char *shown(struct gpq_store *s, uint64_t id)
{
    static const char *const hold_text[] = { "after", "time", "user", "turn" };
    struct gpq_task t = task(s, id);
    struct line *l = line_new();

    LINE_ADD(l, "%s", gpq_state_text(t.state));
    for (uint32_t i = 0; i < T_LENGTH(hold_text); i++)
        if (t.holds & 1U << i)
            LINE_ADD(l, " %s", hold_text[i]);
    if (t.state == GPQ_RUNNING)
        LINE_ADD(l, " %u", t.attempt);
    if (t.outcome)
        LINE_ADD(l, " %s", gpq_outcome_text(t.outcome));
    if (t.cause)
        LINE_ADD(l, " by %s", view_id(t.cause));
    if (t.cancel && t.state == GPQ_RUNNING)
        LINE_ADD(l, " cancel");
    return l->text;
}

static int add_id(const struct gpq_task *t, void *user)
{
    struct line *l = user;

    LINE_ADD(l, "%s%s", l->n ? " " : "", view_id(t->id));
    return 0;
}

struct shapes {
    uint32_t id[16], n;
};

static int add_shape(const struct gpq_shape *shape, void *user)
{
    struct shapes *shapes = user;

    shapes->id[shapes->n++] = shape->id;
    return 0;
}

const char *ready(struct gpq_store *s)
{
    struct line *l = line_new();
    struct shapes shapes = { 0 };
    struct gpq_error e;

    T_EQ(s->engine->shapes(s, add_shape, &shapes, &e), 0);
    for (uint32_t i = 0; i < shapes.n; i++)
        T_EQ(s->engine->ready(s, shapes.id[i], INT32_MAX, INT64_MIN, UINT32_MAX, add_id, l, &e), 0);
    return l->text;
}

const char *next_turn(struct gpq_store *s, uint32_t batch)
{
    struct line *l = line_new();
    struct gpq_error e;

    T_EQ(s->engine->turn(s, batch, add_id, l, &e), 0);
    return l->text;
}

const char *listed(struct gpq_store *s, const struct gpq_select *which)
{
    struct line *l = line_new();
    struct gpq_error e;

    T_EQ(s->engine->tasks(s, which, 0, false, add_id, l, &e), 0);
    return l->text;
}

static int copy_batch(const struct gpq_batch *b, void *user)
{
    *(struct gpq_batch *)user = *b;
    return 1;
}

struct gpq_batch batch(struct gpq_store *s, uint32_t id)
{
    struct gpq_batch b = { 0 };
    struct gpq_error e;

    T_EQ(s->engine->batches(s, id, copy_batch, &b, &e), 1);
    T_EQ(b.id, id);
    b.name = NULL;
    b.options = (struct gpq_bytes){ 0 };
    return b;
}

bool batch_is_there(struct gpq_store *s, uint32_t id)
{
    struct gpq_batch b = { 0 };
    struct gpq_error e;

    (void)s->engine->batches(s, id, copy_batch, &b, &e);
    return b.id == id;
}

static int add_round(const struct gpq_round *r, void *user)
{
    struct line *l = user;

    LINE_ADD(l, "%s%u: %s at attempt %u", l->n ? ", " : "", r->round, gpq_outcome_text(r->outcome),
             r->attempt);
    return 0;
}

const char *rounds(struct gpq_store *s, uint64_t id)
{
    struct line *l = line_new();
    struct gpq_error e;

    T_EQ(s->engine->rounds(s, id, add_round, l, &e), 0);
    return l->text;
}
