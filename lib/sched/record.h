/* SPDX-License-Identifier: MIT */
/* record.h - a task leaves its cell, and ends: inline, since each task does. */
#ifndef GPI_SCHED_RECORD_H
#define GPI_SCHED_RECORD_H

#include "sched/spread.h"


static inline struct gpi_sched_class *gpi_record_class(const struct gpi_sched *c,
                                                      const struct gpi_sched_record *t)
{
    return &c->class[t->class];
}

/* A sent task is cancelled: the core has ordered its ALARM, or awaits the reply to its RECALL. */
static inline bool gpi_record_is_cancelled(const struct gpi_sched *c,
                                           const struct gpi_sched_record *t)
{
    return c->slot[t->slot].told >> t->cell & 1 || t->wish >= GPI_WISH_SOFT;
}

/* Returns true if nothing but its cell knows the sent task. */
static inline bool gpi_record_is_plain(const struct gpi_sched_record *t)
{
    return !(t->wish || t->expires || t->wary || t->keeps || t->own);
}

/* The RECALL of the task has its reply.  If the worker keeps the task, the idle worker may get one
 * of another worker. */
void gpi_record_forget_wish(struct gpi_sched *c, struct gpi_sched_record *t);
/* The slot's last task has left its cell. */
void gpi_record_left(struct gpi_sched *c, struct gpi_sched_slot *s);
/* The task may make workers overwrite their pages.  Until all such tasks have ended, no worker gets
 * more than one task. */
void gpi_record_be_wary(struct gpi_sched *c, struct gpi_sched_record *t);
void gpi_record_trust(struct gpi_sched *c, struct gpi_sched_record *t); /* not wary any more */

static inline void gpi_record_leave(struct gpi_sched *c, struct gpi_sched_slot *s,
                                    struct gpi_sched_record *t)
{
    const uint64_t bit = 1ull << t->cell;

    s->cells ^= bit;
    if ((s->claimed | s->told) & bit) {
        s->claimed &= ~bit;
        s->told &= ~bit;
        s->cancelled &= ~bit;
    }
    if (t->wish)
        gpi_record_forget_wish(c, t);
    if (--s->sent == 0)
        gpi_record_left(c, s);
    gpi_spread_less(s->class, s, t->slot);
    c->undecided |= s->class->queue.count > 0;
}

/* The task is in no queue any more, and ends. */
static inline void gpi_record_end(struct gpi_sched *c, uint32_t i)
{
    struct gpi_sched_record *t = &c->task[i];

    assert(t->state != GPI_RECORD_FREE);
    if (t->expires)
        gpi_heap_remove(&c->expiries, i);
    if (t->wary)
        gpi_record_trust(c, t);
    if (t->own)
        gpi_own_end(c, i);
    t->state = GPI_RECORD_FREE;
    c->unended--;
}

#endif
