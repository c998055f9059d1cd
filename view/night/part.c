/* SPDX-License-Identifier: MIT */
/* part.c - a part of a night, as its records were at the end of the part. */
#include "view/night/part.h"

#include <stdlib.h>

/* ---- Rows ---- */

/* Whether a row is in the part.  until 0: it goes on. */
static bool is_in(int64_t since, int64_t until, int64_t from, int64_t to)
{
    return since <= to && (until == 0 || until >= from);
}

static bool has_ended(const struct gpv_attempt *a, int64_t to)
{
    return a->ended != 0 && a->ended <= to;
}

/* A task without an attempt has a row from its end on. */
static int64_t known_since(const struct gpv_attempt *a)
{
    return a->number != 0 ? a->started : a->ended;
}

static int add_attempts(struct gpv_night *p, const struct gpv_night *n, int64_t from, int64_t to)
{
    for (size_t i = 0; i < n->attempts.n; i++) {
        struct gpv_attempt a = n->attempts.row[i];
        if (!is_in(known_since(&a), a.ended, from, to))
            continue;
        if (!has_ended(&a, to)) {
            a.ended = 0;
            a.outcome = GPV_RUNNING;
            a.status = 0;
            a.text = 0;
        }
        if (gpv_add_attempt(p, &a) < 0)
            return -1;
    }
    return 0;
}

/* Of rows with since and until. */
#define ADD_SPANS(list, type, add)                  \
    for (size_t i = 0; i < n->list.n; i++) {        \
        struct type row = n->list.row[i];           \
        if (!is_in(row.since, row.until, from, to)) \
            continue;                               \
        row.until = row.until > to ? 0 : row.until; \
        if (add(p, &row) < 0)                       \
            return -1;                              \
    }

static int add_rows(struct gpv_night *p, const struct gpv_night *n, int64_t from, int64_t to)
{
    for (size_t i = 0; i < n->names.n; i++)
        if (gpv_add_name(p, &n->names.row[i]) < 0)
            return -1;
    for (size_t i = 0; i < n->lefts.n; i++) {
        const struct gpv_left_row *left = &n->lefts.row[i];
        if (is_in(left->time, left->time, from, to) && gpv_add_left(p, left) < 0)
            return -1;
    }
    ADD_SPANS(tenancies, gpv_tenancy, gpv_add_tenancy)
    ADD_SPANS(outs, gpv_out, gpv_add_out)
    ADD_SPANS(reasons, gpv_reason, gpv_add_reason)
    ADD_SPANS(lives, gpv_life, gpv_add_life)
    for (size_t i = 0; i < n->batches.n; i++) {
        struct gpv_batch b = n->batches.row[i];
        b.ended = b.ended > to ? 0 : b.ended;
        if (b.made <= to && gpv_add_batch(p, &b) < 0)
            return -1;
    }
    return add_attempts(p, n, from, to);
}

/* ---- Counts of batches ---- */

/* A task whose outcome, or state at the end of the night, is of a time after the part. */
struct task {
    uint64_t task;
    uint16_t shape;
    bool waits, runs; /* at the end of the part: it is ready; an attempt runs */
    bool begun;       /* ... it has a row */
};

struct undo {
    struct gpv_night *p;
    GPV_LIST(struct task) tasks;
};

static int by_task(const void *left, const void *right)
{
    const struct task *a = left, *b = right;
    return (a->task > b->task) - (a->task < b->task);
}

static struct task *find_task(const struct undo *u, uint64_t task)
{
    const struct task key = { .task = task };
    return u->tasks.n > 0 ? bsearch(&key, u->tasks.row, u->tasks.n, sizeof(key), by_task) : NULL;
}

static struct gpv_batch *batch_of(const struct undo *u, uint64_t task)
{
    uint32_t batch = gpv_find_batch(u->p, GPV_BATCH_OF(task));
    return batch != GPV_NONE ? &u->p->batches.row[batch] : NULL;
}

/* The count that has the task of such a last row. */
static uint32_t *count_of(struct gpv_batch *b, const struct gpv_attempt *a)
{
    if (a->ended == 0)
        return &b->running;
    return a->outcome == GPV_RETURNED ? &b->ready : &b->ended_by[a->outcome % GPV_OUTCOMES];
}

static void move(uint32_t *from, uint32_t *to)
{
    if (*from == 0)
        return;
    --*from;
    ++*to;
}

/* Tasks that something happened to after the part; all of them count as ready first. */
static int list_tasks(struct undo *u, const struct gpv_night *n)
{
    size_t room = 0;
    for (size_t i = 0; i < n->attempts.n; i++)
        room += n->attempts.row[i].last && !has_ended(&n->attempts.row[i], u->p->to);
    u->tasks.row = calloc(room + 1, sizeof(*u->tasks.row));
    if (!u->tasks.row)
        return -1;
    for (size_t i = 0; i < n->attempts.n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[i];
        struct gpv_batch *b = batch_of(u, a->task);
        if (!a->last || has_ended(a, u->p->to))
            continue;
        u->tasks.row[u->tasks.n++] = (struct task){ .task = a->task, .shape = a->shape };
        if (b)
            move(count_of(b, a), &b->ready);
    }
    if (u->tasks.n > 1)
        qsort(u->tasks.row, u->tasks.n, sizeof(u->tasks.row[0]), by_task);
    return 0;
}

