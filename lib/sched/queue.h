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
    struct gpi_band *band; /* highest priority first; none is empty; somewhere in: */
    struct gpi_band *room; /* for twice as many as there can be, so that they can grow and shrink at both ends */
    uint32_t n_bands, n_room;
    uint32_t *next, *prev;
    uint32_t count;
    uint32_t returned; /* the last that was put back, while it is here: the next one belongs near it */
    int32_t returned_priority;
};

/* 0, or -1 when there is no memory. */
int gpi_queue_init(struct gpi_queue *q, uint32_t capacity);
void gpi_queue_fini(struct gpi_queue *q);

/* Once there is a queue nothing needs memory: what has been sent can always come back. */
void gpi_queue_push(struct gpi_queue *q, uint32_t item, int32_t priority);

/* Puts a task back to its place: before the first one that came after it. */
typedef bool(gpi_queue_before_fn)(void *context, uint32_t a, uint32_t b);
void gpi_queue_put_back(struct gpi_queue *q, uint32_t item, int32_t priority, gpi_queue_before_fn *before, void *context);

/* The task `ahead` places behind the next one, if the same band has one; else some task of it. */
static inline uint32_t gpi_queue_peek(const struct gpi_queue *q, uint32_t ahead)
{
    uint32_t item = q->n_bands ? q->band[0].head : GPI_QUEUE_NONE;

    while (ahead-- > 0 && item != GPI_QUEUE_NONE && q->next[item] != GPI_QUEUE_NONE)
        item = q->next[item];
    return item;
}

/* Takes the next task out, or gives NONE. */
uint32_t gpi_queue_pop(struct gpi_queue *q);
void gpi_queue_remove(struct gpi_queue *q, uint32_t item, int32_t priority);

#endif
