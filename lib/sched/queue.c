/* SPDX-License-Identifier: MIT */
#include "sched/queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NONE GPI_QUEUE_NONE

int gpi_queue_init(struct gpi_queue *q, uint32_t capacity)
{
    memset(q, 0, sizeof *q);
    q->returned = NONE;
    q->next = malloc(sizeof *q->next * capacity); /* untouched until used: no cost while empty */
    q->prev = malloc(sizeof *q->prev * capacity);
    q->n_room = 2 * capacity + 2; /* none is empty, so there are never more of them than items */
    q->band = q->room = malloc(sizeof *q->room * q->n_room);
    if (q->next && q->prev && q->room)
        return 0;
    gpi_queue_fini(q);
    return -1;
}

void gpi_queue_fini(struct gpi_queue *q)
{
    free(q->room);
    free(q->next);
    free(q->prev);
    memset(q, 0, sizeof *q);
}

/* Index of the band, or of the place where it would be. */
static uint32_t find(const struct gpi_queue *q, int32_t priority)
{
    uint32_t lo = 0, hi = q->n_bands;

    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (q->band[mid].priority > priority)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Half of the room is free at the least: a quarter before them and a quarter behind. */
static void centre(struct gpi_queue *q)
{
    struct gpi_band *to = q->room + (q->n_room - q->n_bands) / 2;

    memmove(to, q->band, sizeof *q->band * q->n_bands);
    q->band = to;
}

static void open_place(struct gpi_queue *q, uint32_t i)
{
    const bool in_front = i < q->n_bands - i;

    if (in_front ? q->band == q->room : q->band + q->n_bands == q->room + q->n_room)
        centre(q);
    if (in_front)
        memmove(q->band - 1, q->band, sizeof *q->band * i);
    else
        memmove(&q->band[i + 1], &q->band[i], sizeof *q->band * (q->n_bands - i));
    q->band -= in_front;
    q->n_bands++;
}

static void close_place(struct gpi_queue *q, uint32_t i)
{
    const bool in_front = i < q->n_bands - 1 - i;

    if (in_front)
        memmove(&q->band[1], &q->band[0], sizeof *q->band * i);
    else
        memmove(&q->band[i], &q->band[i + 1], sizeof *q->band * (q->n_bands - 1 - i));
    q->band += in_front;
    q->n_bands--;
}

struct gpi_band *gpi_queue_find_band(struct gpi_queue *q, int32_t priority)
{
    const uint32_t i = find(q, priority);

    if (i < q->n_bands && q->band[i].priority == priority)
        return &q->band[i];
    open_place(q, i);
    q->band[i] = (struct gpi_band){ .priority = priority, .head = NONE, .tail = NONE };
    return &q->band[i];
}

/* Links item before `at` (NONE: at the end). */
static void link_before(struct gpi_queue *q, struct gpi_band *b, uint32_t item, uint32_t at)
{
    uint32_t left = at == NONE ? b->tail : q->prev[at];

    q->prev[item] = left;
    q->next[item] = at;
    if (left == NONE)
        b->head = item;
    else
        q->next[left] = item;
    if (at == NONE)
        b->tail = item;
    else
        q->prev[at] = item;
    q->count++;
}

/* The first task that arrived after the item, or NONE.  If many tasks return, each belongs behind
 * the one returned before it, so the search begins there.  It goes from both ends, since recalled
 * tasks belong to the front. */
static uint32_t old_place(const struct gpi_queue *q, const struct gpi_band *b, uint32_t item,
                          gpi_queue_before_fn *before, void *context)
{
    uint32_t front = b->head, back = b->tail;

    if (q->returned != NONE && q->returned_priority == b->priority) {
        if (before(context, q->returned, item))
            front = q->next[q->returned];
        else
            back = q->returned;
    }
    /* `front` arrived before the item: so the search from the back meets such a task, too. */
    while (front != NONE && before(context, front, item)) {
        if (before(context, back, item))
            return q->next[back];
        front = q->next[front];
        back = q->prev[back];
    }
    return front;
}

void gpi_queue_put_back(struct gpi_queue *q, uint32_t item, int32_t priority,
                        gpi_queue_before_fn *before, void *context)
{
    struct gpi_band *b = gpi_queue_band(q, priority);

    link_before(q, b, item, old_place(q, b, item, before, context));
    q->returned = item;
    q->returned_priority = priority;
}

static void unlink_item(struct gpi_queue *q, uint32_t i, uint32_t item)
{
    struct gpi_band *b = &q->band[i];
    uint32_t left = q->prev[item], right = q->next[item];

    if (left == NONE)
        b->head = right;
    else
        q->next[left] = right;
    if (right == NONE)
        b->tail = left;
    else
        q->prev[right] = left;
    q->count--;
    if (q->returned == item)
        q->returned = NONE;
    if (b->head == NONE && q->n_bands > 1)
        close_place(q, i);
}

uint32_t gpi_queue_pop_last(struct gpi_queue *q)
{
    const uint32_t item = q->band[0].head;

    unlink_item(q, 0, item);
    return item;
}

void gpi_queue_remove(struct gpi_queue *q, uint32_t item, int32_t priority)
{
    uint32_t i = find(q, priority);

    assert(i < q->n_bands && q->band[i].priority == priority);
    unlink_item(q, i, item);
}

uint32_t gpi_queue_at(const struct gpi_queue *q, uint32_t n)
{
    const struct gpi_band *b = q->band;
    uint32_t item = b->head;

    assert(n < q->count);
    for (; n; n--)
        item = q->next[item] != NONE ? q->next[item] : (++b)->head;
    return item;
}
