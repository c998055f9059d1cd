/* SPDX-License-Identifier: MIT */
/*
 * queue.h - which task is next: strict priorities, FIFO within one.                    [C5]
 *
 * Items are numbers below a fixed capacity; the queue owns their links.  Bands (one per
 * priority in use) are few; push, pop and remove cost a short search among them.  Where they are
 * many a new one moves those on its shorter side, and the first goes without moving any.
 */
#ifndef GPI_SCHED_QUEUE_H
#define GPI_SCHED_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#define GPI_QUEUE_NONE UINT32_MAX

struct gpi_band {
    int32_t priority;
    uint32_t head, tail;
};

struct gpi_queue {
    struct gpi_band *band; /* highest priority first; none is empty, unless it is alone; in: */
    struct gpi_band *room; /* for twice as many as can exist: they grow and shrink at both ends */
    uint32_t n_bands, n_room;
    uint32_t *next, *prev;
    uint32_t count;
    uint32_t returned; /* the last task put back, while it is here: the next belongs near it */
    int32_t returned_priority;
};

/* 0, or -1 when there is no memory.  No later call needs memory: a sent task can always return. */
int gpi_queue_init(struct gpi_queue *q, uint32_t capacity);
void gpi_queue_fini(struct gpi_queue *q);

/* Puts a task back to its place: before the first one that came after it. */
typedef bool(gpi_queue_before_fn)(void *context, uint32_t a, uint32_t b);
void gpi_queue_put_back(struct gpi_queue *q, uint32_t item, int32_t priority,
                        gpi_queue_before_fn *before, void *context);

void gpi_queue_remove(struct gpi_queue *q, uint32_t item, int32_t priority);

/* ---- inline: once for each task ---- */

struct gpi_band *gpi_queue_find_band(struct gpi_queue *q, int32_t priority);
uint32_t gpi_queue_pop_last(struct gpi_queue *q); /* the first band has one task */

/* Returns the band of this priority, which may be new. */
static inline struct gpi_band *gpi_queue_band(struct gpi_queue *q, int32_t priority)
{
    if (q->n_bands != 1 || (q->count && q->band[0].priority != priority))
        return gpi_queue_find_band(q, priority);
    q->band[0].priority = priority;
    return &q->band[0]; /* most queues have one */
}

static inline void gpi_queue_append(struct gpi_queue *q, struct gpi_band *b, uint32_t item)
{
    const uint32_t tail = b->tail;

    q->prev[item] = tail;
    q->next[item] = GPI_QUEUE_NONE;
    b->tail = item;
    q->count++;
    *(tail == GPI_QUEUE_NONE ? &b->head : &q->next[tail]) = item;
}

static inline void gpi_queue_push(struct gpi_queue *q, uint32_t item, int32_t priority)
{
    gpi_queue_append(q, gpi_queue_band(q, priority), item);
}

/* Returns true if a task of this priority belongs behind all tasks that are here. */
static inline bool gpi_queue_extends(const struct gpi_queue *q, int32_t priority)
{
    return q->n_bands == 1 && q->band[0].priority == priority;
}

static inline void gpi_queue_extend(struct gpi_queue *q, uint32_t item)
{
    gpi_queue_append(q, &q->band[0], item);
}

/* Takes the next task out, or returns NONE. */
/* Returns the task behind the first `n` ones; there are more than `n`. */
uint32_t gpi_queue_at(const struct gpi_queue *q, uint32_t n);

static inline uint32_t gpi_queue_pop(struct gpi_queue *q)
{
    struct gpi_band *b = q->band;
    uint32_t item, next;

    if (q->count == 0)
        return GPI_QUEUE_NONE;
    item = b->head;
    next = q->next[item];
    if (next == GPI_QUEUE_NONE)
        return gpi_queue_pop_last(q);
    b->head = next;
    q->prev[next] = GPI_QUEUE_NONE;
    q->count--;
    if (q->returned == item)
        q->returned = GPI_QUEUE_NONE;
    return item;
}

#endif
