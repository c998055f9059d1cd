/* SPDX-License-Identifier: MIT */
/* alarm.h - a timer whose SIGALRM goes to one thread (a worker's task thread) only. */
#ifndef GPI_OS_ALARM_H
#define GPI_OS_ALARM_H

#include <stdint.h>
#include <time.h>

struct gpi_alarm {
    timer_t timer;
};

/* Makes it for the calling thread.  0, or -1 with errno. */
int gpi_alarm_init(struct gpi_alarm *a);

/* Lets it fire once at this house time (in the past: at once).  Async-signal-safe. */
void gpi_alarm_at(const struct gpi_alarm *a, uint64_t when);
void gpi_alarm_off(const struct gpi_alarm *a);

#endif
