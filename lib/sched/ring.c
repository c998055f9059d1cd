/* SPDX-License-Identifier: MIT */
/* ring.c - the actions that leave the core, the slots that an event touched, and the times. */
#include <stdlib.h>

#include "sched/core.h"

/* The caller empties the ring after each event, and no event orders more for one slot.  In addition
 * there is at most one note for each device. */
#define ACTIONS_PER_SLOT (16u + GPI_SLOT_CELLS) /* an ALARM for each task */
#define ACTIONS_PER_LEASE (GPI_SLOT_DEVICES + 4u) /* GRANT; or REVOKE, softly, hard, back */
#define PROMISES 64u /* in the ring at a time: further ones are dropped */

int gpi_ring_make(struct gpi_sched *c)
{
    c->ring_size = (c->set.slots + 1) * ACTIONS_PER_SLOT + c->set.devices + PROMISES;
    if (c->set.pooled)
        c->ring_size += c->set.slots * ACTIONS_PER_LEASE;
    c->ring = malloc(sizeof *c->ring * c->ring_size);
    return c->ring && gpi_heap_init(&c->times, 2 * c->set.slots + 1) == 0 ? 0 : -1;
}

void gpi_ring_free(struct gpi_sched *c)
{
    gpi_heap_fini(&c->times);
    free(c->ring);
}

void gpi_ring_add(struct gpi_sched *c, struct gpi_sched_action a)
{
    assert(c->count < c->ring_size);
    c->ring[(c->head + c->count++) % c->ring_size] = a;
}

void gpi_ring_promise(struct gpi_sched *c, uint32_t task, enum gpi_promise how, uint64_t at)
{
    if (c->n_promises == PROMISES) {
        c->promises_dropped++;
        return;
    }
    c->n_promises++;
    gpi_ring_add(c, (struct gpi_sched_action){ .kind = GPI_ACT_PROMISE,
                                               .slot = GPI_NOWHERE,
                                               .device = GPI_NOWHERE,
                                               .task = task,
                                               .how = how,
                                               .at = at });
}

bool gpi_sched_next(struct gpi_sched *c, struct gpi_sched_action *ret)
{
    if (c->count == 0)
        return false;
    *ret = c->ring[c->head];
    c->n_promises -= ret->kind == GPI_ACT_PROMISE;
    c->head = (c->head + 1) % c->ring_size;
    c->count--;
    return true;
}

void gpi_ring_add_for(struct gpi_sched *c, const struct gpi_sched_slot *s,
                      struct gpi_sched_action a)
{
    a.slot = gpi_slot_number(c, s);
    a.device = GPI_NOWHERE;
    gpi_ring_add(c, a);
}

void gpi_ring_order(struct gpi_sched *c, const struct gpi_sched_slot *s, uint32_t kind)
{
    gpi_ring_add_for(c, s, (struct gpi_sched_action){ .kind = kind });
}

void gpi_ring_note(struct gpi_sched *c, const struct gpi_sched_slot *s, enum gpi_sched_note how)
{
    gpi_ring_add_for(c, s,
                     (struct gpi_sched_action){ .kind = GPI_ACT_NOTE, .how = how, .what = s->why });
}

/* ---- touched slots: first in, first out ---- */

void gpi_ring_touch(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const uint32_t i = gpi_slot_number(c, s) + 1;

    if (s->next_touched)
        return;
    s->next_touched = i; /* the last slot points to itself */
    *(c->touched ? &c->slot[c->last_touched - 1].next_touched : &c->touched) = i;
    c->last_touched = i;
}

struct gpi_sched_slot *gpi_ring_touched(struct gpi_sched *c)
{
    const uint32_t i = c->touched;
    struct gpi_sched_slot *s;

    if (i == 0)
        return NULL;
    s = &c->slot[i - 1];
    c->touched = s->next_touched == i ? 0 : s->next_touched;
    s->next_touched = 0;
    return s;
}

/* ---- times ---- */

static void arm(struct gpi_sched *c, uint32_t item, uint64_t at)
{
    if (at == GPI_NEVER)
        gpi_heap_remove(&c->times, item);
    else
        gpi_heap_set(&c->times, item, at);
}

void gpi_ring_arm(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->armed = gpi_time_min(s->deadline, s->check_at);
    arm(c, gpi_slot_number(c, s), s->armed);
}

void gpi_ring_arm_seat(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    arm(c, c->set.slots + gpi_slot_number(c, s), s->seat.by);
}

void gpi_ring_arm_close(struct gpi_sched *c)
{
    arm(c, 2 * c->set.slots, c->close_at);
}
