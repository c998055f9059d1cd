/* SPDX-License-Identifier: MIT */
/* readers.c - the readers of batches and tasks. */
#include "operations.h"

#include <stdlib.h>
#include <string.h>

#include "rules.h"

int mem_batches(struct gpq_store *store, uint32_t from, gpq_batch_fn fn, void *user,
                struct gpq_error *e)
{
    struct mem_state *s = &mem_of(store)->now;
    int stopped = 0;

    (void)e;
    MEM_EACH (const struct mem_batch, b, s, batches) {
        struct gpq_batch counted = mem_count(s, b);

        if (!stopped && counted.id >= from)
            stopped = fn(&counted, user);
    }
    return stopped;
}

int mem_batch_named(struct gpq_store *store, const char *name, uint32_t number, uint32_t *ret_batch,
                    struct gpq_error *e)
{
    uint32_t last = 0;

    MEM_EACH (const struct mem_batch, b, &mem_of(store)->now, batches)
        if (b->row.name && !strcmp(b->row.name, name) &&
            (!number || mem_task(&mem_of(store)->now, GPQ_TASK(b->row.id, number))))
            last = b->row.id;
    if (!last)
        return gpq_fail(e, GPQ_ENOTFOUND, "batch %s: not found", name);
    *ret_batch = last;
    return 0;
}

static int give(const struct gpq_task *row, bool whole, gpq_task_fn fn, void *user)
{
    struct gpq_task shown = *row;

    if (!whole) {
        shown.line = 0;
        shown.name = NULL;
        shown.content = shown.key = shown.stamp = (struct gpq_bytes){ 0 };
    }
    return fn(&shown, user);
}

int mem_tasks(struct gpq_store *store, const struct gpq_select *which, uint64_t after, bool whole,
              gpq_task_fn fn, void *user, struct gpq_error *e)
{
    struct mem_state *s = &mem_of(store)->now;
    int stopped = 0;

    (void)e;
    MEM_EACH (const struct mem_task, t, s, tasks)
        if (!stopped && t->row.id > after && mem_selected(s, t, which))
            stopped = give(&t->row, whole, fn, user);
    return stopped;
}

/* Whether a comes before b in the order of Q7. */
static bool precedes(const struct gpq_task *a, const struct gpq_task *b)
{
    return a->priority > b->priority || (a->priority == b->priority && a->order < b->order);
}

/* The first READY task of the shape behind this place; NULL = none. */
static const struct gpq_task *next_ready(const struct mem_state *s, uint32_t shape,
                                         const struct gpq_task *place)
{
    const struct gpq_task *next = NULL;

    MEM_EACH (const struct mem_task, t, s, tasks)
        if (t->row.state == GPQ_READY && t->row.shape == shape && precedes(place, &t->row) &&
            (!next || precedes(&t->row, next)))
            next = &t->row;
    return next;
}

int mem_ready(struct gpq_store *store, uint32_t shape, int32_t priority, int64_t order,
              uint32_t most, gpq_task_fn fn, void *user, struct gpq_error *e)
{
    const struct mem_state *s = &mem_of(store)->now;
    const struct gpq_task start = { .priority = priority, .order = order }, *place = &start;
    int stopped = 0;

    (void)e;
    while (most-- && !stopped && (place = next_ready(s, shape, place)))
        stopped = give(place, false, fn, user);
    return stopped;
}

int mem_turn(struct gpq_store *store, uint32_t batch, gpq_task_fn fn, void *user,
             struct gpq_error *e)
{
    const struct mem_task *next = mem_next_in_turn(&mem_of(store)->now, batch);

    (void)e;
    return next ? give(&next->row, false, fn, user) : 0;
}

int mem_shapes(struct gpq_store *store, gpq_shape_fn fn, void *user, struct gpq_error *e)
{
    const struct mem_state *s = &mem_of(store)->now;
    const struct gpq_task start = { .priority = INT32_MAX, .order = INT64_MIN };
    int stopped = 0;

    (void)e;
    MEM_EACH (const struct mem_shape, shape, s, shapes) {
        const struct gpq_task *first = next_ready(s, shape->id, &start);
        struct gpq_shape row = { .id = shape->id, .request = shape->request };

        if (stopped || !first)
            continue;
        row.priority = first->priority;
        row.order = first->order;
        MEM_EACH (const struct mem_task, t, s, tasks)
            row.ready += t->row.state == GPQ_READY && t->row.shape == shape->id;
        stopped = fn(&row, user);
    }
    return stopped;
}

