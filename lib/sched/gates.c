/* SPDX-License-Identifier: MIT */
/* gates.c - which slot gets the next keeper, the next start, the next replacement of its worker. */
#include "sched/core.h"

/* Returns the slot that has waited longest.  Of several, it is the first by number. */
static struct gpi_sched_slot *next_at_gate(struct gpi_sched *c, bool keeper)
{
    struct gpi_sched_slot *next = NULL;

    for (uint32_t i = 0; i < c->n_slots; i++) {
        struct gpi_sched_slot *s = &c->slot[i];
        const bool waits = keeper ? s->seat.keeper == GPI_KEEPER_NONE
                                  : s->seat.keeper == GPI_KEEPER_UP && !s->owed;
        if (s->life == GPI_LIFE_WAIT && waits && (!next || s->since < next->since))
            next = s;
    }
    return next;
}

static uint32_t count_setups(const struct gpi_sched *c)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n_slots; i++)
        n += gpi_life_is_in_setup(&c->slot[i]);
    return n;
}

/* Without a spawner a slot fails here, and with it its last tasks may end, and a close may be
 * complete: then no worker starts beside it. */
static void start(struct gpi_sched *c)
{
    struct gpi_sched_slot *s;
    bool fails = false;

    while ((c->makes < c->set.makes || c->spawner_gone) && (s = next_at_gate(c, true)) != NULL) {
        gpi_slot_input(c, s, GPI_IN_GATE);
        fails |= c->spawner_gone;
    }
    if (fails) {
        c->undecided = true;
        return;
    }
    for (uint32_t n = count_setups(c); n < c->set.setup_concurrency; n++) {
        s = next_at_gate(c, false);
        if (!s)
            break;
        gpi_slot_input(c, s, GPI_IN_GATE);
    }
}

/* Replaces the idle worker of the class with the most attempts, if it has ended max_tasks of them.
 * Of several with equally many, it is the first by number. */
static void renew(struct gpi_sched *c, const struct gpi_sched_class *k)
{
    struct gpi_sched_slot *next = NULL;

    for (uint32_t i = 0; i < c->n_slots; i++) {
        struct gpi_sched_slot *s = &c->slot[i];
        if (s->class == k && s->life == GPI_LIFE_UP && s->sent == 0 && !s->still &&
            s->served >= k->set.max_tasks && (!next || s->served > next->served))
            next = s;
    }
    if (next)
        gpi_slot_input(c, next, GPI_IN_RENEW);
}

void gpi_gates_open(struct gpi_sched *c)
{
    if (c->waiting)
        start(c);
}

void gpi_gates_renew(struct gpi_sched *c)
{
    for (uint32_t i = 0; i < c->n_classes; i++)
        if (c->class[i].set.max_tasks && !c->class[i].renewing)
            renew(c, &c->class[i]);
}
