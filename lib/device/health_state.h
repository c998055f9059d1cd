/* SPDX-License-Identifier: MIT */
/*
 * health_state.h - the states of a device and the transitions between them (out of use, in doubt,
 * back), the waits, and the time of the next canary or reading.  health.c decides which transition
 * is due, and why.
 */
#ifndef GPI_DEVICE_HEALTH_STATE_H
#define GPI_DEVICE_HEALTH_STATE_H

#include "device/health.h"

/* Writes the evidence for the state; appends a text to it. */
__attribute__((format(printf, 2, 3))) void gpi_health_say(struct gpi_health *h, const char *format,
                                                          ...);
void gpi_health_add(struct gpi_health *h, const char *words);

bool gpi_health_is_out(const struct gpi_health *h); /* QUARANTINED or LOST */

void gpi_health_enter(struct gpi_health *h, uint32_t state, uint64_t now);

/* Takes a device out of use, or keeps it out for another reason. */
enum gpi_measure gpi_health_out(struct gpi_health *h, const struct gpi_health_policy *p,
                                uint32_t state, enum gpi_measure measure, uint64_t now);

/* The next worker passes a canary first, if there are canaries. */
void gpi_health_owe_canary(struct gpi_health *h, const struct gpi_health_policy *p);

/* A canary decides; meanwhile workers continue or are replaced. */
void gpi_health_doubt(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t now);

/* The device takes tasks: as HEALTHY if its last reading was OK, else as UNKNOWN.  Back: it took
 * none before. */
void gpi_health_in_use(struct gpi_health *h, uint64_t now);
enum gpi_measure gpi_health_back(struct gpi_health *h, uint64_t now);

/* Returns the next wait: backoff, doubled with each try so far, up to the cap. */
uint64_t gpi_health_wait(const struct gpi_health *h, const struct gpi_health_policy *p);

/* Returns the tries of a device that leaves use: one that returned recently continues where its
 * waits had ended, `again` later; else 0. */
uint32_t gpi_health_tries(const struct gpi_health *h, const struct gpi_health_policy *p,
                          uint64_t now, uint32_t again);

/* Schedules the next step for a device that is out: a canary, or a reading where only that can
 * help. */
void gpi_health_schedule(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t at);

#endif