/* Whether the row is one of a later time, whose task could start already: it waits. */
static bool is_awaited(const struct undo *u, const struct gpv_attempt *a)
{
    return known_since(a) > u->p->to && a->ready <= u->p->to && (a->ready != 0 || a->number == 1);
}

static void find_waiting(struct undo *u, const struct gpv_night *n)
{
    for (size_t i = 0; i < n->attempts.n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[i];
        struct task *t = is_awaited(u, a) ? find_task(u, a->task) : NULL;
        if (t)
            t->waits = true;
    }
}

/* What the part says of such tasks. */
static void set_states(struct undo *u)
{
    for (size_t i = 0; i < u->p->attempts.n; i++) {
        const struct gpv_attempt *a = &u->p->attempts.row[i];
        struct task *t = a->last ? find_task(u, a->task) : NULL;
        struct gpv_batch *b = batch_of(u, a->task);
        if (t)
            t->begun = true;
        if (!t || !b || (t->waits && a->ended != 0))
            continue;
        t->runs = a->ended == 0;
        move(&b->ready, count_of(b, a));
    }
}

/* Tasks of a batch with turns are held that have no row yet, and were not ready. */
static bool is_held(const struct task *t, const struct gpv_batch *b)
{
    return b && b->at_once && !t->waits && !t->begun;
}

static void set_turns(struct undo *u)
{
    for (size_t i = 0; i < u->tasks.n; i++) {
        struct gpv_batch *b = batch_of(u, u->tasks.row[i].task);
        if (!is_held(&u->tasks.row[i], b))
            continue;
        move(&b->ready, &b->held);
        b->turn = 1;
    }
    for (size_t i = 0; i < u->p->batches.n; i++)
        if (u->p->batches.row[i].turn != 0)
            u->p->batches.row[i].turn = u->p->batches.row[i].held;
}

static void note_first(struct gpv_batch *b, uint32_t number, uint32_t shape)
{
    if (b->first != 0 && b->first <= number)
        return;
    b->first = number;
    b->shape = shape;
}

static bool runs(const struct undo *u, uint64_t task)
{
    const struct task *t = find_task(u, task);
    return t && t->runs;
}

/* That of the night, unless it ran, or one that has started since then. */
static void find_firsts(struct undo *u, const struct gpv_night *n)
{
    for (size_t i = 0; i < u->p->batches.n; i++) {
        struct gpv_batch *b = &u->p->batches.row[i];
        if (runs(u, GPV_TASK(b->id, b->first)))
            b->first = 0;
    }
    for (size_t i = 0; i < n->attempts.n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[i];
        struct gpv_batch *b = is_awaited(u, a) ? batch_of(u, a->task) : NULL;
        if (b && !runs(u, a->task))
            note_first(b, GPV_NUMBER_OF(a->task), a->shape);
    }
    for (size_t i = 0; i < u->p->attempts.n; i++) {
        const struct gpv_attempt *a = &u->p->attempts.row[i];
        struct gpv_batch *b = batch_of(u, a->task);
        if (b && a->last && a->outcome == GPV_RETURNED && a->ended != 0)
            note_first(b, GPV_NUMBER_OF(a->task), a->shape);
    }
    for (size_t i = 0; i < u->p->batches.n; i++)
        if (u->p->batches.row[i].ready + u->p->batches.row[i].turn == 0)
            u->p->batches.row[i].first = 0;
    for (size_t i = 0; i < u->tasks.n; i++) {
        const struct task *t = &u->tasks.row[i];
        struct gpv_batch *b = batch_of(u, t->task);
        if (is_held(t, b) && b->ready == 0)
            note_first(b, GPV_NUMBER_OF(t->task), t->shape);
    }
}

static int set_counts(struct gpv_night *p, const struct gpv_night *n)
{
    struct undo u = { .p = p };
    if (list_tasks(&u, n) < 0)
        return -1;
    find_waiting(&u, n);
    set_states(&u);
    set_turns(&u);
    find_firsts(&u, n);
    free(u.tasks.row);
    return 0;
}

struct gpv_night *gpv_night_part(const struct gpv_night *n, int64_t from, int64_t to)
{
    struct gpv_night *p = gpv_night_beside(n);
    int code = p ? add_rows(p, n, from, to) : -1;
    if (code == 0)
        code = gpv_night_end(p, to);
    if (code == 0) {
        p->from = from;
        p->to = to;
        code = to < n->to ? set_counts(p, n) : 0;
    }
    if (code == 0)
        return p;
    gpv_night_free(p);
    return NULL;
}
