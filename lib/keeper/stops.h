/* SPDX-License-Identifier: MIT */
/*
 * stops.h - how long a worker has been stopped in a row, and which of its stops the keeper reports.
 *
 * Time counts in steps of the keeper's own timer.  If the keeper was stopped or frozen, too, its
 * step is late.  The time until then does not count, since it is unknown which processes ran in it.
 * A step never counts for more than its own length, so that no single late step reaches the limit.
 *
 * A worker may stop and continue as often as it likes, and the host may not read for a long time.
 * At most one STOPPED and one CONTINUED wait in the socket.  The keeper sends STOPPED, the host
 * replies AWAIT once it has read it, and the keeper replies CONTINUED to that, once.
 *
 * Only arithmetic: it knows no process and no clock.
 */
#ifndef GPI_KEEPER_STOPS_H
#define GPI_KEEPER_STOPS_H

#include <stdbool.h>
#include <stdint.h>

enum gpi_stops_said { GPI_STOPS_RUNS, GPI_STOPS_STOPPED, GPI_STOPS_AWAITED };

struct gpi_stops {
    uint64_t limit;           /* ns, GPI_NEVER: stops do not count */
    uint64_t counted;         /* ns of this stop */
    uint64_t from;            /* its begin, or the last step; 0 = the worker is not stopped */
    bool idle;                /* the last step did not count */
    enum gpi_stops_said said; /* the last report; AWAITED: the host has replied */
};

/* To be called when a worker has started, or has ended (limit GPI_NEVER). */
void gpi_stops_reset(struct gpi_stops *s, uint64_t limit);

/* The worker was stopped (again, if it had continued in between), or continues.  These two, and
 * gpi_stops_awaited, return the message to send now, of enum gpi_control_kind, or 0. */
uint32_t gpi_stops_begin(struct gpi_stops *s, uint64_t now);
uint32_t gpi_stops_end(struct gpi_stops *s);
/* The host wants to know when the worker continues. */
uint32_t gpi_stops_awaited(struct gpi_stops *s);

/* Returns when the next step is due, GPI_NEVER = never. */
uint64_t gpi_stops_next(const struct gpi_stops *s);

/* Takes one step.  `counts`: worker and host are in the states in which a stop counts.  Returns
 * true when the limit is reached, once. */
bool gpi_stops_step(struct gpi_stops *s, uint64_t now, bool counts);

#endif
