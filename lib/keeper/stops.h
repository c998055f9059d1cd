/* SPDX-License-Identifier: MIT */
/*
 * stops.h - how long a worker has been stopped in a row, and what its keeper says of its stops.
 *
 * Time counts in steps of the keeper's own timer.  A keeper that was stopped or frozen, too, comes
 * late to its step, and the time until then counts as none, since nobody knows who ran in it.  A
 * step never counts for more than its own length, so that no single late one reaches the limit.
 *
 * A worker may stop and go on as often as it likes, and the host may not read for long: at most
 * one STOPPED and one CONTINUED wait in the socket.  STOPPED is said, the host asks by AWAIT, and
 * CONTINUED answers that, once.
 *
 * Arithmetic; knows no process and no clock.
 */
#ifndef GPI_KEEPER_STOPS_H
#define GPI_KEEPER_STOPS_H

#include <stdbool.h>
#include <stdint.h>

enum gpi_stops_said { GPI_STOPS_RUNS, GPI_STOPS_STOPPED, GPI_STOPS_AWAITED };

struct gpi_stops {
    uint64_t limit;           /* GPI_NEVER: nothing is counted */
    uint64_t counted;         /* of this stop */
    uint64_t from;            /* its begin, or the last step; 0 = the worker is not stopped */
    bool idle;                /* the last step counted as none */
    enum gpi_stops_said said; /* what the host was told, and whether it has asked since */
};

/* A worker has been started, or has ended (limit GPI_NEVER). */
void gpi_stops_reset(struct gpi_stops *s, uint64_t limit);

/* It was stopped (again: it had gone on meanwhile), or goes on.  Both, and awaited, return the word
 * to be said now, of enum gpi_control_kind, or 0. */
uint32_t gpi_stops_begin(struct gpi_stops *s, uint64_t now);
uint32_t gpi_stops_end(struct gpi_stops *s);
/* The host wants to know when the worker goes on. */
uint32_t gpi_stops_awaited(struct gpi_stops *s);

/* When the next step is due, GPI_NEVER = none. */
uint64_t gpi_stops_next(const struct gpi_stops *s);

/* One step.  `counts`: it is known that worker and host were as they have to be for it.  True when
 * the limit is reached, once. */
bool gpi_stops_step(struct gpi_stops *s, uint64_t now, bool counts);

#endif
