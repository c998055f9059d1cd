/* SPDX-License-Identifier: MIT */
/*
 * event.h - events for the user: outcomes, which are tasks that have ended, and notes, which are
 * all other events.
 *
 *   notes.c        notes, and the ring of both
 *   grants.c       the events GRANTED and REVOKED, between both
 *   events.c       from outcomes and notes to struct gpud_event
 *   kept_events.c  events that outlive the next poll, and the dispatcher
 */
#ifndef GPI_HOST_EVENT_H
#define GPI_HOST_EVENT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/slot.h"
#include "host/task.h"
#include "wire/page.h"

#define GPI_RING_NOTE 0x80000000u
/* Events of external work: grants.c makes them when the user reads them. */
#define GPI_RING_GRANTED 0x40000000u
#define GPI_RING_REVOKED 0x20000000u /* the least of the three: smaller entries are outcomes */

/* An event that is not an outcome. */
struct gpi_note {
    uint32_t kind, slot, incarnation, state, level, phase, exit_kind;
    int32_t code, exit_status;
    uint32_t device, health, xid; /* DEVICE: the device's place in the table */
    struct gpi_device_set on;     /* pooled: the slot's devices, or those of external work */
    uint32_t share, cpus, variant, attempts, revoked, revoke; /* GRANTED, REVOKED */
    uint64_t memory, host_memory, limit, revoke_by;
    uint32_t class, change;       /* pooled: the class, or GPI_NONE; of CLASS, with the change */
    uint32_t promise;             /* PROMISE: enum gpud_promise */
    uint64_t starts_by;           /* PROMISE: 0: never */
    uint64_t task_id, tag;
    uint64_t started_at; /* STARTED, and `attempt` */
    uint32_t attempt;
    double progress;
    char *output; /* malloc */
    uint32_t output_size;
    uint32_t stream; /* LOG: stream of a printed line, which is in output, with a zero at its end */
    uint32_t next_free;
    char text[GPI_FAIL_TEXT_SIZE];
    char label[GPI_LABEL_SIZE];
};

/* notes.c */
int gpi_events_init(gpud_dispatcher *d);
int gpi_events_grow(gpud_dispatcher *d, uint32_t slots); /* room for the events of `slots` more */
void gpi_events_fini(gpud_dispatcher *d);
void gpi_note_init(struct gpi_note *n); /* about no slot, device or class */
struct gpi_note *gpi_note_new(gpud_dispatcher *d, uint32_t kind, bool droppable);
void gpi_note_name_task(const gpud_dispatcher *d, const struct gpi_task *t, struct gpi_note *n);
/* About a task at this slot.  Droppable; NULL if there is no room. */
struct gpi_note *gpi_note_of_task(gpud_dispatcher *d, const struct gpi_slot *s,
                                  const struct gpi_task *t, uint32_t kind);
