/* SPDX-License-Identifier: MIT */
/* operations.c - the random operations of a world.  Few names and few tasks, so that they meet. */
#include "world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PICK(w, list) ((list)[world_below((w), T_LENGTH(list))])
#define EACH_STORE(i) for (int i = 0; i < STORES; i++)
#define ENGINE(w, i) ((w)->store[i]->engine)
#define ANY ((1U << GPQ_HELD) | (1U << GPQ_READY) | (1U << GPQ_RUNNING) | (1U << GPQ_DONE))

uint64_t world_below(struct world *w, uint64_t n)
{
    uint64_t z = w->lot += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

bool world_once_in(struct world *w, uint64_t n)
{
    return !world_below(w, n);
}

static struct gpq_bytes bytes_of(const char *text)
{
    return (struct gpq_bytes){ .data = text, .size = text ? strlen(text) : 0 };
}

static void returned(struct world *w, int i, int64_t code, const struct gpq_error *e)
{
    view_add(&w->got[i], "returned %" PRId64 "\n", code);
    if (code < 0 && (e->code != code || !e->text[0]))
        view_add(&w->got[i], "without its error\n");
}

/* ---- Drawing what an operation is applied to ---- */

struct found {
    uint64_t id[512];
    size_t n;
    uint32_t states;
};

static int note_task(const struct gpq_task *t, void *user)
{
    struct found *f = user;

    if (f->states & 1U << t->state && f->n < T_LENGTH(f->id))
        f->id[f->n++] = t->id;
    return 0;
}

/* A task in one of these states; now and then another one, or none. */
static uint64_t draw_task(struct world *w, uint32_t states)
{
    struct found f = { .states = world_once_in(w, 30) ? ANY : states };
    struct gpq_error e;

    if (!world_once_in(w, 60))
        (void)ENGINE(w, MODEL)->tasks(w->store[MODEL], &(const struct gpq_select){ 0 }, 0, false,
                                      note_task, &f, &e);
    if (!f.n)
        return GPQ_TASK(world_below(w, 4), world_below(w, 4));
    return f.id[world_below(w, f.n)];
}

static int note_open(const struct gpq_batch *b, void *user)
{
    struct found *f = user;

    if ((b->open || !f->states) && f->n < T_LENGTH(f->id))
        f->id[f->n++] = b->id;
    return 0;
}

static uint32_t draw_batch(struct world *w, bool open)
{
    struct found f = { .states = open && !world_once_in(w, 20) };
    struct gpq_error e;

    (void)ENGINE(w, MODEL)->batches(w->store[MODEL], 0, note_open, &f, &e);
    if (!f.n || world_once_in(w, 40))
        return (uint32_t)world_below(w, 9);
    return (uint32_t)f.id[world_below(w, f.n)];
}

static int copy_task(const struct gpq_task *t, void *user)
{
    *(struct gpq_task *)user = *t;
    return 1;
}

static struct gpq_task task_in(struct world *w, int i, uint64_t id)
{
    struct gpq_task t = { 0 };
    struct gpq_error e;
    const struct gpq_select one = { .tasks = &id, .n_tasks = 1 };

    (void)ENGINE(w, i)->tasks(w->store[i], &one, 0, false, copy_task, &t, &e);
    return t;
}

struct choice {
    struct gpq_select which;
    uint64_t list[3];
    uint64_t spec_of; /* the spec is that of this task; 0 = any spec */
};

static int by_id(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void draw_list(struct world *w, struct choice *c, uint32_t states)
{
    size_t n = 0;

    for (size_t i = 1 + world_below(w, T_LENGTH(c->list)); i > 0; i--)
        c->list[n++] = draw_task(w, states);
    qsort(c->list, n, sizeof(c->list[0]), by_id);
    for (size_t i = 0; i < n; i++)
        if (!c->which.n_tasks || c->list[c->which.n_tasks - 1] != c->list[i])
            c->list[c->which.n_tasks++] = c->list[i];
    view_add(&w->said, " tasks");
    for (size_t i = 0; i < c->which.n_tasks; i++)
        view_add(&w->said, " %s", view_id(c->list[i]));
}

static void draw_choice(struct world *w, struct choice *c, uint32_t states)
{
    *c = (struct choice){ 0 };
    if (!world_once_in(w, 12)) {
        if (world_below(w, 2)) {
            draw_list(w, c, states);
        } else {
            c->which.batch = draw_batch(w, false);
            view_add(&w->said, " batch %u", c->which.batch);
        }
    }
    if (c->which.batch && world_once_in(w, 3)) {
        c->which.first = (uint32_t)world_below(w, 3);
        c->which.last = (uint32_t)world_below(w, 4);
        view_add(&w->said, " %u-%u", c->which.first, c->which.last);
    }
    if (world_once_in(w, 6)) {
        c->which.states = (uint32_t)world_below(w, 16) << 1;
        view_add(&w->said, " states %#x", c->which.states);
    }
    if (world_once_in(w, 6)) {
        c->which.outcomes = (uint32_t)world_below(w, 256) << 1;
        view_add(&w->said, " outcomes %#x", c->which.outcomes);
    }
    if (world_once_in(w, 10)) {
        c->spec_of = draw_task(w, ANY);
        view_add(&w->said, " spec of %s", view_id(c->spec_of));
    }
}

static const struct gpq_select *choice_in(struct world *w, int i, struct choice *c)
{
    c->which.tasks = c->list;
    c->which.spec = c->spec_of ? task_in(w, i, c->spec_of).spec : 0;
    return &c->which;
}

/* ---- Submit and seal ---- */

enum { SPECS = 2, ITEMS = 4, AFTERS = 3 };

struct order {
    struct gpq_submit what;
    struct gpq_spec spec[SPECS];
    struct gpq_after after[SPECS][AFTERS];
    struct gpq_item item[ITEMS];
};

static void draw_spec(struct world *w, struct gpq_spec *spec)
{
    static const char *const content[] = { "class", "class", "class", "other" };
    static const char *const shape[] = { "one", "one", "two", "half" };
    static const int32_t priority[] = { 0, 0, 0, 1, -1, INT32_MAX, INT32_MIN };
    static const uint64_t backoff[] = { 0, 0, 5, 20, UINT64_C(1) << 60 };

    *spec = (struct gpq_spec){
        .content = bytes_of(PICK(w, content)),
        .shape = bytes_of(PICK(w, shape)),
        .options = bytes_of(world_below(w, 2) ? "limit" : NULL),
        .environment = bytes_of(world_below(w, 2) ? "HOME=/" : "PATH="),
        .priority = PICK(w, priority),
        .backoff = PICK(w, backoff),
        .backoff_cap = world_below(w, 2) ? 0 : 15,
        .begin = world_once_in(w, 6) ? w->now + world_below(w, 30) : 0,
        .expires = world_once_in(w, 6) ? w->now + world_below(w, 60) : 0,
        .at_most_once = world_once_in(w, 6),
        .held = world_once_in(w, 10),
    };
    for (uint32_t i = 0; i < GPQ_CAUSES; i++)
        spec->retries[i] = (uint32_t)world_below(w, 3);
    view_add(&w->said, " {%s %s priority %d begin %" PRIu64 " expires %" PRIu64 "%s%s",
             (const char *)spec->content.data, (const char *)spec->shape.data, spec->priority,
             spec->begin, spec->expires, spec->at_most_once ? " once" : "",
             spec->held ? " held" : "");
    view_add(&w->said, "}");
}

static void draw_after(struct world *w, struct order *o, uint32_t index)
{
    struct gpq_spec *spec = &o->spec[index];

    if (world_below(w, 3))
        return;
    spec->after = o->after[index];
    for (uint64_t n = 1 + world_below(w, AFTERS); n > 0; n--) {
        struct gpq_after *a = &o->after[index][spec->n_after++];

        a->id = world_once_in(w, 3) ? GPQ_TASK(draw_batch(w, false), 0) : draw_task(w, ANY);
        a->condition = (uint32_t)world_below(w, GPQ_CONDITIONS);
        if (world_once_in(w, 300))
            a->condition = GPQ_CONDITIONS;
        view_add(&w->said, " after %s %s", view_id(a->id), gpq_condition_text(a->condition));
    }
}

static void draw_item(struct world *w, struct order *o, uint32_t index)
{
    static const char *const content[] = { "x", "y", "z", "w" };
    static const char *const key[] = { NULL, NULL, NULL, "k", "l" };
    static const char *const stamp[] = { NULL, "1", "2" };
    struct gpq_item *item = &o->item[index];
    const char *k = PICK(w, key);

    *item = (struct gpq_item){
        .spec = index % o->what.n_specs,
        .line = (uint32_t)world_below(w, 3),
        .name = world_below(w, 2) ? "task" : NULL,
        /* A key with a content of its own is rare: it refuses the whole submit. */
        .content = bytes_of(k && !world_once_in(w, 12) ? k : PICK(w, content)),
        .key = bytes_of(k),
        .stamp = bytes_of(PICK(w, stamp)),
    };
    if (world_once_in(w, 300))
        item->spec = SPECS;
    view_add(&w->said, " [%s%s%s stamp %s]", (const char *)item->content.data, k ? " key " : "",
             k ? k : "", item->stamp.data ? (const char *)item->stamp.data : "-");
}

static void draw_order(struct world *w, struct order *o)
{
    static const char *const name[] = { NULL, "a", "a", "b" };
    static const char *const request[] = { NULL, NULL, NULL, NULL, "r1", "r2", "r3" };

    *o = (struct order){ 0 };
    o->what = (struct gpq_submit){
        .request = PICK(w, request),
        .name = PICK(w, name),
        .batch = world_once_in(w, 3) ? draw_batch(w, true) : 0,
        .at_once = world_once_in(w, 4) ? 1 + (uint32_t)world_below(w, 2) : 0,
        .max_fails = (uint32_t)world_below(w, 2),
        .max_fails_percent = world_once_in(w, 5) ? (uint32_t)world_below(w, 101) : 0,
        .options = bytes_of(world_once_in(w, 3) ? "notify" : NULL),
        .fails_limited = world_once_in(w, 4),
        .open = world_once_in(w, 3),
        .join = world_below(w, 3),
        .join_anyway = world_once_in(w, 4),
        .specs = o->spec,
        .items = o->item,
        .n_specs = 1 + (uint32_t)world_below(w, SPECS),
    };
    o->what.n_items = o->what.n_specs + (uint32_t)world_below(w, ITEMS - SPECS + 1);
    if (world_once_in(w, 20))
        o->what.n_items = o->what.n_specs = 0;
    view_add(&w->said, " request %s name %s batch %u at_once %u%s%s%s%s",
             o->what.request ? o->what.request : "-", o->what.name ? o->what.name : "-",
             o->what.batch, o->what.at_once, o->what.fails_limited ? " limited" : "",
             o->what.open ? " open" : "", o->what.join ? " join" : "",
             o->what.join_anyway ? " anyway" : "");
    for (uint32_t i = 0; i < o->what.n_specs; i++) {
        draw_spec(w, &o->spec[i]);
        draw_after(w, o, i);
    }
    for (uint32_t i = 0; i < o->what.n_items; i++)
        draw_item(w, o, i);
}

static void op_submit(struct world *w)
{
    struct order o;

    view_add(&w->said, "submit");
    draw_order(w, &o);
    EACH_STORE (i) {
        struct gpq_placed placed[ITEMS] = { 0 };
        struct gpq_submitted ret = { .batch = 999 };
        struct gpq_error e = { 0 };
        int code = ENGINE(w, i)->submit(w->store[i], w->now, &o.what, &ret, placed, &e);

        returned(w, i, code, &e);
        view_add(&w->got[i], "batch %u added %u joined %u again %u changed %u%s\n", ret.batch,
                 ret.count[0], ret.count[1], ret.count[2], ret.count[3],
                 ret.repeated ? " repeated" : "");
        for (uint32_t k = 0; !code && !ret.repeated && k < o.what.n_items; k++)
            view_add(&w->got[i], "placed %s %u\n", view_id(placed[k].task), placed[k].how);
    }
}

static void op_seal(struct world *w)
{
    uint32_t batch = draw_batch(w, true);

    view_add(&w->said, "seal %u", batch);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->seal(w->store[i], w->now, batch, &e), &e);
    }
}

