/* SPDX-License-Identifier: MIT */
/*
 * own.c - pooled: tasks with a request of their own, which the plan starts one by one.
 *
 * Such a task is in no queue.  It waits in the plan under a number of its own.  Tasks of one class,
 * priority and request share a shape, which stays until the last of them has ended.
 *
 * Nothing here feeds the plan while it acts: tasks that have come, or wait no more, are listed, and
 * the next decision feeds them.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/core.h"
#include "sched/plan.h"

#define HEADS (2 * GPI_OWN_SHAPES) /* of the chains of shapes: a power of 2 */

int gpi_own_make(struct gpi_sched *c)
{
    struct gpi_own *o = &c->own;

    if (!c->set.pooled)
        return 0;
    o->shape = malloc(sizeof *o->shape * GPI_OWN_SHAPES);
    o->chain = malloc(sizeof *o->chain * HEADS);
    o->task = calloc(c->set.tasks, sizeof *o->task);
    if (!o->shape || !o->chain || !o->task)
        return -1;
    for (uint32_t i = 0; i < HEADS; i++)
        o->chain[i] = GPI_NOWHERE;
    for (uint32_t i = 0; i < GPI_OWN_SHAPES; i++)
        o->shape[i].next = i + 1 < GPI_OWN_SHAPES ? i + 1 : GPI_NOWHERE;
    o->first = GPI_NOWHERE;
    return 0;
}

void gpi_own_free(struct gpi_sched *c)
{
    free(c->own.shape);
    free(c->own.chain);
    free(c->own.task);
}

/* ---- shapes ---- */

static uint32_t head_of(const struct gpi_sched_task *what)
{
    uint64_t h = what->class * 31u + (uint32_t)what->priority;

    for (uint32_t i = 0; i < what->n_requests; i++) {
        const struct gpi_request *r = &what->request[i];
        h = h * 31 + r->devices + r->share * 7u + r->cpus * 11u + r->places;
        h = h * 31 + r->memory / 4096 + r->host_memory / 4096 + r->compute;
    }
    return (uint32_t)((h * 0x9e3779b97f4a7c15u) >> 40) & (HEADS - 1);
}

static bool is_shape(const struct gpi_own_shape *s, const struct gpi_sched_task *what)
{
    bool same = s->class == what->class && s->priority == what->priority &&
                s->n_requests == what->n_requests;

    for (uint32_t i = 0; same && i < s->n_requests; i++)
        same = gpi_request_same(&s->request[i], &what->request[i]);
    return same;
}

static uint32_t find(const struct gpi_own *o, const struct gpi_sched_task *what)
{
    uint32_t i = o->chain[head_of(what)];

    while (i != GPI_NOWHERE && !is_shape(&o->shape[i], what))
        i = o->shape[i].next;
    return i;
}

bool gpi_own_has_room(const struct gpi_sched *c, const struct gpi_sched_task *what)
{
    return c->own.free_shape != GPI_NOWHERE || find(&c->own, what) != GPI_NOWHERE;
}

static uint32_t make(struct gpi_own *o, const struct gpi_sched_task *what)
{
    const uint32_t i = o->free_shape;
    struct gpi_own_shape *s = &o->shape[i];

    assert(i != GPI_NOWHERE && what->n_requests <= GPI_VARIANTS);
    o->free_shape = s->next;
    *s = (struct gpi_own_shape){ .class = what->class,
                                 .priority = what->priority,
                                 .n_requests = what->n_requests,
                                 .head = head_of(what) };
    memcpy(s->request, what->request, sizeof *s->request * what->n_requests);
    s->next = o->chain[s->head];
    o->chain[s->head] = i;
    return i;
}

static void drop(struct gpi_own *o, uint32_t i)
{
    struct gpi_own_shape *s = &o->shape[i];
    uint32_t *link = &o->chain[s->head];

    if (--s->tasks)
        return;
    while (*link != i)
        link = &o->shape[*link].next;
    *link = s->next;
    s->next = o->free_shape;
    o->free_shape = i;
}

void gpi_own_mark_places(const struct gpi_sched *c, bool *used)
{
    for (uint32_t k = 0; k < HEADS; k++)
        for (uint32_t i = c->own.chain[k]; i != GPI_NOWHERE; i = c->own.shape[i].next)
            for (uint32_t j = 0; j < c->own.shape[i].n_requests; j++)
                used[c->own.shape[i].request[j].places] = true;
}

/* ---- tasks ---- */

static void list(struct gpi_sched *c, uint32_t task)
{
    struct gpi_own *o = &c->own;

    c->undecided = true;
    if (o->task[task].is_listed)
        return;
    o->task[task].is_listed = true;
    o->task[task].next = GPI_NOWHERE;
    *(o->first == GPI_NOWHERE ? &o->first : &o->task[o->last].next) = task;
    o->last = task;
}

void gpi_own_begin(struct gpi_sched *c, uint32_t task, const struct gpi_sched_task *what)
{
    const uint32_t found = find(&c->own, what);
    const uint32_t shape = found == GPI_NOWHERE ? make(&c->own, what) : found;

    c->task[task].own = true;
    c->own.task[task].shape = shape;
    c->own.shape[shape].tasks++;
}

