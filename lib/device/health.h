/* SPDX-License-Identifier: MIT */
/*
 * health.h - how a device is judged: from what happened to it, from readings and from canaries.
 * Pure: no clock, no fd, no memory of its own.
 *
 *   HEALTHY      takes tasks
 *   UNKNOWN      nothing can be read, or not for long; takes tasks (a driver that does not answer a
 *                monitor may serve workers well), and is never called healthy
 *   SUSPECT      takes tasks once the canary has passed: after a fault that a fresh worker clears, or
 *                when workers died there again and again while others did well
 *   QUARANTINED  takes none: a fault that needs a reset, a failed remap, canaries that failed
 *   LOST         takes none: it has fallen off the bus
 *   REVOKED      takes no new worker; what runs goes on: access was taken away, the hardware is fine
 *
 * The way back is by evidence only: so many canaries in a row, with a wait between tries that
 * doubles, and nothing in the last reading that speaks against it.  Nothing is for ever.
 *
 * The driver's own word (recovery action) goes before our table of XIDs: when it says that nothing
 * is needed an XID restarts the worker at most, when it says reset the device is drained.
 */
#ifndef GPI_DEVICE_HEALTH_H
#define GPI_DEVICE_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include "device/xid.h"
#include "gpudispatch/error.h"
#include "gpudispatch/types.h"

/* What a judgement asks the dispatcher to do with the device's workers: the strongest is given. */
enum gpi_measure {
    GPI_MEASURE_NONE,
    GPI_MEASURE_RESTART, /* kill its workers, their tasks are charged to the device; canary before the next task */
    GPI_MEASURE_DRAIN,   /* no new task; what runs ends by itself, within its limits; then the workers go */
    GPI_MEASURE_FENCE,   /* as RESTART, and no worker is started until it is back */
    GPI_MEASURE_RETURN   /* it is back in use: workers may start and take tasks */
};

struct gpi_health_policy {
    uint32_t passes;              /* canaries in a row that bring a device back */
    uint64_t backoff, backoff_cap; /* between tries, doubling */
    uint64_t own_kill;            /* for so long after a kill of ours 43 and 45 are expected */
    uint64_t stale;               /* a reading older than this is unknown, while readings are asked for */
    struct gpi_xid_rules xids;
};

#define GPI_EVIDENCE_SIZE 160u

struct gpi_health {
    uint32_t state;   /* enum gpud_health */
    uint64_t since;
    char evidence[GPI_EVIDENCE_SIZE];
    uint32_t last_xid, xids;
    uint64_t last_xid_at;
    uint32_t recovery;        /* the driver's last word, GPI_UNKNOWN32 = none */
    uint64_t killed_at;       /* our last kill on it, 0 = none */
    uint32_t passes;          /* canaries in a row */
    uint32_t failures;        /* canaries that failed, in all */
    uint32_t tries;           /* to bring it back, since it went */
    uint64_t try_at;          /* the next canary; GPI_NEVER = none is due */
    bool canary_due;          /* the next worker must pass one before it gets a task */
    bool speaks_against;      /* the last reading forbids a return */
};

void gpi_health_init(struct gpi_health *h, uint32_t kind, uint64_t now); /* CPU: HEALTHY for good; GPU, FAKE: UNKNOWN until the first reading */

/* Each returns what is to be done now. h->state, since and evidence are what an event tells: the caller compares the state before and after. */
enum gpi_measure gpi_health_incident(struct gpi_health *h, const struct gpi_health_policy *p, const struct gpi_incident *i, uint64_t now);
enum gpi_measure gpi_health_sample(struct gpi_health *h, const struct gpi_health_policy *p, const struct gpi_sample *s, uint64_t now);
enum gpi_measure gpi_health_silence(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t asked_at, uint64_t now); /* no reading came, or the monitor is gone */
enum gpi_measure gpi_health_canary(struct gpi_health *h, const struct gpi_health_policy *p, bool passed, const char *text, uint64_t now);
enum gpi_measure gpi_health_suspect(struct gpi_health *h, const struct gpi_health_policy *p, const char *why, uint64_t now); /* several deaths in a row there while others do well; a fault a worker saw (sticky error) */
enum gpi_measure gpi_health_return(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t now); /* the user asks: try now */
void gpi_health_killed(struct gpi_health *h, uint64_t now); /* we killed a worker there: its XIDs are ours, its successor passes a canary first */

/* Whether a worker may be started there, and whether it may be given tasks. */
bool gpi_health_starts(const struct gpi_health *h);

#endif