/* ---- Attempts ---- */

static void op_claim(struct world *w)
{
    uint64_t task = draw_task(w, 1U << GPQ_READY);
    const char *devices = world_below(w, 2) ? "0,1" : NULL;

    view_add(&w->said, "claim %s", view_id(task));
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->claim(w->store[i], w->now, task, devices, "boot", &e), &e);
    }
}

static uint32_t draw_attempt(struct world *w, uint64_t task)
{
    uint32_t attempt = task_in(w, MODEL, task).attempt;

    return world_once_in(w, 15) ? attempt + 1 - 2 * (uint32_t)world_below(w, 2) : attempt;
}

static void op_complete(struct world *w)
{
    static const uint32_t outcome[] = { 1, 1, 1, 1, 2, 2, 2, 3, 4, 5 };
    static const char *const stamp[] = { NULL, "1", "2" };
    struct gpq_end end = {
        .task = draw_task(w, 1U << GPQ_RUNNING),
        .outcome = world_once_in(w, 200) ? 7 : PICK(w, outcome),
        .oom = world_once_in(w, 4),
        .final = world_once_in(w, 6),
        .status = (int32_t)world_below(w, 3) - 1,
        .text = world_below(w, 2) ? "so" : NULL,
        .started = w->now - 1,
        .ended = w->now,
        .result = bytes_of(world_once_in(w, 3) ? "result" : NULL),
        .result_file = world_once_in(w, 6) ? "file" : NULL,
        .result_size = 7,
        .stamp = bytes_of(PICK(w, stamp)),
        .shape = bytes_of(world_once_in(w, 5) ? "bigger" : NULL),
    };

    end.attempt = draw_attempt(w, end.task);
    view_add(&w->said, "complete %s attempt %u %s%s%s", view_id(end.task), end.attempt,
             gpq_outcome_text(end.outcome), end.oom ? " oom" : "", end.final ? " final" : "");
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->complete(w->store[i], &end, &e), &e);
    }
}

