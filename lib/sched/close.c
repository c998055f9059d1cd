/* SPDX-License-Identifier: MIT */
/* close.c - intake ends, tasks end, workers end. */
#include "sched/core.h"

/* HOLD takes back each sent task that its worker has not begun.  If the close is NOW, the core
 * cancels the running tasks with the reply.  For a dying worker, both have happened, unless the
 * keeper may still spare it. */
static void hold_all(struct gpi_sched *c)
{
    for (uint32_t i = 0; i < c->n_slots; i++)
        if (c->slot[i].sent && c->slot[i].life <= GPI_LIFE_DOOMED)
            gpi_ring_order(c, &c->slot[i], GPI_ACT_HOLD);
}

/* Makes the close more hasty than before, or changes nothing. */
static void finish(struct gpi_sched *c, uint32_t how)
{
    if (c->closing && how <= c->how)
        return;
    c->closing = true;
    c->how = (uint8_t)how;
    if (how == GPI_CLOSE_ALL)
        return;
    for (uint32_t i = 0; i < c->n_classes; i++)
        gpi_tasks_end_waiting(c, &c->class[i], GPUD_OUTCOME_CANCELLED);
    gpi_external_close(c, (enum gpi_close)how);
    hold_all(c);
}

void gpi_close_asked(struct gpi_sched *c, uint32_t how, uint64_t at)
{
    const bool sooner = at < c->close_at;

    if (sooner)
        c->close_at = at; /* the events of finish have this limit */
    finish(c, how == GPI_CLOSE_LEAVE ? GPI_CLOSE_RUNNING : how);
    if (how == GPI_CLOSE_LEAVE)
        gpi_external_close(c, GPI_CLOSE_LEAVE);
    if (sooner)
        gpi_ring_arm_close(c);
}

void gpi_close_source(struct gpi_sched *c, bool feeding)
{
    c->feeding = feeding;
}

void gpi_close_passed(struct gpi_sched *c)
{
    c->close_at = GPI_NEVER;
    gpi_ring_arm_close(c);
    finish(c, GPI_CLOSE_NOW);
}

bool gpi_close_starts_nothing(const struct gpi_sched *c)
{
    if (!c->closing || c->how == GPI_CLOSE_ALL)
        return c->closing && !c->feeding && c->unended == 0;
    return !gpi_classes_wait(c); /* tasks that a source still brings do not start */
}

bool gpi_close_winds(struct gpi_sched *c)
{
    if (c->winding || !c->closing || c->feeding || c->unended)
        return false;
    c->winding = true;
    return true;
}
