/* SPDX-License-Identifier: MIT */
/*
 * play.h - wraps a core: feeds it, and writes a log of its steps and effects.
 *
 * Each call feeds the core and takes all effects of this step from it at once.  So the log has just
 * the effects of a step below that step, and a replay gets the same effects.  The caller may fetch
 * the effects later: actions in the order of the core's ring, ends in their own order.  As with the
 * core itself, the caller fetches every action before it calls gpi_play_decide.
 *
 * The caller may query `core` directly (gpi_sched_due, gpi_sched_life ...).  The log lacks any step
 * that the caller feeds to `core` directly.  gpi_play_fini sets all members to NULL or 0, and a
 * second call of it does nothing.
 *
 * Thread: one thread at a time per object, as for the core.
 */
#ifndef GPI_LOG_PLAY_H
#define GPI_LOG_PLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sched/sched.h"

struct gpi_log_line; /* log.h */

/* Effects taken from the core, which the caller has not fetched yet. */
struct gpi_play_queue {
    unsigned char *at;
    size_t first, n, room; /* records */
};

/* Receives the log: whole lines, with their line ends. */
typedef void gpi_play_write_fn(void *to, const char *lines, size_t size);

struct gpi_play {
    struct gpi_sched *core;
    gpi_play_write_fn *write; /* NULL = no log */
    void *to;
    bool begun;  /* the log has an event, a call or an effect */
    bool ruled;  /* the current step has an effect */
    bool result; /* of the last `submit` or `end`: see sched/sched.h */
    bool lists;  /* set by the caller: gpi_play_ended returns the result of an `end` step, too, as
                  * the first of this step */
    uint64_t now; /* the core's time */
    struct gpi_sched_settings set; /* as the log has them by now */
    struct gpi_plan_class class; /* pooled: the next class is that for the plan */
    struct gpi_plan_has has;     /* the same of the next device */
    struct gpi_play_queue actions, ends;
};

#ifdef GPI_SCHED_PROBE
/* Set by a program that counts its calls of malloc, calloc, realloc and free; NULL: not counted.
 * The second sums up those of steps: the core allocates memory only in create and for a class, so
 * it stays 0. */
extern const uint64_t *gpi_play_allocations;
extern uint64_t gpi_play_allocations_of_steps;
#endif

/* Creates a core.  Until gpi_play_fini the play calls `write` with `to`.  `write` may be NULL.
 * Returns false if memory is exhausted. */
bool gpi_play_init(struct gpi_play *p, const struct gpi_sched_settings *set,
                   gpi_play_write_fn *write, void *to);
void gpi_play_fini(struct gpi_play *p);

/* Wrappers of the core's functions: see sched/sched.h.  gpi_play_send sends one task. */
int gpi_play_class(struct gpi_play *p, uint32_t class, const struct gpi_class_settings *set,
                   const struct gpi_plan_class *plan);
void gpi_play_device(struct gpi_play *p, uint32_t device, bool watched, uint64_t kill_limit,
                     const struct gpi_plan_has *has);
void gpi_play_places(struct gpi_play *p, uint32_t set, uint32_t device);
void gpi_play_no_places(struct gpi_play *p, uint32_t set);
void gpi_play_slot(struct gpi_play *p, uint32_t slot, uint32_t class, const uint16_t *device,
                   uint32_t n);
void gpi_play_foreign(struct gpi_play *p, uint64_t now, uint32_t device, uint64_t bytes,
                      uint32_t load);
void gpi_play_observed(struct gpi_play *p, uint64_t now, uint32_t slot, uint32_t device,
                       uint64_t bytes);
void gpi_play_observed_of(struct gpi_play *p, uint64_t now, uint32_t task, uint32_t device,
                          uint64_t bytes);
void gpi_play_adopt(struct gpi_play *p, uint64_t now, uint32_t task,
                    const struct gpi_sched_adoption *a);
void gpi_play_class_set(struct gpi_play *p, uint64_t now, uint32_t class,
                        enum gpi_plan_class_what what);
void gpi_play_event(struct gpi_play *p, const struct gpi_sched_event *e);
void gpi_play_decide(struct gpi_play *p, uint64_t now);
bool gpi_play_submit(struct gpi_play *p, uint32_t task, const struct gpi_sched_task *what);
bool gpi_play_send(struct gpi_play *p, uint64_t now, struct gpi_sched_order *ret);
bool gpi_play_end(struct gpi_play *p, uint64_t now, const struct gpi_sched_attempt *a);
void gpi_play_success(struct gpi_play *p, uint64_t now, uint32_t task, uint64_t run);
bool gpi_play_next(struct gpi_play *p, struct gpi_sched_action *ret);
bool gpi_play_ended(struct gpi_play *p, struct gpi_sched_end *ret);

/* Writes a comment with a fact for readers: see log.h.  Without a text it writes none. */
void gpi_play_note(struct gpi_play *p, const char *noun, uint64_t number, const char *word,
                   const char *text);

/* Feeds one step, a line of a kind from FACT to DECIDE, at the line's time.  Lines of events and
 * calls are stamped.  For a SEND it sets *ret_sent to the line of the sent task, or returns false
 * if the core has no task to send. */
bool gpi_play_line(struct gpi_play *p, const struct gpi_log_line *l, struct gpi_log_line *ret_sent);

#endif
