/* SPDX-License-Identifier: MIT */
/*
 * act.h - the host and the core (sched/sched.h): facts go in, actions come out.
 *
 * Whoever has the lock may feed a fact.  The actions that follow are performed at once, by the
 * first who feeds; a fact that an action brings about is fed, and its actions follow behind.  So no
 * handler calls another one.  The time of a fact is d->now.
 */
#ifndef GPI_HOST_ACT_H
#define GPI_HOST_ACT_H

#include "host/dispatcher.h"
#include "sched/sched.h"

struct gpi_slot;
struct gpi_task;

void gpi_hear(gpud_dispatcher *d, struct gpi_sched_event e);
/* Of the slot's worker, or its keeper. */
void gpi_hear_slot(gpud_dispatcher *d, const struct gpi_slot *s, uint32_t kind, uint32_t how);
void gpi_hear_begun(gpud_dispatcher *d, const struct gpi_slot *s); /* an order was sent, just now */
void gpi_hear_task(gpud_dispatcher *d, const struct gpi_task *t, uint32_t kind, uint32_t how);
void gpi_hear_device(gpud_dispatcher *d, uint32_t device, uint32_t kind);
/* Performs what the core has ordered, and gives the tasks that it has ended their outcomes. */
void gpi_act(gpud_dispatcher *d);
/* Lets the core begin what it can: keepers, workers, tasks. */
void gpi_decide(gpud_dispatcher *d);

#endif
