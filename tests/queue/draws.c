/* SPDX-License-Identifier: MIT */
/* draws.c - what a random operation is applied to. */
#include "draws.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

struct gpq_bytes draw_bytes(const char *text)
{
    return (struct gpq_bytes){ .data = text, .size = text ? strlen(text) : 0 };
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

uint64_t draw_task(struct world *w, uint32_t states)
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

uint32_t draw_batch(struct world *w, bool open)
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

struct gpq_task draw_seen(struct world *w, int i, uint64_t id)
{
    struct gpq_task t = { 0 };
    struct gpq_error e;
    const struct gpq_select one = { .tasks = &id, .n_tasks = 1 };

    (void)ENGINE(w, i)->tasks(w->store[i], &one, 0, false, copy_task, &t, &e);
    return t;
}

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

void draw_choice(struct world *w, struct choice *c, uint32_t states)
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

const struct gpq_select *draw_chosen(struct world *w, int i, struct choice *c)
{
    c->which.tasks = c->list;
    c->which.spec = c->spec_of ? draw_seen(w, i, c->spec_of).spec : 0;
    return &c->which;
}

/* ---- A submit ---- */

void draw_spec(struct world *w, struct gpq_spec *spec)
{
    static const char *const content[] = { "class", "class", "class", "other" };
    static const char *const shape[] = { "one", "one", "two", "half" };
    static const int32_t priority[] = { 0, 0, 0, 1, -1, INT32_MAX, INT32_MIN };
    static const uint64_t backoff[] = { 0, 0, 5, 20, UINT64_C(1) << 60 };

    *spec = (struct gpq_spec){
        .content = draw_bytes(PICK(w, content)),
        .shape = draw_bytes(PICK(w, shape)),
        .options = draw_bytes(world_below(w, 2) ? "limit" : NULL),
        .environment = draw_bytes(world_below(w, 2) ? "HOME=/" : "PATH="),
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
        .content = draw_bytes(k && !world_once_in(w, 12) ? k : PICK(w, content)),
        .key = draw_bytes(k),
        .stamp = draw_bytes(PICK(w, stamp)),
    };
    if (world_once_in(w, 300))
        item->spec = SPECS;
    view_add(&w->said, " [%s%s%s stamp %s]", (const char *)item->content.data, k ? " key " : "",
             k ? k : "", item->stamp.data ? (const char *)item->stamp.data : "-");
}

void draw_order(struct world *w, struct order *o)
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
        .options = draw_bytes(world_once_in(w, 3) ? "notify" : NULL),
        .fails_limited = world_once_in(w, 4),
        .notify = world_once_in(w, 3),
        .open = world_once_in(w, 3),
        .join = world_below(w, 3),
        .join_anyway = world_once_in(w, 4),
        .only_try = world_once_in(w, 8),
        .specs = o->spec,
        .items = o->item,
        .n_specs = 1 + (uint32_t)world_below(w, SPECS),
    };
    o->what.n_items = o->what.n_specs + (uint32_t)world_below(w, ITEMS - SPECS + 1);
    if (world_once_in(w, 20))
        o->what.n_items = o->what.n_specs = 0;
    view_add(&w->said, " request %s name %s batch %u at_once %u%s%s%s%s%s%s",
             o->what.request ? o->what.request : "-", o->what.name ? o->what.name : "-",
             o->what.batch, o->what.at_once, o->what.fails_limited ? " limited" : "",
             o->what.notify ? " notify" : "", o->what.open ? " open" : "",
             o->what.join ? " join" : "", o->what.join_anyway ? " anyway" : "",
             o->what.only_try ? " try" : "");
    for (uint32_t i = 0; i < o->what.n_specs; i++) {
        draw_spec(w, &o->spec[i]);
        draw_after(w, o, i);
    }
    for (uint32_t i = 0; i < o->what.n_items; i++)
        draw_item(w, o, i);
}