void gpi_note_push(gpud_dispatcher *d, struct gpi_note *n);
void gpi_note_free(gpud_dispatcher *d, struct gpi_note *n);
/* Marks each class that an event, but an outcome, has which the host has not read or still has. */
void gpi_notes_name(const gpud_dispatcher *d, bool *ret_class);
/* Pooled: the class has changed.  `change` is an enum gpud_class_change. */
void gpi_class_tell(gpud_dispatcher *d, uint32_t class, uint32_t change, const char *text);
/* Pooled: the waiting task starts by `at`; or GPI_NEVER.  `how`: enum gpi_promise. */
void gpi_promise_tell(gpud_dispatcher *d, const struct gpi_task *t, uint32_t how, uint64_t at);
void gpi_log(gpud_dispatcher *d, uint32_t level, uint32_t slot, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Logs a line that a worker has printed, with level INFO. */
void gpi_log_line(gpud_dispatcher *d, const struct gpi_slot *s, uint32_t stream, uint64_t task_id,
                  const char *text, uint32_t size);

/* events.c */
/* Writes the device's names into the event; without a device the names of its slot's devices, or
 * those of the set, which may be in `room`. */
void gpi_note_names(const gpud_dispatcher *d, const struct gpi_lent_note *n,
                    struct gpi_names_room *room, struct gpud_event *e);
bool gpi_lent_release(gpud_dispatcher *d); /* returns true if any event was lent */
void gpi_event_of(gpud_dispatcher *d, const struct gpi_task *t, struct gpi_names_room *room,
                  struct gpud_event *e);
int gpi_events_take(gpud_dispatcher *d, struct gpud_event *events, size_t stride, size_t n);

/* kept_events.c */
/* Returns 0, EFULL or ENOMEM. */
int gpi_keep_outcome(gpud_dispatcher *d, struct gpi_task *t, struct gpud_event *e);
int gpi_keep_lent(gpud_dispatcher *d, struct gpud_event *e);
void gpi_keep_release(struct gpud_event *e);
void gpi_keep_leave(gpud_dispatcher *d); /* before the dispatcher is freed */
uint32_t gpi_keep_count(const gpud_dispatcher *d);

static inline uint32_t gpi_ring_length(const gpud_dispatcher *d)
{
    return d->events.ring_tail - d->events.ring_head;
}

static inline uint32_t gpi_events_waiting(const gpud_dispatcher *d)
{
    return gpi_ring_length(d) - d->events.n_skipped;
}

static inline void gpi_event_append(gpud_dispatcher *d, uint32_t entry)
{
    assert(gpi_ring_length(d) <= d->events.ring_mask);
    d->events.ring[d->events.ring_tail++ & d->events.ring_mask] = entry;
}

/* Call after one or more were appended. */
static inline void gpi_events_appended(gpud_dispatcher *d)
{
    if (d->waits.asleep || d->pollable.outer >= 0)
        gpi_drive_tell(d);
}

static inline void gpi_event_push(gpud_dispatcher *d, uint32_t entry)
{
    gpi_event_append(d, entry);
    gpi_events_appended(d);
}

/* The counters of outcomes lie side by side, in the order of enum gpud_outcome. */
_Static_assert(offsetof(struct gpud_stats, no_worker) - offsetof(struct gpud_stats, success) ==
                   (GPUD_OUTCOME_NO_WORKER - GPUD_OUTCOME_SUCCESS) * sizeof(uint64_t),
               "one counter per outcome");

static inline void gpi_outcome_count(gpud_dispatcher *d, const struct gpi_task *t)
{
    uint64_t *first =
        (uint64_t *)(void *)((char *)&d->stats.count + offsetof(struct gpud_stats, success));

    first[t->outcome - GPUD_OUTCOME_SUCCESS]++;
    if (t->has_slot)
        d->slot[t->slot].outcomes[t->outcome]++;
}

/* As gpi_task_end, inline for completions.c. */
static inline void gpi_task_settle(gpud_dispatcher *d, struct gpi_task *t, uint32_t outcome,
                                   uint32_t phase, int32_t code)
{
    assert(t->state == GPI_TASK_QUEUED || t->state == GPI_TASK_SENT);
    t->state = GPI_TASK_ENDED;
    t->outcome = (uint8_t)outcome;
    t->phase = (uint8_t)phase;
    t->code = code;
    if (!t->ended_at)
        t->ended_at = gpi_now();
    if (t->result_place == GPI_RESULT_NONE)
        t->size = 0;
    if (t->has_block && !t->has_label)
        gpi_task_free_block(d, t);
    d->stats.cost_left -= t->cost;
    if (t->attempts) { /* else no worker has done any work */
        d->stats.ran++;
        d->stats.cost_done += t->cost;
    }
    gpi_outcome_count(d, t);
    if (t->awaited)
        gpi_wait_ended(d, t);
    else
        gpi_event_push(d, gpi_task_index(d, t));
}

#endif
