/* SPDX-License-Identifier: MIT */
/* records.c - a night in memory: lists of rows. */
#include "view/records.h"

#include <stdlib.h>
#include <string.h>

/* ---- A night ---- */

struct gpv_night *gpv_night_new(void)
{
    struct gpv_night *n = calloc(1, sizeof(*n));
    if (!n)
        return NULL;
    n->limit.names = SIZE_MAX;
    n->pool = gpv_pool_new();
    if (n->pool && gpv_keep_set(n, NULL, 0) == 0)
        return n;
    gpv_night_free(n);
    return NULL;
}

/* The rows of a list, or NULL: there is none, or no memory. */
static void *copied(const void *row, size_t n, size_t size)
{
    void *copy = n > 0 ? malloc(n * size) : NULL;
    return copy ? memcpy(copy, row, n * size) : NULL;
}

/* False: no memory. */
#define COPY(to, from)                                             \
    ((to).row = copied((from).row, (from).n, sizeof(*(from).row)), \
     (to).n = (to).room = (to).row ? (from).n : 0, (to).n == (from).n)

struct gpv_night *gpv_night_beside(const struct gpv_night *n)
{
    struct gpv_night *beside = calloc(1, sizeof(*beside));
    if (!beside)
        return NULL;
    beside->pool = gpv_pool_join(n->pool);
    beside->host = n->host;
    beside->limit = n->limit;
    beside->lived = n->lived;
    if (COPY(beside->gpus, n->gpus) && COPY(beside->classes, n->classes) &&
        COPY(beside->shapes, n->shapes))
        return beside;
    gpv_night_free(beside);
    return NULL;
}

void gpv_night_free(struct gpv_night *n)
{
    if (!n)
        return;
    gpv_pool_leave(n->pool);
    free(n->gpus.row);
    free(n->classes.row);
    free(n->shapes.row);
    free(n->batches.row);
    free(n->attempts.row);
    free(n->names.row);
    free(n->tenancies.row);
    free(n->outs.row);
    free(n->reasons.row);
    free(n->lives.row);
    free(n->lefts.row);
    free(n);
}

void gpv_night_limit(struct gpv_night *n, int64_t from, int64_t to)
{
    n->limit.from = from;
    n->limit.to = to;
}

void gpv_night_limit_names(struct gpv_night *n, size_t attempts)
{
    n->limit.names = attempts;
}

bool gpv_wants_name(const struct gpv_night *n, uint32_t outcome)
{
    return n->attempts.n < n->limit.names || gpv_is_bad(outcome);
}

/* ---- Rows ---- */

/* Whether a row lies outside of the limits.  until 0: it goes on. */
static bool outside(const struct gpv_night *n, int64_t since, int64_t until)
{
    return (n->limit.from != 0 && until != 0 && until < n->limit.from) ||
           (n->limit.to != 0 && since > n->limit.to);
}

/* A row of a clock that was set back has the length 0. */
static int64_t not_before(int64_t until, int64_t since)
{
    return until != 0 && until < since ? since : until;
}

/* Appends a copy, and evaluates to a pointer to it, or NULL without memory. */
#define APPEND(list, copy)                                              \
    (gpv_grow(&(list).row, (list).n, &(list).room, sizeof(*(list).row)) \
         ? ((list).row[(list).n] = (copy), &(list).row[(list).n++])     \
         : NULL)

/* By the UUID, or by the name of one without. */
static uint32_t find_key(const struct gpv_night *n, uint32_t key)
{
    for (size_t i = 0; i < n->gpus.n; i++)
        if ((n->gpus.row[i].uuid ? n->gpus.row[i].uuid : n->gpus.row[i].name) == key)
            return (uint32_t)i;
    return GPV_NONE;
}

int gpv_add_gpu(struct gpv_night *n, const struct gpv_gpu *row)
{
    uint32_t there = find_key(n, row->uuid ? row->uuid : row->name);
    if (there != GPV_NONE) {
        n->gpus.row[there] = *row;
        return 0;
    }
    return n->gpus.n == GPV_NONE16 ? 1 : APPEND(n->gpus, *row) ? 0 : -1;
}

int gpv_add_class(struct gpv_night *n, const struct gpv_class *row)
{
    if (gpv_find_class(n, gpv_text(n, row->name)) != GPV_NONE)
        return 0;
    return APPEND(n->classes, *row) ? 0 : -1;
}