int mem_shape(struct gpq_store *store, uint32_t id, gpq_shape_fn fn, void *user,
              struct gpq_error *e)
{
    const struct mem_state *s = &mem_of(store)->now;
    struct gpq_shape row = { .id = id };
    bool used = false;

    MEM_EACH (const struct mem_task, t, s, tasks)
        used = used || t->row.shape == id;
    MEM_EACH (const struct mem_shape, shape, s, shapes)
        if (used && shape->id == id) {
            row.request = shape->request;
            return fn(&row, user);
        }
    return gpq_fail(e, GPQ_ENOTFOUND, "there is no shape %u", id);
}

int mem_running(struct gpq_store *store, gpq_attempt_fn fn, void *user, struct gpq_error *e)
{
    struct mem_state *s = &mem_of(store)->now;
    int stopped = 0;

    (void)e;
    MEM_EACH (const struct mem_task, t, s, tasks)
        if (!stopped && t->row.state == GPQ_RUNNING)
            stopped = fn(mem_attempt(s, t->row.id, t->row.attempt), user);
    return stopped;
}

int mem_attempts(struct gpq_store *store, uint64_t task, gpq_attempt_fn fn, void *user,
                 struct gpq_error *e)
{
    int stopped = 0;

    (void)e;
    MEM_EACH (const struct gpq_attempt, a, &mem_of(store)->now, attempts)
        if (!stopped && a->task == task)
            stopped = fn(a, user);
    return stopped;
}

int mem_rounds(struct gpq_store *store, uint64_t task, gpq_round_fn fn, void *user,
               struct gpq_error *e)
{
    int stopped = 0;

    (void)e;
    MEM_EACH (const struct mem_round, round, &mem_of(store)->now, rounds)
        if (!stopped && round->task == task)
            stopped = fn(&round->row, user);
    return stopped;
}

int mem_after(struct gpq_store *store, uint64_t task,
              int (*fn)(const struct gpq_after *a, bool met, void *user), void *user,
              struct gpq_error *e)
{
    int stopped = 0;

    (void)e;
    MEM_EACH (const struct mem_edge, edge, &mem_of(store)->now, edges)
        if (!stopped && edge->task == task)
            stopped = fn(&edge->after, edge->met, user);
    return stopped;
}

int mem_spec_row(struct gpq_store *store, uint32_t id,
                 int (*fn)(const struct gpq_spec *spec, void *user), void *user,
                 struct gpq_error *e)
{
    const struct mem_spec *spec = mem_spec(&mem_of(store)->now, id);

    if (!spec)
        return gpq_fail(e, GPQ_ENOTFOUND, "spec %u: not found", id);
    return fn(&spec->spec, user);
}

int mem_result(struct gpq_store *store, uint64_t task, gpq_result_fn fn, void *user,
               struct gpq_error *e)
{
    struct mem_state *s = &mem_of(store)->now;
    int stopped = 0;

    (void)e;
    MEM_EACH (const struct mem_result, r, s, results)
        if (!stopped && r->row.task == task && r->round == mem_task(s, task)->row.round)
            stopped = fn(&r->row, user);
    return stopped;
}

int mem_names_file(struct gpq_store *store, uint64_t task, uint32_t attempt, struct gpq_error *e)
{
    (void)e;
    MEM_EACH (const struct mem_result, r, &mem_of(store)->now, results)
        if (r->row.task == task && r->row.attempt == attempt && r->row.file)
            return 1;
    return 0;
}

int mem_result_files(struct gpq_store *store, gpq_result_fn fn, void *user, struct gpq_error *e)
{
    int stopped = 0;

    (void)e;
    MEM_EACH (const struct mem_result, r, &mem_of(store)->now, results)
        if (!stopped && r->row.file)
            stopped = fn(&r->row, user);
    return stopped;
}

int64_t mem_check(struct gpq_store *store, uint64_t now, bool repair, gpq_finding_fn fn, void *user,
                  struct gpq_error *e)
{
    (void)store;
    (void)now;
    (void)repair;
    (void)fn;
    (void)user;
    (void)e;
    return 0;
}
