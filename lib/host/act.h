/* SPDX-License-Identifier: MIT */
/*
 * act.h - the host and the core (sched/sched.h): facts go in, actions come out.
 *
 * A thread that holds the lock may feed a fact.  The outermost call that feeds one performs the
 * actions at once.  If an action brings about a fact, its handler feeds that fact, and the actions
 * of that fact follow behind.  So no handler calls another one.  The time of a fact is d->now.
 */
#ifndef GPI_HOST_ACT_H
#define GPI_HOST_ACT_H

#include "host/dispatcher.h"
#include "sched/sched.h"

struct gpi_slot;
struct gpi_task;

/* facts.c */
void gpi_hear(gpud_dispatcher *d, struct gpi_sched_event e);
/* A fact about the slot's worker or keeper. */
void gpi_hear_slot(gpud_dispatcher *d, const struct gpi_slot *s, uint32_t kind, uint32_t how);
void gpi_hear_begun(gpud_dispatcher *d, const struct gpi_slot *s); /* an order was just sent */
void gpi_hear_task(gpud_dispatcher *d, const struct gpi_task *t, uint32_t kind, uint32_t how);
void gpi_hear_device(gpud_dispatcher *d, uint32_t device, uint32_t kind);
/* Between these two calls the actions wait, because they could change the cells that the caller
 * reads. */
bool gpi_act_later(gpud_dispatcher *d); /* the value for gpi_act_now */
void gpi_act_now(gpud_dispatcher *d, bool acting);
/* The worker broke the protocol: feeds the fact BROKE and writes a log line. */
void gpi_slot_retire(gpud_dispatcher *d, struct gpi_slot *s, const char *why);

/* act.c */
/* Performs the actions that the core has ordered, and sets the outcomes of the tasks that the core
 * has ended.  The files below act.c call it as d->act. */
void gpi_act(gpud_dispatcher *d);
/* Lets the core begin all that it can: make keepers, start workers, send tasks. */
void gpi_decide(gpud_dispatcher *d);

#endif