static void op_give_back(struct world *w)
{
    uint64_t task = draw_task(w, 1U << GPQ_RUNNING);
    uint32_t attempt = draw_attempt(w, task), why = (uint32_t)world_below(w, GPQ_RETURNS);

    if (world_once_in(w, 200))
        why = GPQ_RETURNS;
    view_add(&w->said, "give back %s attempt %u why %u", view_id(task), attempt, why);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->give_back(w->store[i], w->now, task, attempt, why, "text", &e),
                 &e);
    }
}

/* ---- Changes of many ---- */

#define WAITING ((1U << GPQ_HELD) | (1U << GPQ_READY))

static void op_cancel(struct world *w)
{
    struct choice c;

    view_add(&w->said, "cancel");
    draw_choice(w, &c, WAITING | 1U << GPQ_RUNNING);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->cancel(w->store[i], w->now, choice_in(w, i, &c), &e), &e);
    }
}

static void op_retry(struct world *w)
{
    struct choice c;

    view_add(&w->said, "retry");
    draw_choice(w, &c, 1U << GPQ_DONE);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->retry(w->store[i], w->now, choice_in(w, i, &c), &e), &e);
    }
}

static void op_hold(struct world *w)
{
    struct choice c;
    bool held = world_below(w, 2);

    view_add(&w->said, held ? "hold" : "release");
    draw_choice(w, &c, WAITING);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->hold(w->store[i], w->now, choice_in(w, i, &c), held, &e), &e);
    }
}