void gpi_own_end(struct gpi_sched *c, uint32_t task)
{
    c->task[task].own = false;
    drop(&c->own, c->own.task[task].shape);
}

void gpi_own_wait(struct gpi_sched *c, uint32_t task)
{
    struct gpi_sched_record *t = &c->task[task];

    t->state = GPI_RECORD_OWN;
    c->class[t->class].n_own++;
    list(c, task);
}

/* The worker that was to have the task gets none: its grant is over. */
static void release(struct gpi_sched *c, uint32_t task)
{
    struct gpi_sched_slot *s = &c->slot[c->task[task].slot];

    gpi_own_unbind(c, s);
    gpi_ring_touch(c, s);
}

void gpi_own_leave(struct gpi_sched *c, uint32_t task)
{
    struct gpi_own_task *t = &c->own.task[task];

    c->class[c->task[task].class].n_own--;
    if (t->is_bound)
        release(c, task);
    t->is_gone = t->known == GPI_OWN_WAITS;
    if (t->is_gone)
        list(c, task);
}

/* ---- workers ---- */

static uint32_t task_of(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    return s->stream - c->n_streams;
}

void gpi_own_bind(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const uint32_t task = task_of(c, s), slot = gpi_slot_number(c, s);

    c->own.task[task].known = GPI_OWN_RUNS;
    c->own.task[task].is_bound = true;
    c->task[task].slot = (uint16_t)slot;
    s->chosen = true;
    c->own.bound[slot / 64] |= 1ull << slot % 64;
    c->own.n_bound++;
}

void gpi_own_unbind(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const uint32_t task = task_of(c, s), slot = gpi_slot_number(c, s);

    if (!c->own.task[task].is_bound)
        return;
    c->own.task[task].is_bound = false;
    c->own.bound[slot / 64] &= ~(1ull << slot % 64);
    c->own.n_bound--;
    s->fresh = false;
}

void gpi_own_sent(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    c->class[c->task[task_of(c, s)].class].n_own--;
    gpi_own_unbind(c, s);
}

void gpi_own_ended(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    gpi_own_unbind(c, s);
    s->chosen = false;
    gpi_own_over(c, task_of(c, s));
}

/* ---- without a worker ---- */

void gpi_own_run(struct gpi_sched *c, uint32_t task)
{
    struct gpi_own_task *t = &c->own.task[task];
    struct gpi_sched_class *k = &c->class[c->task[task].class];

    if (t->known == GPI_OWN_NOTHING) { /* it is adopted */
        t->class = c->task[task].class;
        k->n_planned++;
    }
    t->known = GPI_OWN_RUNS;
    k->n_own--;
}

void gpi_own_over(struct gpi_sched *c, uint32_t task)
{
    c->own.task[task].known = GPI_OWN_NOTHING;
    c->class[c->own.task[task].class].n_planned--;
    if (c->task[task].state == GPI_RECORD_OWN)
        list(c, task);
}

/* ---- the plan ---- */

bool gpi_own_waits(const struct gpi_sched *c, uint32_t task)
{
    return c->own.task[task].known == GPI_OWN_WAITS && !c->own.task[task].is_gone;
}

void gpi_own_hopeless(struct gpi_sched *c, uint32_t task)
{
    c->own.task[task].is_hopeless = true;
    list(c, task);
}

bool gpi_own_is_hopeless(const struct gpi_sched *c, uint32_t task)
{
    return c->own.task[task].is_hopeless && !c->own.task[task].is_gone;
}

bool gpi_own_withdraw(struct gpi_sched *c, uint32_t task)
{
    struct gpi_own_task *t = &c->own.task[task];

    if (!t->is_gone)
        return false;
    t->known = GPI_OWN_NOTHING;
    t->is_gone = t->is_hopeless = false;
    c->class[t->class].n_planned--;
    gpi_plan_withdraw(c->plan, c->now, gpi_own_number(c, task));
    return true;
}

uint32_t gpi_own_unlist(struct gpi_sched *c)
{
    const uint32_t task = c->own.first;

    if (task != GPI_NOWHERE) {
        c->own.first = c->own.task[task].next;
        c->own.task[task].is_listed = false;
    }
    return task;
}

bool gpi_own_submit(struct gpi_sched *c, uint32_t task)
{
    const struct gpi_sched_record *r = &c->task[task];
    struct gpi_own_task *t = &c->own.task[task];
    const struct gpi_own_shape *s = &c->own.shape[t->shape];
    const struct gpi_plan_task what = { .class = s->class,
                                        .priority = s->priority,
                                        .order = r->number,
                                        .limit = r->limit,
                                        .request = s->request,
                                        .n_requests = s->n_requests };
    bool has_room;

    if (r->state != GPI_RECORD_OWN || t->known != GPI_OWN_NOTHING)
        return false;
    has_room = gpi_plan_submit(c->plan, c->now, gpi_own_number(c, task), &what);
    assert(has_room); /* for as many shapes as there are here */
    (void)has_room;
    t->known = GPI_OWN_WAITS;
    t->class = (uint8_t)s->class;
    c->class[s->class].n_planned++;
    return true;
}
