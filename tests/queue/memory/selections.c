/* SPDX-License-Identifier: MIT */
/* selections.c - what changes many tasks at a time: cancel, retry, hold, respec, first, due. */
#include "operations.h"
#include "rules.h"

#include <stdlib.h>

static int outside(const struct mem_store *m, struct gpq_error *e)
{
    return m->within ? 0 : gpq_fail(e, GPQ_EINVAL, "change: no transaction");
}

static bool is_chosen(const struct mem_store *m, const struct mem_task *t,
                      const struct gpq_select *which)
{
    return mem_selected(&m->now, t, which);
}

int64_t mem_cancel(struct gpq_store *store, uint64_t now, const struct gpq_select *which,
                   struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);
    int64_t n = 0;

    if (outside(m, e))
        return GPQ_EINVAL;
    MEM_EACH (struct mem_task, t, &m->now, tasks) {
        if (!is_chosen(m, t, which))
            continue;
        if (mem_waits(t)) {
            mem_end(t, GPQ_OUTCOME_CANCELLED, 0, now);
            n++;
        } else if (t->row.state == GPQ_RUNNING && !t->row.cancel) {
            t->row.cancel = t->wished = t->touched = true;
            n++;
        }
    }
    mem_done(m, now);
    if (which->batch && !which->first && !which->last && !which->n_tasks && !which->states &&
        !which->outcomes && !which->spec)
        (void)mem_seal(store, now, which->batch, NULL);
    return n;
}

int64_t mem_retry(struct gpq_store *store, uint64_t now, const struct gpq_select *which,
                  struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);
    int64_t n = 0;

    if (outside(m, e))
        return GPQ_EINVAL;
    MEM_EACH (struct mem_task, t, &m->now, tasks) {
        if (!is_chosen(m, t, which) || t->row.state != GPQ_DONE ||
            (t->row.outcome == GPQ_OUTCOME_SUCCESS && !which->outcomes))
            continue;
        mem_new_round(m, t, t->row.spec, now, false);
        if (t->row.expires <= now)
            t->row.expires = 0;
        n++;
    }
    mem_done(m, now);
    return n;
}

static bool is_whole_batch(const struct gpq_select *which)
{
    return which->batch && !which->first && !which->last && !which->n_tasks && !which->states &&
           !which->outcomes && !which->spec;
}

int64_t mem_hold(struct gpq_store *store, uint64_t now, const struct gpq_select *which, bool held,
                 struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);
    struct mem_batch *b = mem_batch(&m->now, which->batch);
    int64_t n = 0;

    if (outside(m, e))
        return GPQ_EINVAL;
    if (b && is_whole_batch(which))
        b->row.held = held;
    MEM_EACH (struct mem_task, t, &m->now, tasks) {
        if (!is_chosen(m, t, which) || !mem_waits(t) || held == !!(t->row.holds & GPQ_HOLD_USER))
            continue;
        t->row.holds ^= GPQ_HOLD_USER;
        t->row.holds &= ~(uint32_t)GPQ_HOLD_TURN;
        mem_place(&m->now, t, now);
        n++;
    }
    mem_done(m, now);
    return n;
}

static bool has_content(struct mem_store *m, const struct mem_task *t, const struct gpq_spec *spec)
{
    return mem_same(mem_spec(&m->now, t->row.spec)->spec.content, spec->content);
}

int64_t mem_respec(struct gpq_store *store, uint64_t now, const struct gpq_select *which,
                   const struct gpq_spec *spec, struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);
    int64_t n = 0;

    if (outside(m, e))
        return GPQ_EINVAL;

    MEM_EACH (struct mem_task, t, &m->now, tasks)
        if (is_chosen(m, t, which) && mem_waits(t) && !has_content(m, t, spec))
            return gpq_fail(e, GPQ_EINVAL, "spec.content is not that of task %llu",
                            (unsigned long long)t->row.id);

    uint32_t id = mem_new_spec(m, spec);

    MEM_EACH (struct mem_task, t, &m->now, tasks) {
        if (!is_chosen(m, t, which) || !mem_waits(t))
            continue;
        t->row.spec = id;
        t->row.shape = mem_shape_of(m, spec->shape);
        t->row.priority = spec->priority;
        t->row.expires = spec->expires;
        t->touched = t->row.state == GPQ_READY;
        n++;
    }
    mem_done(m, now);
    return n;
}

static int by_order(const void *a, const void *b)
{
    const struct mem_task *x = *(struct mem_task *const *)a, *y = *(struct mem_task *const *)b;

    return (x->row.order > y->row.order) - (x->row.order < y->row.order);
}

int64_t mem_first(struct gpq_store *store, const struct gpq_select *which, struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);
    struct mem_task **chosen;
    int64_t n = 0;

    if (outside(m, e))
        return GPQ_EINVAL;
    chosen = calloc(m->now.n_tasks + 1, sizeof(struct mem_task *));
    if (!chosen)
        abort();
    MEM_EACH (struct mem_task, t, &m->now, tasks)
        if (is_chosen(m, t, which) && mem_waits(t))
            chosen[n++] = t;
    qsort(chosen, (size_t)n, sizeof(struct mem_task *), by_order);
    m->now.low -= n;
    for (int64_t i = 0; i < n; i++) {
        chosen[i]->row.order = m->now.low + i;
        chosen[i]->touched = chosen[i]->row.state == GPQ_READY;
    }
    free(chosen);
    mem_done(m, 0);
    return n;
}

/* The next time at which the task is due; 0 = none. */
static uint64_t next_time(const struct mem_task *t)
{
    uint64_t begin = t->row.holds & GPQ_HOLD_TIME ? t->row.not_before : 0;
    uint64_t expires = mem_waits(t) ? t->row.expires : 0;

    return begin && (!expires || begin < expires) ? begin : expires;
}

int64_t mem_due(struct gpq_store *store, uint64_t now, uint64_t *ret_next, struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);
    int64_t n = 0;

    if (outside(m, e))
        return GPQ_EINVAL;
    MEM_EACH (struct mem_task, t, &m->now, tasks) {
        if (!(t->row.holds & GPQ_HOLD_TIME) || t->row.not_before > now)
            continue;
        t->row.holds &= ~(uint32_t)GPQ_HOLD_TIME;
        t->row.not_before = 0;
        mem_place(&m->now, t, now);
        n++;
    }
    MEM_EACH (struct mem_task, t, &m->now, tasks) {
        if (!mem_waits(t) || !t->row.expires || t->row.expires > now)
            continue;
        mem_end(t, GPQ_OUTCOME_TIMEOUT, 0, now);
        n++;
    }
    mem_done(m, now);
    *ret_next = 0;
    MEM_EACH (const struct mem_task, t, &m->now, tasks) {
        uint64_t next = next_time(t);

        if (next && (!*ret_next || next < *ret_next))
            *ret_next = next;
    }
    return n;
}
