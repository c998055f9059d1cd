/* SPDX-License-Identifier: MIT */
/* purge.c - purge: which tasks are forgotten, and all that hangs on them. */
#include "operations.h"
#include "rules.h"

#include <stdio.h>
#include <string.h>

/* Forgets each row for which a condition on `row` holds. */
#define FORGET(type, s, table, condition)                              \
    for (type *row = (s)->table + (s)->n_##table; row > (s)->table;) { \
        row--;                                                         \
        if (condition)                                                 \
            MEM_DROP(s, table, row);                                   \
    }

static bool lies_in_ended_batches(const struct mem_state *s, uint64_t task)
{
    MEM_EACH (const struct mem_batch, b, s, batches)
        if (mem_is_in(s, task, b->row.id) && !b->row.ended)
            return false;
    return true;
}

static bool may_go(const struct mem_state *s, const struct mem_task *t, uint64_t before,
                   bool keep_failed)
{
    return t->row.state == GPQ_DONE && t->row.ended < before &&
           (!keep_failed || t->row.outcome == GPQ_OUTCOME_SUCCESS) &&
           lies_in_ended_batches(s, t->row.id) && !mem_is_awaited(s, t->row.id);
}

/* The counts of its batches remain. */
static void keep_counts(struct mem_state *s, const struct mem_task *t)
{
    MEM_EACH (struct mem_batch, b, s, batches) {
        if (!mem_is_in(s, t->row.id, b->row.id))
            continue;
        b->row.total++;
        b->row.joined += !mem_is_own(t, b->row.id);
        b->row.state[GPQ_DONE]++;
        b->row.outcome[t->row.outcome]++;
    }
}

static void forget_task(struct mem_state *s, struct mem_task *t)
{
    uint64_t id = t->row.id;

    keep_counts(s, t);
    MEM_DROP(s, tasks, t);
    FORGET(struct mem_member, s, members, row->task == id)
    FORGET(struct mem_edge, s, edges, row->task == id || row->after.id == id)
    FORGET(struct gpq_attempt, s, attempts, row->task == id)
    FORGET(struct mem_round, s, rounds, row->task == id)
    FORGET(struct mem_result, s, results, row->row.task == id)
}

static bool has_tasks(const struct mem_state *s, uint32_t batch)
{
    MEM_EACH (const struct mem_task, t, s, tasks)
        if (mem_is_in(s, t->row.id, batch))
            return true;
    return false;
}

static void forget_batches(struct mem_state *s, uint64_t before, uint32_t first, uint32_t last)
{
    for (size_t i = s->n_batches; i-- > 0;) {
        struct mem_batch *b = s->batches + i;
        uint64_t source = GPQ_TASK(b->row.id, 0);
        char subject[16];

        if (b->row.id < first || b->row.id > last || !b->row.ended || b->row.ended >= before ||
            has_tasks(s, b->row.id) || mem_is_awaited(s, source))
            continue;
        FORGET(struct mem_edge, s, edges, row->after.id == source)
        (void)snprintf(subject, sizeof(subject), "%u", b->row.id);
        FORGET(struct gpq_mark, s, marks,
               !strcmp(row->kind, "notify") && !strcmp(row->subject, subject))
        MEM_DROP(s, batches, b);
    }
}

static bool spec_is_used(const struct mem_state *s, uint32_t spec)
{
    MEM_EACH (const struct mem_task, t, s, tasks)
        if (t->row.spec == spec)
            return true;
    return false;
}

static bool shape_is_used(const struct mem_state *s, uint32_t shape)
{
    MEM_EACH (const struct mem_task, t, s, tasks)
        if (t->row.shape == shape)
            return true;
    return false;
}

int64_t mem_purge(struct gpq_store *store, uint64_t before, bool keep_failed, uint32_t most,
                  uint64_t *from, struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);
    struct mem_state *s = &m->now;
    uint64_t first = from ? *from : 0, last = UINT64_MAX, at = first;
    uint64_t looks = from ? (uint64_t)most * GPQ_PURGE_LOOKS : UINT64_MAX, looked = 0;
    int64_t n = 0;

    if (!m->within)
        return gpq_fail(e, GPQ_EINVAL, "purge: no transaction");
    for (size_t i = 0; i < s->n_tasks && last == UINT64_MAX;) {
        uint64_t id = s->tasks[i].row.id;
        bool goes = may_go(s, s->tasks + i, before, keep_failed);

        if (id <= first) {
            i++;
            continue;
        }
        if (looked == looks) {
            last = at;
        } else if (n == most && s->tasks[i].row.state == GPQ_DONE &&
                   s->tasks[i].row.ended < before) {
            last = id - 1;
        } else if (goes) {
            mem_change(m, s->tasks + i, 0);
            forget_task(s, s->tasks + i);
            n++;
        } else {
            i++;
        }
        at = id;
        looked++;
    }
    if (looked == looks && last == UINT64_MAX)
        last = at;
    if (!from)
        last = UINT64_MAX;
    forget_batches(s, before, GPQ_BATCH_OF(first), GPQ_BATCH_OF(last));
    FORGET(struct mem_spec, s, specs, !spec_is_used(s, row->id))
    FORGET(struct mem_shape, s, shapes, !shape_is_used(s, row->id))
    FORGET(struct mem_request, s, requests, row->made < before)
    if (s->n_batches && s->batches[0].row.made < before)
        before = s->batches[0].row.made;
    FORGET(struct mem_span, s, spans, row->row.until && row->row.until < before)
    if (from)
        *from = last == UINT64_MAX ? 0 : last;
    return n;
}
