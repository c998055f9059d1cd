/* SPDX-License-Identifier: MIT */
/* history.c - the reader of attempts, and of ends without one. */
#include "operations.h"

#include <stdlib.h>

/* All rows of a batch; they are sorted, and then those that are wanted are shown. */
struct list {
    struct gpq_history *rows;
    size_t n;
};

/* The outcome of a round that a return has ended; 0: it has ended no round. */
static uint32_t ended_by(const struct mem_state *s, const struct mem_task *t,
                         const struct gpq_attempt *a)
{
    MEM_EACH (const struct mem_round, r, s, rounds)
        if (r->task == a->task && r->row.round == a->round)
            return r->row.ended == a->returned_at && r->row.attempt == a->number ? r->row.outcome
                                                                                 : 0;
    return t->row.state == GPQ_DONE && t->row.ended == a->returned_at && t->row.attempt == a->number
               ? t->row.outcome
               : 0;
}

static void add(struct list *l, const struct mem_task *t, const struct gpq_attempt *a, bool names)
{
    l->rows = mem_grown(l->rows, l->n, sizeof(*l->rows));
    l->rows[l->n++] = (struct gpq_history){
        .attempt = *a,
        .shape = t->row.shape,
        .spec = t->row.spec,
        .name = names ? t->row.name : NULL,
        .content = names ? t->row.content : (struct gpq_bytes){ 0 },
    };
}

/* The end of a round, if its last attempt has ended otherwise. */
static void add_end(struct list *l, const struct mem_state *s, const struct mem_task *t,
                    const struct gpq_attempt *end, bool names)
{
    uint32_t outcome = 0;

    MEM_EACH (const struct gpq_attempt, a, s, attempts)
        if (a->task == end->task && a->round == end->round)
            outcome = a->returned_at ? ended_by(s, t, a) : a->outcome;
    if (outcome != end->outcome)
        add(l, t, end, names);
}

static void add_ends(struct list *l, const struct mem_state *s, const struct mem_task *t,
                     bool names)
{
    MEM_EACH (const struct mem_round, r, s, rounds)
        if (r->task == t->row.id)
            add_end(l, s, t,
                    &(struct gpq_attempt){ .task = r->task,
                                           .round = r->row.round,
                                           .outcome = r->row.outcome,
                                           .ended = r->row.ended },
                    names);
    if (t->row.state == GPQ_DONE)
        add_end(l, s, t,
                &(struct gpq_attempt){ .task = t->row.id,
                                       .round = t->row.round,
                                       .outcome = t->row.outcome,
                                       .ready = t->row.ready,
                                       .ended = t->row.ended },
                names);
}

static int by_place(const void *left, const void *right)
{
    const struct gpq_attempt *a = left, *b = right; /* the first member of a row */

    if (a->task != b->task)
        return a->task < b->task ? -1 : 1;
    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    if (!a->number || !b->number)
        return !a->number - !b->number;
    return (a->number > b->number) - (a->number < b->number);
}

static bool is_over_before(const struct gpq_attempt *a, uint64_t since)
{
    bool runs = a->number && !a->outcome && !a->returned_at;

    return !runs && (a->returned_at ? a->returned_at : a->ended) < since;
}

int mem_history(struct gpq_store *store, uint32_t batch, uint32_t last, uint64_t since,
                const struct gpq_attempt *behind, bool names, gpq_history_fn fn, void *user,
                struct gpq_error *e)
{
    struct mem_state *s = &mem_of(store)->now;
    struct list l = { 0 };
    int stopped = 0;

    (void)e;
    MEM_EACH (const struct mem_task, t, s, tasks) {
        if (!mem_is_own(t, batch) || (last && GPQ_NUMBER_OF(t->row.id) > last))
            continue;
        MEM_EACH (const struct gpq_attempt, a, s, attempts) {
            struct gpq_attempt row = *a;
            if (row.returned_at)
                row.outcome = ended_by(s, t, a);
            if (a->task == t->row.id)
                add(&l, t, &row, names);
        }
        add_ends(&l, s, t, names);
    }
    if (l.n)
        qsort(l.rows, l.n, sizeof(*l.rows), by_place);
    for (size_t i = 0; i < l.n && !stopped; i++)
        if (!is_over_before(&l.rows[i].attempt, since) &&
            (!behind || by_place(&l.rows[i].attempt, behind) > 0))
            stopped = fn(&l.rows[i], user);
    free(l.rows);
    return stopped;
}
