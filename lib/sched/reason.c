/* SPDX-License-Identifier: MIT */
/*
 * reason.c - why a task does not start, in the numbers of the core.                          [S9]
 *
 * The plan knows no task of a queue but its stream, which stands for the first one that no unused
 * grant is about to take.  A task behind it waits for that one first, and then for the reasons of
 * that one.  The plan has each task with a request of its own.  A task at a worker, and one that
 * waits for its next attempt, are none of the plan.
 */
#include "sched/core.h"
#include "sched/plan.h"

/* ---- numbers of the plan ---- */

/* Returns the oldest task in the cells of the worker, or GPI_NOWHERE. */
static uint32_t first_at(const struct gpi_sched_slot *s)
{
    for (uint64_t n = s->oldest; s->sent && n <= s->number; n++)
        if (gpi_slot_has_number(s, n))
            return s->task[s->order[n % GPI_SLOT_CELLS]];
    return GPI_NOWHERE;
}

/* Returns the task that the stream stands for, or the first one in its grant; or GPI_NOWHERE. */
static uint32_t task_of_stream(const struct gpi_sched *c, uint32_t stream)
{
    const struct gpi_sched_class *k = &c->class[c->stream[stream].class];

    if (k->waiting == stream)
        return gpi_pool_first(k);
    for (uint32_t i = 0; i < c->n_slots; i++)
        if (c->slot[i].granted && c->slot[i].stream == stream)
            return first_at(&c->slot[i]);
    return GPI_NOWHERE;
}

/* Returns the task that has the number of its record in the plan, or GPI_NOWHERE: it has ended, and
 * its worker is not free yet. */
static uint32_t task_of_record(const struct gpi_sched *c, uint32_t i)
{
    const struct gpi_sched_slot *s = &c->slot[c->task[i].slot];
    const bool runs = c->task[i].state == GPI_RECORD_SENT && s->chosen &&
                      s->stream == gpi_own_number(c, i);

    return c->own.task[i].is_bound || runs || c->task[i].state == GPI_RECORD_GRANTED ||
                   gpi_own_waits(c, i)
               ? i
               : GPI_NOWHERE;
}

/* Returns the core's number of a task of the plan.  Behind the streams it has the records, and then
 * the classes that load a worker, as the core has.  No other function converts these numbers. */
static uint32_t task_of(const struct gpi_sched *c, uint32_t number)
{
    if (number == GPI_NOWHERE)
        return GPI_NOWHERE;
    if (number < c->n_streams)
        return task_of_stream(c, number);
    number -= c->n_streams;
    return number < c->set.tasks ? task_of_record(c, number) : number;
}

bool gpi_sched_names_task(uint32_t kind)
{
    switch (kind) {
    case GPI_REASON_PASSED_OVER_BY:
    case GPI_REASON_MEMORY:
    case GPI_REASON_SHARE:
    case GPI_REASON_CPUS:
    case GPI_REASON_HEAD_HOLDS:
    case GPI_REASON_BUSY:
        return true;
    default:
        return false;
    }
}

static uint32_t renumber(const struct gpi_sched *c, struct gpi_plan_reason *row, uint32_t count,
                         uint32_t most)
{
    for (uint32_t i = 0; i < count && i < most; i++)
        if (gpi_sched_names_task(row[i].kind))
            row[i].other = task_of(c, row[i].other);
    return count;
}

/* ---- tasks ---- */

/* A task of the class with this priority, younger than all that wait. */
static struct gpi_plan_task describe(const struct gpi_sched *c, const struct gpi_sched_class *k,
                                     int32_t priority, uint64_t limit)
{
    return (struct gpi_plan_task){ .class = (uint32_t)(k - c->class),
                                   .priority = priority,
                                   .order = c->submitted + 1,
                                   .limit = limit,
                                   .request = k->plan.need,
                                   .n_requests = k->plan.n_needs,
                                   .stream = true };
}

/* A task is in the queue behind `first`.  To the plan it is as one that is not submitted, behind
 * the stream. */
static uint32_t explain_behind(const struct gpi_sched *c, uint64_t now,
                               const struct gpi_sched_class *k, struct gpi_plan_reason *ret,
                               uint32_t n)
{
    const struct gpi_plan_task what = describe(c, k, k->waits_with, GPI_NEVER);

    return gpi_plan_explain(c->plan, now, GPI_NOWHERE, &what, ret, n);
}

/* With a request of its own: as if it were not submitted. */
static uint32_t explain_own(const struct gpi_sched *c, uint64_t now, const struct gpi_sched_task *t,
                            struct gpi_plan_reason *ret, uint32_t n)
{
    struct gpi_plan_task what = describe(c, &c->class[t->class], t->priority, t->limit);

    what.order = t->order ? t->order : what.order;
    what.request = t->request;
    what.n_requests = t->n_requests;
    what.stream = false;
    return gpi_plan_explain(c->plan, now, GPI_NOWHERE, &what, ret, n);
}

