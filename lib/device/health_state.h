/* SPDX-License-Identifier: MIT */
/*
 * health_state.h - the states of a device and the ways between them: out of use, in doubt, back;
 * with the waits, and when the next canary or look is due. Who asks for which, and why, is
 * health.c's matter.
 */
#ifndef GPI_DEVICE_HEALTH_STATE_H
#define GPI_DEVICE_HEALTH_STATE_H

#include "device/health.h"

/* Says why it is as it is; adds words behind that. */
__attribute__((format(printf, 2, 3))) void gpi_health_say(struct gpi_health *h, const char *format,
                                                          ...);
void gpi_health_add(struct gpi_health *h, const char *words);

bool gpi_health_is_out(const struct gpi_health *h); /* QUARANTINED or LOST */

void gpi_health_enter(struct gpi_health *h, uint32_t state, uint64_t now);

/* Out of use, or still out for another reason. */
enum gpi_measure gpi_health_out(struct gpi_health *h, const struct gpi_health_policy *p,
                                uint32_t state, enum gpi_measure measure, uint64_t now);

/* The next worker passes a canary first, if there are any. */
void gpi_health_owe_canary(struct gpi_health *h, const struct gpi_health_policy *p);

/* A canary decides; workers go on or are replaced meanwhile. */
void gpi_health_doubt(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t now);

/* It takes tasks: as what, says the last reading.  Back: it took none before. */
void gpi_health_in_use(struct gpi_health *h, uint64_t now);
enum gpi_measure gpi_health_back(struct gpi_health *h, uint64_t now);

/* The next wait: backoff, doubled as often as it was waited, up to the cap. */
uint64_t gpi_health_wait(const struct gpi_health *h, const struct gpi_health_policy *p);

/* How often was waited already, for one that goes: what came back lately goes on where its waits
 * had ended, `again` later. */
uint32_t gpi_health_tries(const struct gpi_health *h, const struct gpi_health_policy *p,
                          uint64_t now, uint32_t again);

/* What comes next for a device that is out: a canary, or a reading where only that can help. */
void gpi_health_schedule(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t at);

#endif