static void op_respec(struct world *w)
{
    struct choice c;
    struct gpq_spec spec;

    view_add(&w->said, "respec");
    draw_choice(w, &c, WAITING);
    draw_spec(w, &spec);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->respec(w->store[i], w->now, choice_in(w, i, &c), &spec, &e),
                 &e);
    }
}

static void op_first(struct world *w)
{
    struct choice c;

    view_add(&w->said, "first");
    draw_choice(w, &c, WAITING);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->first(w->store[i], choice_in(w, i, &c), &e), &e);
    }
}

static void op_due(struct world *w)
{
    view_add(&w->said, "due");
    EACH_STORE (i) {
        uint64_t next = 999;
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->due(w->store[i], w->now, &next, &e), &e);
        view_add(&w->got[i], "next %" PRIu64 "\n", next);
    }
}

static void op_purge(struct world *w)
{
    uint64_t before = w->now - world_below(w, 100);
    bool keep_failed = world_below(w, 2);
    uint32_t most = world_below(w, 2) ? 1000 : (uint32_t)world_below(w, 4);

    view_add(&w->said, "purge before %" PRIu64 "%s most %u", before,
             keep_failed ? " keep failed" : "", most);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->purge(w->store[i], before, keep_failed, most, &e), &e);
    }
}

/* ---- Facts ---- */