/* Tasks of its priority are before it. */
static uint32_t explain_supposed(const struct gpi_sched *c, uint64_t now,
                                 const struct gpi_sched_task *t, struct gpi_plan_reason *ret,
                                 uint32_t n)
{
    const struct gpi_sched_class *k = &c->class[t->class];
    const uint32_t first = gpi_pool_first(k);
    struct gpi_plan_task what;

    if (t->n_requests)
        return explain_own(c, now, t, ret, n);
    if (k->waiting != GPI_NOWHERE && first != GPI_NOWHERE &&
        c->task[first].priority >= t->priority)
        return explain_behind(c, now, k, ret, n);
    what = describe(c, k, t->priority, t->limit);
    return gpi_plan_explain(c->plan, now, GPI_NOWHERE, &what, ret, n);
}

/* Returns true if an unused grant is about to take the task. */
static bool is_granted(const struct gpi_sched_class *k, uint32_t task)
{
    for (uint32_t i = 0; i < k->unused && i < k->queue.count; i++)
        if (gpi_queue_at(&k->queue, i) == task)
            return true;
    return false;
}

static uint32_t explain_queued(const struct gpi_sched *c, uint64_t now, uint32_t task,
                               struct gpi_plan_reason *ret, uint32_t n)
{
    const struct gpi_sched_record *t = &c->task[task];
    const struct gpi_sched_class *k = &c->class[t->class];
    struct gpi_plan_task what;

    if (is_granted(k, task))
        return 0;
    if (k->waiting == GPI_NOWHERE) { /* the plan had no room for one more shape */
        what = describe(c, k, t->priority, t->limit);
        return gpi_plan_explain(c->plan, now, GPI_NOWHERE, &what, ret, n);
    }
    if (gpi_pool_first(k) == task)
        return gpi_plan_explain(c->plan, now, k->waiting, NULL, ret, n);
    return explain_behind(c, now, k, ret, n);
}

static struct gpi_plan_reason row_of(uint32_t device, uint32_t kind, uint32_t other, uint64_t until)
{
    return (struct gpi_plan_reason){
        .device = device, .kind = kind, .other = other, .until = until
    };
}

/* BUSY: its worker has no room for a result, or the task before it with its number has a worker
 * that is not free yet. */
static uint32_t explain_waiting(const struct gpi_sched *c, uint64_t now, uint32_t task,
                                struct gpi_plan_reason *ret, uint32_t n)
{
    const struct gpi_own_task *t = &c->own.task[task];
    const struct gpi_own_shape *s = &c->own.shape[t->shape];
    const struct gpi_sched_task what = { .class = s->class,
                                         .priority = s->priority,
                                         .limit = c->task[task].limit,
                                         .order = c->task[task].number,
                                         .n_requests = s->n_requests,
                                         .request = s->request };
    uint32_t count;

    if (t->known == GPI_OWN_WAITS)
        return gpi_plan_explain(c->plan, now, gpi_own_number(c, task), NULL, ret, n);
    if (t->is_bound && gpi_spread_takes_chosen(c, &c->slot[c->task[task].slot]))
        return 0;
    count = t->is_bound ? 0 : explain_own(c, now, &what, ret, n);
    if (count == 0 && n)
        ret[0] = row_of(GPI_NOWHERE, GPI_REASON_BUSY, GPI_NOWHERE, GPI_NEVER);
    return count ? count : 1;
}

/* It was sent ahead to a worker that has another task to end first. */
static uint32_t explain_sent(const struct gpi_sched *c, uint32_t task, struct gpi_plan_reason *ret,
                             uint32_t n)
{
    const struct gpi_sched_slot *s = &c->slot[c->task[task].slot];
    const uint32_t first = first_at(s);
    uint64_t until = GPI_NEVER;

    if (first == task)
        return 0;
    if (s->running >> c->task[first].cell & 1)
        until = s->soft[c->task[first].cell];
    if (n)
        ret[0] = row_of(s->n_devices ? s->device[0] : GPI_NOWHERE, GPI_REASON_BUSY, first, until);
    return 1;
}

uint32_t gpi_sched_explain(const struct gpi_sched *c, uint64_t now, uint32_t task,
                           const struct gpi_sched_task *what, struct gpi_plan_reason *ret,
                           uint32_t n)
{
    assert(c->plan);
    if (what)
        return renumber(c, ret, explain_supposed(c, now, what, ret, n), n);
    switch ((enum gpi_record_state)c->task[task].state) {
    case GPI_RECORD_QUEUED:
        return renumber(c, ret, explain_queued(c, now, task, ret, n), n);
    case GPI_RECORD_OWN:
        return renumber(c, ret, explain_waiting(c, now, task, ret, n), n);
    case GPI_RECORD_SENT:
        return explain_sent(c, task, ret, n);
    case GPI_RECORD_LATER:
        if (n)
            ret[0] = row_of(GPI_NOWHERE, GPI_REASON_RETRY, GPI_NOWHERE,
                            gpi_heap_key(&c->retries, task));
        return 1;
    default:
        return 0;
    }
}
