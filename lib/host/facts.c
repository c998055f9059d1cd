/* SPDX-License-Identifier: MIT */
/*
 * facts.c - facts for the core.  Any file may feed one.  The actions that the core orders for it
 * follow at once.  act.c performs them: it is above all other files, so this call goes by pointer.
 */
#include "host/act.h"

#include <stdio.h>

#include "base/clock.h"
#include "host/core.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"

void gpi_hear(gpud_dispatcher *d, struct gpi_sched_event e)
{
    e.now = d->now;
    gpi_core_event(d, &e);
    d->act(d);
}

void gpi_hear_slot(gpud_dispatcher *d, const struct gpi_slot *s, uint32_t kind, uint32_t how)
{
    gpi_hear(d, (struct gpi_sched_event){
                    .kind = kind, .slot = s->index, .incarnation = s->incarnation, .how = how });
}

/* The waits of the core count from now, not from the beginning of the turn: in between, the host
 * may have been stopped for longer than such a wait. */
void gpi_hear_begun(gpud_dispatcher *d, const struct gpi_slot *s)
{
    d->now = gpi_now();
    gpi_hear_slot(d, s, GPI_EV_BEGUN, 0);
}

void gpi_hear_task(gpud_dispatcher *d, const struct gpi_task *t, uint32_t kind, uint32_t how)
{
    gpi_hear(d, (struct gpi_sched_event){ .kind = kind, .task = gpi_task_index(d, t), .how = how });
}

void gpi_hear_device(gpud_dispatcher *d, uint32_t device, uint32_t kind)
{
    gpi_hear(d, (struct gpi_sched_event){ .kind = kind, .device = device });
}

bool gpi_act_later(gpud_dispatcher *d)
{
    const bool acting = d->acting;

    d->acting = true;
    return acting;
}

void gpi_act_now(gpud_dispatcher *d, bool acting)
{
    d->acting = acting;
    d->act(d);
}

void gpi_slot_retire(gpud_dispatcher *d, struct gpi_slot *s, const char *why)
{
    const enum gpi_life life = gpi_slot_life(d, s);

    if (life < GPI_LIFE_BOOT || life > GPI_LIFE_END)
        return;
    d->stats.count.protocol_errors++;
    (void)snprintf(s->blame, sizeof s->blame, "%s", why);
    gpi_log(d, GPUD_LEVEL_ERROR, s->index,
            "worker %d of slot %u broke the protocol: %s; the host kills and replaces it", s->pid,
            s->index, why);
    gpi_hear_slot(d, s, GPI_EV_BROKE, 0);
}
