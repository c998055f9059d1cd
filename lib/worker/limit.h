/* SPDX-License-Identifier: MIT */
/*
 * limit.h - the soft time limit: SIGALRM to the task thread at the deadline, a flag, and the
 * account of time the worker was stopped.
 *
 * Arming is lazy: one timer, moved only when the next deadline is earlier than what it is set
 * to; after a task that took long it is set exactly, so that the timer of one task does not cut
 * the blocking calls of the next.  The deadline word is stored BEFORE the armed time is read; the reverse order loses
 * alarms.  The flag never decides an outcome: the host compares the end time in the end record
 * with the deadline.                                                           [C6] [C7]
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
    _Atomic uint64_t deadline; /* of the running task, stops not added; NEVER = none */
    _Atomic uint64_t armed;    /* when the timer will fire, 0 = not armed */
    _Atomic uint64_t number;   /* send number of the running task, 0 = none */
    _Atomic uint32_t expired;
    uint64_t stopped_before;   /* page->stopped_ns when the task began */
    uint64_t stopped_expired;  /* stopped time of the task when the flag was set */
    _Atomic uint32_t continued; /* SIGCONT seen by us */
    _Atomic uint64_t continued_at;
};

/* Installs handlers and timer for the calling thread.  0, or -1 with errno. */
int gpi_limit_init(struct gpi_limit *l, struct gpi_page *page);

/* Begins and ends the watch over one task.  `exact`: the cost of setting the timer does not matter. */
void gpi_limit_begin(struct gpi_limit *l, uint64_t number, uint64_t started_at, uint64_t limit, bool exact);
void gpi_limit_end(struct gpi_limit *l);

/* Whether the limit has passed; also looks at the clock, so that it is right with SIGALRM blocked. */
bool gpi_limit_expired(struct gpi_limit *l);
bool gpi_limit_cancelled(struct gpi_limit *l);

/* Stopped time to write into the end record of an attempt that ended at `ended_at`. */
uint64_t gpi_limit_stopped(struct gpi_limit *l, uint64_t ended_at);

#endif
