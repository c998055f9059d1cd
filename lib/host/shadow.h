/* SPDX-License-Identifier: MIT */
/*
 * shadow.h - in debug builds, runs the core beside the flags of lib/host, and compares the two.
 *
 * The host feeds the core each event that changes its flags, and compares the states of the core
 * with them.  It drops the actions of the core.
 *
 * The shadow is the second source of truth of docs/design/0018-core.md, and ends with the switch.
 * The core gets no times, and does not read the cells.  If the host acts because a time has
 * expired, the wait of the core ends, too.  The core has each task where the host puts it.
 */
#ifndef GPI_HOST_SHADOW_H
#define GPI_HOST_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

#include "host/dispatcher.h"
#include "sched/event.h"

struct gpi_slot;
struct gpi_task;

#ifdef NDEBUG
#define gpi_shadow_make(d) ((void)0)
#define gpi_shadow_free(d) ((void)0)
#define gpi_shadow_bind(d, device) ((void)0)
#define gpi_shadow_add(d, s) ((void)0)
#define gpi_shadow_slot(d, s, event, how) ((void)0)
#define gpi_shadow_device(d, device, event, use) ((void)0)
#define gpi_shadow_event(d, event) ((void)0)
#define gpi_shadow_died(d, s, begun, kind) ((void)0)
#define gpi_shadow_gone(d, s, how) ((void)0)
#define gpi_shadow_over(d, s) ((void)0)
#define gpi_shadow_late(d, s, why) ((void)0)
#define gpi_shadow_task(d, t) ((void)0)
#define gpi_shadow_close(d) ((void)0)
#define gpi_shadow_close_limit(d) ((void)0)
#else
void gpi_shadow_make(gpud_dispatcher *d);
void gpi_shadow_free(gpud_dispatcher *d);
void gpi_shadow_bind(gpud_dispatcher *d, uint32_t device); /* the device begins anew */
void gpi_shadow_add(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_shadow_slot(gpud_dispatcher *d, struct gpi_slot *s, uint32_t event, uint32_t how);
void gpi_shadow_device(gpud_dispatcher *d, uint32_t device, uint32_t event, uint32_t use);
void gpi_shadow_event(gpud_dispatcher *d, uint32_t event);
/* The host is about to charge the tasks of the slot that are in the cells `begun`. */
void gpi_shadow_died(gpud_dispatcher *d, struct gpi_slot *s, uint64_t begun, uint32_t kind);
/* The keeper of the slot is gone. */
void gpi_shadow_gone(gpud_dispatcher *d, struct gpi_slot *s, uint32_t how);
void gpi_shadow_over(gpud_dispatcher *d, struct gpi_slot *s); /* the wait of its state expired */
/* The host is about to kill the worker for a limit or a cancel. */
void gpi_shadow_late(gpud_dispatcher *d, struct gpi_slot *s, uint32_t why);
void gpi_shadow_task(gpud_dispatcher *d, const struct gpi_task *t); /* after its state changed */
void gpi_shadow_close(gpud_dispatcher *d);
void gpi_shadow_close_limit(gpud_dispatcher *d);
/* Returns true if the core has the slot, or every slot if `s` is NULL, in the state of the host.
 * `turn`: the host has done the work that it does once in a turn. */
bool gpi_shadow_agrees(gpud_dispatcher *d, const struct gpi_slot *s, bool turn);
#endif

#endif
