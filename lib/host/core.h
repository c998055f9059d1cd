/* SPDX-License-Identifier: MIT */
/*
 * core.h - the dispatcher's core, and the calls that change it.
 *
 * With option decision_log these calls also write the log of the core (log/log.h, log_file.h).  A
 * build with assertions writes one of each other dispatcher, too, if the environment has
 * GPI_SCHED_LOG=DIRECTORY when the dispatcher is created: DIRECTORY/PID-N.log for the process's Nth
 * one, 64 MiB at most.  That file is opened for each write: the tests count descriptors.
 *
 * Each function is that of sched/sched.h with the same name.  The lock is held.  Queries use
 * d->core.
 */
#ifndef GPI_HOST_CORE_H
#define GPI_HOST_CORE_H

#include "base/bits.h"
#include "host/dispatcher.h"
#include "log/play.h"
#include "sched/sched.h"

struct gpi_log_end; /* log_file.h */

#define GPI_LOGGED_OR(logged, plain) (GPI_SELDOM(d->play) ? (logged) : (plain))

/* Creates d->core.  Returns 0 or ENOMEM. */
int gpi_core_create(gpud_dispatcher *d, const struct gpi_sched_settings *set);
void gpi_core_destroy(gpud_dispatcher *d);
/* For the calls that each task needs. */
GPI_RARE bool gpi_core_submit_logged(gpud_dispatcher *d, uint32_t task,
                                     const struct gpi_sched_task *what);
GPI_RARE void gpi_core_success_logged(gpud_dispatcher *d, uint64_t now, uint32_t task,
                                      uint64_t run);
uint32_t gpi_core_send_logged(gpud_dispatcher *d, uint64_t now, struct gpi_sched_order *ret,
                              uint32_t most);

/* Before the driving thread sleeps, if d->play is set: completes the log in case a signal ends the
 * process.  Returns true once after the log of the option has ended early. */
bool gpi_core_flush_log(gpud_dispatcher *d, struct gpi_log_end *ret);

/* Adds a fact for readers to the log, if there is one: see log/log.h. */
static inline void gpi_core_note(const gpud_dispatcher *d, const char *noun, uint64_t number,
                                 const char *word, const char *text)
{
    if (GPI_SELDOM(d->play))
        gpi_play_note(d->play, noun, number, word, text);
}

static inline int gpi_core_class_add(gpud_dispatcher *d, uint32_t class,
                                     const struct gpi_class_settings *set,
                                     const struct gpi_plan_class *plan)
{
    return GPI_LOGGED_OR(gpi_play_class(d->play, class, set, plan),
                         gpi_sched_class_add(d->core, class, set, plan));
}

static inline void gpi_core_class_set(gpud_dispatcher *d, uint64_t now, uint32_t class,
                                      enum gpi_plan_class_what what)
{
    GPI_LOGGED_OR(gpi_play_class_set(d->play, now, class, what),
                  gpi_sched_class_set(d->core, now, class, what));
}

static inline void gpi_core_foreign(gpud_dispatcher *d, uint64_t now, uint32_t device,
                                    uint64_t bytes, uint32_t load)
{
    GPI_LOGGED_OR(gpi_play_foreign(d->play, now, device, bytes, load),
                  gpi_sched_foreign(d->core, now, device, bytes, load));
}

static inline void gpi_core_observed(gpud_dispatcher *d, uint64_t now, uint32_t slot,
                                     uint32_t device, uint64_t bytes)
{
    GPI_LOGGED_OR(gpi_play_observed(d->play, now, slot, device, bytes),
                  gpi_sched_observed(d->core, now, slot, device, bytes));
}

static inline void gpi_core_observed_of(gpud_dispatcher *d, uint64_t now, uint32_t task,
                                        uint32_t device, uint64_t bytes)
{
    GPI_LOGGED_OR(gpi_play_observed_of(d->play, now, task, device, bytes),
                  gpi_sched_observed_of(d->core, now, task, device, bytes));
}

static inline void gpi_core_adopt(gpud_dispatcher *d, uint64_t now, uint32_t task,
                                  const struct gpi_sched_adoption *a)
{
    GPI_LOGGED_OR(gpi_play_adopt(d->play, now, task, a),
                  gpi_sched_adopt(d->core, now, task, a));
}

static inline void gpi_core_device_add(gpud_dispatcher *d, uint32_t device, bool watched,
                                       uint64_t kill_limit, const struct gpi_plan_has *has)
{
    GPI_LOGGED_OR(gpi_play_device(d->play, device, watched, kill_limit, has),
                  gpi_sched_device_add(d->core, device, watched, kill_limit, has));
}

static inline void gpi_core_places_add(gpud_dispatcher *d, uint32_t set, uint32_t device)
{
    GPI_LOGGED_OR(gpi_play_places(d->play, set, device),
                  gpi_sched_places_add(d->core, set, device));
}

static inline void gpi_core_places_empty(gpud_dispatcher *d, uint32_t set)
{
    GPI_LOGGED_OR(gpi_play_no_places(d->play, set), gpi_sched_places_empty(d->core, set));
}

static inline void gpi_core_slot_add(gpud_dispatcher *d, uint32_t slot, uint32_t class,
                                     const uint16_t *device, uint32_t n)
{
    GPI_LOGGED_OR(gpi_play_slot(d->play, slot, class, device, n),
                  gpi_sched_slot_add(d->core, slot, class, device, n));
}

static inline void gpi_core_event(gpud_dispatcher *d, const struct gpi_sched_event *e)
{
    GPI_LOGGED_OR(gpi_play_event(d->play, e), gpi_sched_event(d->core, e));
}

static inline void gpi_core_decide(gpud_dispatcher *d, uint64_t now)
{
    GPI_LOGGED_OR(gpi_play_decide(d->play, now), gpi_sched_decide(d->core, now));
}

static inline bool gpi_core_next(gpud_dispatcher *d, struct gpi_sched_action *ret)
{
    return GPI_LOGGED_OR(gpi_play_next(d->play, ret), gpi_sched_next(d->core, ret));
}

static inline bool gpi_core_ended(gpud_dispatcher *d, struct gpi_sched_end *ret)
{
    return GPI_LOGGED_OR(gpi_play_ended(d->play, ret), gpi_sched_ended(d->core, ret));
}

static inline bool gpi_core_submit(gpud_dispatcher *d, uint32_t task,
                                   const struct gpi_sched_task *what)
{
    return GPI_LOGGED_OR(gpi_core_submit_logged(d, task, what),
                         gpi_sched_submit(d->core, task, what));
}

static inline uint32_t gpi_core_send(gpud_dispatcher *d, uint64_t now, struct gpi_sched_order *ret,
                                     uint32_t most)
{
    return GPI_LOGGED_OR(gpi_core_send_logged(d, now, ret, most),
                         gpi_sched_send(d->core, now, ret, most));
}

static inline bool gpi_core_end(gpud_dispatcher *d, uint64_t now,
                                const struct gpi_sched_attempt *a)
{
    return GPI_LOGGED_OR(gpi_play_end(d->play, now, a), gpi_sched_end(d->core, now, a));
}

static inline void gpi_core_success(gpud_dispatcher *d, uint64_t now, uint32_t task, uint64_t run)
{
    GPI_LOGGED_OR(gpi_core_success_logged(d, now, task, run),
                  gpi_sched_success(d->core, now, task, run));
}

#endif
