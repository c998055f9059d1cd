/* SPDX-License-Identifier: MIT */
/* submit.c - submit and seal: how a batch grows. */
#include "operations.h"
#include "rules.h"

#include <string.h>

/* A submit that is going on. */
struct order {
    struct mem_store *m;
    uint64_t now;
    const struct gpq_submit *what;
    uint32_t batch;
    uint32_t first_spec; /* id of its first spec; the others follow */
    struct gpq_submitted answer;
    struct gpq_placed *placed;
    struct gpq_error *e;
};

static bool same_text(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

static int refuse_item(const struct order *o, const struct gpq_item *item, int code,
                       const char *text)
{
    if (item->line)
        return gpq_fail(o->e, code, "line %u: %s", item->line, text);
    return gpq_fail(o->e, code, "%s", text);
}

/* ---- Whether the submit is allowed ---- */

static int check_numbers(const struct order *o)
{
    const struct gpq_submit *what = o->what;
    const struct mem_batch *b = mem_batch(&o->m->now, what->batch);

    if (what->n_items > INT32_MAX || (b && what->n_items > INT32_MAX - b->numbers))
        return gpq_fail(o->e, GPQ_EINVAL, "more than 2^31 - 1 tasks");
    for (uint32_t i = 0; i < what->n_items; i++)
        if (what->items[i].spec >= what->n_specs)
            return refuse_item(o, &what->items[i], GPQ_EINVAL, "no such spec");
    return 0;
}

static int check_batch(const struct order *o)
{
    const struct mem_batch *b = mem_batch(&o->m->now, o->what->batch);

    if (!o->what->batch)
        return 0;
    if (!b)
        return gpq_fail(o->e, GPQ_ENOTFOUND, "batch %u: not found", o->what->batch);
    if (!b->row.open)
        return gpq_fail(o->e, GPQ_EREFUSED, "batch %u: is not open", o->what->batch);
    return 0;
}

static int check_after(const struct order *o, const struct gpq_after *after)
{
    uint32_t batch = GPQ_BATCH_OF(after->id), number = GPQ_NUMBER_OF(after->id);
    bool found = number ? !!mem_task(&o->m->now, after->id) : !!mem_batch(&o->m->now, batch);

    if (!found)
        return gpq_fail(o->e, GPQ_ENOTFOUND, "--after %u.%u: not found", batch, number);
    if (!number && batch == o->what->batch)
        return gpq_fail(o->e, GPQ_EREFUSED, "--after %u: the batch itself", batch);
    return 0;
}

/* Whether a task has a condition on the end of the batch.  One that is DONE counts: its next round
 * would wait for the batch again. */
static bool batch_is_awaited(const struct order *o)
{
    MEM_EACH (const struct mem_edge, edge, &o->m->now, edges)
        if (edge->after.id == GPQ_TASK(o->batch, 0))
            return true;
    return false;
}

static int check_spec(const struct order *o, const struct gpq_spec *spec)
{
    const struct gpq_after *wrong = NULL; /* the first one by its source */

    for (uint32_t i = 0; i < spec->n_after; i++)
        if (spec->after[i].condition >= GPQ_CONDITIONS)
            return gpq_fail(o->e, GPQ_EINVAL, "--after: no such condition");
    if (spec->n_after && batch_is_awaited(o))
        return gpq_fail(o->e, GPQ_EREFUSED, "--after: tasks wait for batch %u", o->batch);
    for (uint32_t i = 0; i < spec->n_after; i++)
        if (check_after(o, &spec->after[i]) && (!wrong || spec->after[i].id < wrong->id))
            wrong = &spec->after[i];
    return wrong ? check_after(o, wrong) : 0;
}

static int check_specs(const struct order *o)
{
    int code = 0;

    for (uint32_t i = 0; i < o->what->n_specs && !code; i++)
        code = check_spec(o, &o->what->specs[i]);
    return code;
}

/* ---- Joining ---- */

static bool has_the_key(const struct order *o, const struct mem_task *t,
                        const struct gpq_item *item)
{
    const struct gpq_spec *spec = &mem_spec(&o->m->now, t->row.spec)->spec;

    if (t->row.key.size || item->key.size)
        return mem_same(t->row.key, item->key);
    return mem_same(spec->content, o->what->specs[item->spec].content) &&
           mem_same(t->row.content, item->content);
}

/* The last task with the item's key in a batch of this name. */
static struct mem_task *candidate(const struct order *o, const struct gpq_item *item)
{
    struct mem_state *s = &o->m->now;
    const char *name = mem_batch(s, o->batch)->row.name;
    struct mem_task *last = NULL;

    MEM_EACH (struct mem_task, t, s, tasks)
        if (same_text(mem_batch(s, GPQ_BATCH_OF(t->row.id))->row.name, name) &&
            has_the_key(o, t, item))
            last = t;
    return last;
}

static uint32_t how_joined(const struct order *o, const struct mem_task *t,
                           const struct gpq_item *item)
{
    if (t->row.state != GPQ_DONE)
        return GPQ_PLACED_JOINED;
    if (t->row.outcome != GPQ_OUTCOME_SUCCESS)
        return GPQ_PLACED_AGAIN;
    if (t->row.stamp.size && item->stamp.size && !mem_same(t->row.stamp, item->stamp) &&
        !o->what->join_anyway)
        return GPQ_PLACED_CHANGED;
    return GPQ_PLACED_JOINED;
}

static void join(struct order *o, struct mem_task *t, const struct gpq_item *item, uint32_t how)
{
    struct mem_state *s = &o->m->now;

    if (!mem_is_in(s, t->row.id, o->batch))
        *MEM_ADD(s, members) = (struct mem_member){ .batch = o->batch, .task = t->row.id };
    if (how == GPQ_PLACED_AGAIN)
        mem_new_round(o->m, t, o->first_spec + item->spec, o->now, o->what->specs[item->spec].held);
}

/* ---- Adding ---- */

/* Edges lie in the order of task, source, condition; one that is there is not added twice. */
static void add_edge(struct mem_state *s, uint64_t task, struct gpq_after after)
{
    MEM_EACH (const struct mem_edge, edge, s, edges)
        if (edge->task == task && edge->after.id == after.id &&
            edge->after.condition == after.condition)
            return;

    struct mem_edge *edge = MEM_ADD(s, edges);

    for (; edge > s->edges &&
           (edge[-1].task > task ||
            (edge[-1].task == task &&
             (edge[-1].after.id > after.id ||
              (edge[-1].after.id == after.id && edge[-1].after.condition > after.condition))));
         edge--)
        *edge = edge[-1];
    *edge = (struct mem_edge){ .task = task, .after = after };
}

static uint64_t add(struct order *o, const struct gpq_item *item)
{
    struct mem_store *m = o->m;
    const struct gpq_spec *spec = &o->what->specs[item->spec];
    uint64_t id = GPQ_TASK(o->batch, ++mem_batch(&m->now, o->batch)->numbers);
    struct mem_task *t = mem_new_task(&m->now, id);

    t->row.spec = o->first_spec + item->spec;
    t->row.shape = mem_shape_of(m, spec->shape);
    t->row.priority = spec->priority;
    t->row.order = ++m->now.order;
    t->row.round = 1;
    t->row.expires = spec->expires;
    t->row.line = item->line;
    t->row.name = mem_text(m, item->name);
    t->row.content = mem_bytes(m, item->content);
    t->row.key = mem_bytes(m, item->key);
    for (uint32_t i = 0; i < spec->n_after; i++)
        add_edge(&m->now, id, spec->after[i]);
    mem_hold_new(&m->now, t, o->now, spec->held);
    return id;
}

/* ---- The whole ---- */

static int place(struct order *o, uint32_t i)
{
    const struct gpq_item *item = &o->what->items[i];
    struct mem_task *t = o->what->join ? candidate(o, item) : NULL;
    uint32_t how = t ? how_joined(o, t, item) : GPQ_PLACED_ADDED;
    uint64_t id;

    if (t && item->key.size &&
        (!mem_same(t->row.content, item->content) ||
         !mem_same(mem_spec(&o->m->now, t->row.spec)->spec.content,
                   o->what->specs[item->spec].content)))
        return refuse_item(o, item, GPQ_EKEY, "the key belongs to a task with another content");
    if (how == GPQ_PLACED_CHANGED && o->what->changed)
        o->what->changed(i, t->row.stamp, o->what->user);
    if (how == GPQ_PLACED_ADDED || how == GPQ_PLACED_CHANGED) {
        id = add(o, item);
    } else {
        id = t->row.id;
        if (batch_is_awaited(o) && mem_has_edges(&o->m->now, id))
            return refuse_item(o, item, GPQ_EREFUSED,
                               "joins a task with --after, and tasks wait for its batch");
        join(o, t, item, how);
    }
    mem_settle(o->m, o->now);
    o->answer.count[how]++;
    o->placed[i] = (struct gpq_placed){ .task = id, .how = how };
    return 0;
}

/* While the submit goes on the batch is open, so that it does not end in the middle. */
static uint32_t make_batch(const struct order *o)
{
    const struct gpq_submit *what = o->what;
    struct mem_batch *b = MEM_ADD(&o->m->now, batches);

    b->row = (struct gpq_batch){
        .id = ++o->m->now.last_batch,
        .name = mem_text(o->m, what->name),
        .made = o->now,
        .at_once = what->at_once,
        .max_fails = what->max_fails,
        .max_fails_percent = what->max_fails_percent,
        .notify = what->notify,
        .fails_limited = what->fails_limited,
        .open = true,
        .options = mem_bytes(o->m, what->options),
    };
    return b->row.id;
}

static int carry_out(struct order *o)
{
    const struct gpq_submit *what = o->what;
    int code = 0;

    o->batch = what->batch ? what->batch : make_batch(o);
    o->first_spec = o->m->now.last_spec + 1;
    for (uint32_t i = 0; i < what->n_specs; i++)
        (void)mem_new_spec(o->m, &what->specs[i]);
    for (uint32_t i = 0; i < what->n_items && !code; i++)
        code = place(o, i);
    if (!what->batch)
        mem_batch(&o->m->now, o->batch)->row.open = what->open;
    o->answer.batch = o->batch;
    return code;
}

static const struct mem_request *repeated(const struct order *o)
{
    MEM_EACH (const struct mem_request, r, &o->m->now, requests)
        if (same_text(r->id, o->what->request))
            return r;
    return NULL;
}

static void answer_again(const struct mem_request *r, uint32_t n, struct gpq_submitted *ret,
                         struct gpq_placed *placed)
{
    *ret = r->answer;
    ret->repeated = true;
    for (uint32_t i = 0; placed && i < n; i++)
        placed[i] = i < r->n_placed ? r->placed[i] : (struct gpq_placed){ 0 };
}

static void keep_answer(const struct order *o)
{
    if (o->what->request)
        *MEM_ADD(&o->m->now, requests) = (struct mem_request){
            .id = mem_text(o->m, o->what->request),
            .made = o->now,
            .answer = o->answer,
            .placed = o->placed,
            .n_placed = o->what->n_items,
        };
}

int mem_submit(struct gpq_store *store, uint64_t now, const struct gpq_submit *what,
               struct gpq_submitted *ret, struct gpq_placed *placed, struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);
    struct order o = { .m = m, .now = now, .what = what, .batch = what->batch, .e = e };
    struct mem_state before;
    int code;

    if (!m->within)
        return gpq_fail(e, GPQ_EINVAL, "submit: no transaction");
    if (repeated(&o)) {
        answer_again(repeated(&o), what->n_items, ret, placed);
        return 0;
    }
    if ((code = check_batch(&o)) || (code = check_numbers(&o)) || (code = check_specs(&o)))
        return code;
    mem_copy(&before, &m->now);
    o.placed = mem_room(m, what->n_items * sizeof(*o.placed));
    code = carry_out(&o);
    if (code || what->only_try) {
        mem_free(&m->now);
        m->now = before;
    } else {
        mem_free(&before);
        keep_answer(&o);
        mem_done(m, now);
    }
    if (code)
        return code;
    *ret = o.answer;
    if (placed && what->n_items)
        memcpy(placed, o.placed, what->n_items * sizeof(*placed));
    return 0;
}

int mem_seal(struct gpq_store *store, uint64_t now, uint32_t batch, struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);
    struct mem_batch *b = mem_batch(&m->now, batch);

    if (!m->within)
        return gpq_fail(e, GPQ_EINVAL, "seal: no transaction");
    if (!b)
        return gpq_fail(e, GPQ_ENOTFOUND, "batch %u: not found", batch);
    b->row.open = false;
    mem_done(m, now);
    return 0;
}
