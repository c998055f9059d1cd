/* SPDX-License-Identifier: MIT */
/* state.c - the tables of the store in memory: rows are found by a search through all. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

struct mem_kept {
    struct mem_kept *next;
    max_align_t data[];
};

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

void *mem_grown(void *table, size_t n, size_t size)
{
    char *grown = must(realloc(table, (n + 1) * size));

    memset(grown + n * size, 0, size);
    return grown;
}

void mem_closed_up(void *row, size_t n_behind, size_t size)
{
    memmove(row, (char *)row + size, n_behind * size);
}

static void *copied(const void *table, size_t n, size_t size)
{
    return n ? memcpy(must(malloc(n * size)), table, n * size) : NULL;
}

void mem_copy(struct mem_state *to, const struct mem_state *from)
{
    *to = *from;
#define COPY(type, name) to->name = copied(from->name, from->n_##name, sizeof(type));
    MEM_TABLES(COPY)
#undef COPY
}

void mem_free(struct mem_state *s)
{
#define FREE(type, name) free(s->name);
    MEM_TABLES(FREE)
#undef FREE
    *s = (struct mem_state){ 0 };
}

void *mem_room(struct mem_store *m, size_t size)
{
    struct mem_kept *kept = must(calloc(1, sizeof(*kept) + size));

    kept->next = m->kept;
    m->kept = kept;
    return kept->data;
}

const char *mem_text(struct mem_store *m, const char *text)
{
    return text ? strcpy(mem_room(m, strlen(text) + 1), text) : NULL;
}

struct gpq_bytes mem_bytes(struct mem_store *m, struct gpq_bytes bytes)
{
    if (!bytes.size)
        return (struct gpq_bytes){ 0 };
    return (struct gpq_bytes){ .data = memcpy(mem_room(m, bytes.size), bytes.data, bytes.size),
                               .size = bytes.size };
}

void mem_forget_kept(struct mem_store *m)
{
    while (m->kept) {
        struct mem_kept *next = m->kept->next;

        free(m->kept);
        m->kept = next;
    }
}

bool mem_same(struct gpq_bytes a, struct gpq_bytes b)
{
    return a.size == b.size && (!a.size || !memcmp(a.data, b.data, a.size));
}

struct mem_task *mem_task(struct mem_state *s, uint64_t id)
{
    MEM_EACH (struct mem_task, t, s, tasks)
        if (t->row.id == id)
            return t;
    return NULL;
}

struct mem_batch *mem_batch(struct mem_state *s, uint32_t id)
{
    MEM_EACH (struct mem_batch, b, s, batches)
        if (b->row.id == id)
            return b;
    return NULL;
}

struct mem_spec *mem_spec(struct mem_state *s, uint32_t id)
{
    MEM_EACH (struct mem_spec, spec, s, specs)
        if (spec->id == id)
            return spec;
    return NULL;
}

struct gpq_attempt *mem_attempt(struct mem_state *s, uint64_t task, uint32_t number)
{
    MEM_EACH (struct gpq_attempt, a, s, attempts)
        if (a->task == task && a->number == number)
            return a;
    return NULL;
}

struct mem_task *mem_new_task(struct mem_state *s, uint64_t id)
{
    struct mem_task *t = MEM_ADD(s, tasks);

    for (; t > s->tasks && t[-1].row.id > id; t--)
        *t = t[-1];
    *t = (struct mem_task){ .row.id = id };
    return t;
}

uint32_t mem_new_spec(struct mem_store *m, const struct gpq_spec *spec)
{
    struct mem_spec *new = MEM_ADD(&m->now, specs);

    *new = (struct mem_spec){ .id = ++m->now.last_spec, .spec = *spec };
    new->spec.content = mem_bytes(m, spec->content);
    new->spec.shape = mem_bytes(m, spec->shape);
    new->spec.options = mem_bytes(m, spec->options);
    new->spec.environment = mem_bytes(m, spec->environment);
    new->spec.after = NULL;
    new->spec.n_after = 0;
    new->spec.held = false;
    return new->id;
}

uint32_t mem_shape_of(struct mem_store *m, struct gpq_bytes request)
{
    MEM_EACH (struct mem_shape, shape, &m->now, shapes)
        if (mem_same(shape->request, request))
            return shape->id;

    struct mem_shape *new = MEM_ADD(&m->now, shapes);

    *new = (struct mem_shape){ .id = ++m->now.last_shape, .request = mem_bytes(m, request) };
    return new->id;
}

void mem_set_state(struct mem_task *t, uint32_t state, uint64_t now)
{
    bool was_ready = t->row.state == GPQ_READY;

    if (state == GPQ_READY && !was_ready)
        t->row.ready = now;
    if (state == GPQ_HELD || (state == GPQ_DONE && !was_ready))
        t->row.ready = 0;
    t->row.state = state;
}

bool mem_waits(const struct mem_task *t)
{
    return t->row.state == GPQ_HELD || t->row.state == GPQ_READY;
}

bool mem_is_own(const struct mem_task *t, uint32_t batch)
{
    return GPQ_BATCH_OF(t->row.id) == batch;
}

bool mem_is_in(const struct mem_state *s, uint64_t task, uint32_t batch)
{
    if (GPQ_BATCH_OF(task) == batch)
        return true;
    MEM_EACH (const struct mem_member, member, s, members)
        if (member->batch == batch && member->task == task)
            return true;
    return false;
}

struct gpq_batch mem_count(const struct mem_state *s, const struct mem_batch *b)
{
    struct gpq_batch counted = b->row;

    MEM_EACH (const struct mem_task, t, s, tasks) {
        if (!mem_is_in(s, t->row.id, b->row.id))
            continue;
        counted.total++;
        counted.joined += !mem_is_own(t, b->row.id);
        counted.state[t->row.state]++;
        if (t->row.outcome)
            counted.outcome[t->row.outcome]++;
    }
    return counted;
}

static bool in_list(uint64_t id, const struct gpq_select *which)
{
    for (size_t i = 0; i < which->n_tasks; i++)
        if (which->tasks[i] == id)
            return true;
    return false;
}

bool mem_selected(const struct mem_state *s, const struct mem_task *t,
                  const struct gpq_select *which)
{
    const struct gpq_task *row = &t->row;

    if (which->batch && !mem_is_own(t, which->batch) &&
        !(!which->first && !which->last && mem_is_in(s, row->id, which->batch)))
        return false;
    if (which->batch && GPQ_NUMBER_OF(row->id) < which->first)
        return false;
    if (which->batch && which->last && GPQ_NUMBER_OF(row->id) > which->last)
        return false;
    if (which->n_tasks && !in_list(row->id, which))
        return false;
    if (which->states && !(which->states & 1U << row->state))
        return false;
    if (which->outcomes && !(which->outcomes & 1U << row->outcome))
        return false;
    return !which->spec || which->spec == row->spec;
}
