/* SPDX-License-Identifier: MIT */
/*
 * play.h - a core that is fed through here, so that a log of it can be written.
 *
 * Each call feeds the core, and takes from it at once all that this step has brought: the log has
 * under each step just its effects, and a replay has the same.  The caller fetches them when it
 * likes: actions in the order of the core's ring, ends in their order.  As with the core itself, no
 * action is left when it calls gpi_play_decide.
 *
 * `core` is there to be asked (gpi_sched_due, gpi_sched_life ...).  What is fed to it directly is
 * missing in the log.  Everything is NULL or 0 after gpi_play_fini, which may be called twice.
 *
 * Thread: one at a time per object, as for the core.
 */
#ifndef GPI_SIM_PLAY_H
#define GPI_SIM_PLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sched/sched.h"

struct gpi_log_line; /* log.h */

/* What was taken from the core, and not yet by the caller. */
struct gpi_play_queue {
    unsigned char *at;
    size_t first, n, room; /* records */
};

struct gpi_play {
    struct gpi_sched *core;
    FILE *out;   /* the log; NULL: none is written */
    bool begun;  /* it has an event, a call or an effect */
    bool ruled;  /* this step has an effect */
    struct gpi_play_queue actions, ends;
};

/* Makes a core.  `out` stays the caller's, and open as long as this is in use.  False: there is no
 * memory. */
bool gpi_play_init(struct gpi_play *p, const struct gpi_sched_settings *set, FILE *out);
void gpi_play_fini(struct gpi_play *p);

/* The core's functions, see sched/sched.h. */
void gpi_play_device(struct gpi_play *p, uint32_t device, bool watched, uint64_t kill_limit);
void gpi_play_slot(struct gpi_play *p, uint32_t slot, const uint16_t *device, uint32_t n);
void gpi_play_event(struct gpi_play *p, const struct gpi_sched_event *e);
void gpi_play_decide(struct gpi_play *p, uint64_t now);
void gpi_play_submit(struct gpi_play *p, uint64_t now, uint32_t task,
                     const struct gpi_sched_task *what);
bool gpi_play_send(struct gpi_play *p, uint64_t now, uint32_t *ret_slot, uint32_t *ret_task,
                   uint32_t *ret_cell);
void gpi_play_end(struct gpi_play *p, uint64_t now, uint32_t task, uint32_t outcome,
                  uint32_t phase);
bool gpi_play_next(struct gpi_play *p, struct gpi_sched_action *ret);
bool gpi_play_ended(struct gpi_play *p, struct gpi_sched_end *ret);

/* Feeds what a line of kind DEVICE to DECIDE says, at its time: events and calls are stamped.
 * False: it was a send, and there is nothing to send; else, for a send, *ret_sent is its line. */
bool gpi_play_line(struct gpi_play *p, const struct gpi_log_line *l, struct gpi_log_line *ret_sent);

#endif