int gpv_add_shape(struct gpv_night *n, const struct gpv_shape *row)
{
    uint32_t there = gpv_find_shape(n, row->id);
    if (there != GPV_NONE) {
        n->shapes.row[there] = *row;
        return 0;
    }
    return n->shapes.n == GPV_NONE16 ? 1 : APPEND(n->shapes, *row) ? 0 : -1;
}

int gpv_add_attempt(struct gpv_night *n, const struct gpv_attempt *row)
{
    struct gpv_attempt a = *row;
    a.started = a.started != 0 ? a.started : a.ended;
    a.ended = not_before(a.ended, a.started);
    a.ready = a.ready > a.started ? a.started : a.ready;
    a.last = false;
    if (outside(n, a.started, a.ended))
        return 0;
    return APPEND(n->attempts, a) ? 0 : -1;
}

int gpv_add_name(struct gpv_night *n, const struct gpv_name *row)
{
    return APPEND(n->names, *row) ? 0 : -1;
}

/* Of rows with since and until. */
#define ADD_SPAN(list, added)                                                        \
    do {                                                                             \
        if (outside(n, (added)->since, (added)->until))                              \
            return 0;                                                                \
        if (!APPEND(list, *(added)))                                                 \
            return -1;                                                               \
        (list).row[(list).n - 1].until = not_before((added)->until, (added)->since); \
        return 0;                                                                    \
    } while (0)

int gpv_add_tenancy(struct gpv_night *n, const struct gpv_tenancy *row)
{
    ADD_SPAN(n->tenancies, row);
}

int gpv_add_out(struct gpv_night *n, const struct gpv_out *row)
{
    ADD_SPAN(n->outs, row);
}

int gpv_add_reason(struct gpv_night *n, const struct gpv_reason *row)
{
    ADD_SPAN(n->reasons, row);
}

int gpv_add_life(struct gpv_night *n, const struct gpv_life *row)
{
    n->lived = true;
    ADD_SPAN(n->lives, row);
}

int gpv_add_left(struct gpv_night *n, const struct gpv_left_row *row)
{
    if (outside(n, row->time, row->time))
        return 0;
    return APPEND(n->lefts, *row) ? 0 : -1;
}
/* ---- Finding ---- */

uint32_t gpv_find_gpu(const struct gpv_night *n, const char *name)
{
    uint32_t text = gpv_pool_find(n->pool, name);
    if (text == GPV_NONE || text == 0)
        return GPV_NONE;
    uint32_t there = find_key(n, text);
    for (size_t i = 0; there == GPV_NONE && i < n->gpus.n; i++)
        if (n->gpus.row[i].name == text)
            there = (uint32_t)i;
    return there;
}

uint32_t gpv_find_class(const struct gpv_night *n, const char *name)
{
    uint32_t text = gpv_pool_find(n->pool, name);
    for (size_t i = 0; text != GPV_NONE && i < n->classes.n; i++)
        if (n->classes.row[i].name == text)
            return (uint32_t)i;
    return GPV_NONE;
}

uint32_t gpv_find_shape(const struct gpv_night *n, uint32_t id)
{
    for (size_t i = 0; i < n->shapes.n; i++)
        if (n->shapes.row[i].id == id)
            return (uint32_t)i;
    return GPV_NONE;
}

/* The index of the first batch whose id is not less. */
static size_t batch_place(const struct gpv_night *n, uint32_t id)
{
    size_t low = 0, high = n->batches.n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (n->batches.row[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t gpv_find_batch(const struct gpv_night *n, uint32_t id)
{
    size_t at = batch_place(n, id);
    return at < n->batches.n && n->batches.row[at].id == id ? (uint32_t)at : GPV_NONE;
}

int gpv_add_batch(struct gpv_night *n, const struct gpv_batch *row)
{
    size_t at = batch_place(n, row->id);
    if (at < n->batches.n && n->batches.row[at].id == row->id) {
        n->batches.row[at] = *row;
        n->again = true;
        return 0;
    }
    if (!APPEND(n->batches, *row))
        return -1;
    memmove(&n->batches.row[at + 1], &n->batches.row[at],
            (n->batches.n - 1 - at) * sizeof(*n->batches.row));
    n->batches.row[at] = *row;
    return 0;
}

bool gpv_set_has(struct gpv_set set, uint32_t gpu)
{
    for (uint32_t i = 0; i < set.n; i++)
        if (set.gpu[i] == gpu)
            return true;
    return false;
}

uint32_t gpv_class_of(const struct gpv_night *n, const struct gpv_attempt *a)
{
    return a->shape < n->shapes.n ? n->shapes.row[a->shape].class : GPV_NONE;
}
