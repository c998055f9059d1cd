/* SPDX-License-Identifier: MIT */
/* record.c - the rare parts of leaving a cell, and of the end of a task.   [C1] */
#include "sched/record.h"

void gpi_record_forget_wish(struct gpi_sched *c, struct gpi_sched_record *t)
{
    if (t->wish == GPI_WISH_RETURN) {
        c->slot[t->slot].recalls--;
        c->undecided = true;
    }
    t->wish = GPI_WISH_NO;
}

void gpi_record_left(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (s->stuck)
        gpi_spread_stuck(c, s, false);
    if (s->life == GPI_LIFE_LEAVE || c->plan)
        gpi_ring_touch(c, s);
}

void gpi_record_be_wary(struct gpi_sched *c, struct gpi_sched_record *t)
{
    if (t->wary)
        return;
    t->wary = true;
    if (c->wary++ == 0)
        gpi_spread_refresh_all(c);
}

void gpi_record_trust(struct gpi_sched *c, struct gpi_sched_record *t)
{
    t->wary = false;
    if (--c->wary == 0)
        gpi_spread_refresh_all(c);
}