static void op_mark(struct world *w)
{
    static const char *const kind[] = { "pause", "drain" };
    static const char *const subject[] = { "", "gpu 0" };
    const struct gpq_mark mark = { .kind = PICK(w, kind),
                                   .subject = PICK(w, subject),
                                   .text = world_below(w, 2) ? "why" : NULL,
                                   .since = w->now };
    bool set = world_below(w, 2);

    view_add(&w->said, "%s %s '%s'", set ? "mark" : "unmark", mark.kind, mark.subject);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i,
                 set ? ENGINE(w, i)->mark(w->store[i], &mark, &e)
                     : ENGINE(w, i)->unmark(w->store[i], mark.kind, mark.subject, &e),
                 &e);
    }
}

static void op_span(struct world *w)
{
    const struct gpq_span span = { .kind = "device",
                                   .subject = "0",
                                   .since = w->now,
                                   .reason = world_below(w, 2) ? "kept" : NULL,
                                   .text = world_below(w, 2) ? "for 1.2" : NULL,
                                   .until = world_once_in(w, 3) ? w->now : 0,
                                   .since_boot = 5 };
    uint32_t at = w->n_spans ? (uint32_t)world_below(w, w->n_spans) : 0;
    bool begin = at == w->n_spans || (w->n_spans < SPANS && world_below(w, 2));

    view_add(&w->said, begin ? "span begins" : "span ends");
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        if (begin)
            returned(w, i,
                     ENGINE(w, i)->span_begin(w->store[i], &span, &w->span[w->n_spans][i], &e), &e);
        else
            returned(w, i, ENGINE(w, i)->span_end(w->store[i], w->span[at][i], w->now, &e), &e);
    }
    w->n_spans += begin;
}

void world_operate(struct world *w)
{
    static const struct {
        uint32_t weight;
        void (*run)(struct world *w);
    } operation[] = {
        { 18, op_submit }, { 22, op_claim }, { 20, op_complete }, { 7, op_give_back },
        { 4, op_seal },    { 5, op_cancel }, { 7, op_retry },     { 6, op_hold },
        { 4, op_respec },  { 4, op_first },  { 7, op_due },       { 4, op_purge },
        { 1, op_mark },    { 1, op_span },
    };
    uint64_t total = 0, at, i = 0;

    for (size_t k = 0; k < T_LENGTH(operation); k++)
        total += operation[k].weight;
    for (at = world_below(w, total); at >= operation[i].weight; i++)
        at -= operation[i].weight;
    operation[i].run(w);
}
