/* SPDX-License-Identifier: MIT */
/*
 * limit.h - the soft time limit: SIGALRM to the task thread at the deadline, a flag, and the
 * account of the time for which the worker was stopped.
 *
 * Arming is lazy: there is one timer, which moves only when the next deadline is earlier than its
 * time.  After a task that took long it is set exactly, so that the timer of one task does not cut
 * the blocking calls of the next.  On CPU slots the signal ends blocking calls and repeats every 50
 * ms until process returns; on GPUs it arrives once, and calls continue.  The deadline word is
 * stored BEFORE the armed time is read; the reverse order loses alarms.  The flag never decides an
 * outcome: the host compares the end time in the end record with the deadline.  [C6] [C7]
 */
#ifndef GPI_WORKER_LIMIT_H
#define GPI_WORKER_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/alarm.h"
#include "wire/page.h"

struct gpi_limit {
    struct gpi_alarm alarm;
    struct gpi_page *page;
    bool once; /* on GPUs: one signal, and calls continue */
    _Atomic uint64_t deadline; /* of the running task, stops not added; NEVER = none */
    _Atomic uint64_t armed;    /* when the timer will fire, 0 = not armed */
    _Atomic uint64_t cells;    /* of the running tasks, a bit each; 0 = none */
    _Atomic uint32_t expired;
    uint64_t stopped_before;   /* page->stopped_ns when the task began */
    uint64_t stopped_expired;  /* stopped time of the task when the flag was set */
    uint64_t stall;            /* stall limit of the call that begins or runs, NEVER = none */
    _Atomic uint64_t stall_at; /* when it expires, stops not added; NEVER = none */
    _Atomic uint64_t stopped_progress; /* page->stopped_ns at the last progress */
    _Atomic uint32_t continued; /* number of SIGCONT that this process has received */
    _Atomic uint64_t continued_at;
};

/* Installs handlers and timer for the calling thread.  Returns 0, or -1 with errno. */
int gpi_limit_init(struct gpi_limit *l, struct gpi_page *page);

/* Begin and end the watch over one call, for the tasks in these cells (a bit each).  `exact`: the
 * cost of setting the timer does not matter. */
void gpi_limit_begin(struct gpi_limit *l, uint64_t cells, uint64_t started_at, uint64_t limit,
                     bool exact);
void gpi_limit_end(struct gpi_limit *l);

/* With a stall limit (set `stall` before begin): returns the time since the last progress, or
 * the start, less the stops in it.  *ret_stopped: the keeper's account of these stops, when it
 * matters. */
uint64_t gpi_limit_quiet(struct gpi_limit *l, uint64_t now, uint64_t *ret_stopped);
/* There is progress.  From pause on no stall sets the flag, and pause returns a later time than any
 * for which a stall has set it.  So a task that has seen the flag is judged to have stalled. */
uint64_t gpi_limit_pause(struct gpi_limit *l);
void gpi_limit_progress(struct gpi_limit *l, uint64_t now);

/* Returns whether the limit has expired; reads the clock, too, so that it is right with SIGALRM
 * blocked. */
bool gpi_limit_expired(struct gpi_limit *l);
bool gpi_limit_cancelled(struct gpi_limit *l);
/* Returns when to check again whether the limit has expired, in case SIGALRM is ignored; NEVER =
 * not. */
uint64_t gpi_limit_next_look(struct gpi_limit *l, uint64_t now);

/* Returns the stopped time for the end record of an attempt that ended at `ended_at`.
 * `later`: it is a member of a batch, and its own limit is later than that of the call. */
uint64_t gpi_limit_stopped(struct gpi_limit *l, uint64_t ended_at, bool later);

#endif
