/* SPDX-License-Identifier: MIT */
/*
 * health.h - how a device is judged: from what happened to it, from readings and from canaries.
 * Pure: no clock, no fd, no memory of its own.
 *
 *   HEALTHY      takes tasks
 *   UNKNOWN      nothing can be read, or not for long; takes tasks (a driver that does not answer a
 *                monitor may serve workers well), and is never called healthy
 *   SUSPECT      takes tasks once a canary has passed: after a fault that a fresh worker clears,
 *   one that
 *                nobody knows, or when workers died there again and again while others did well
 *   QUARANTINED  takes none: a fault that needs a reset, a failed remap, canaries that failed
 *   LOST         takes none: it has fallen off the bus
 *   REVOKED      takes no new worker; what runs goes on: access was taken away, the hardware is
 *   fine
 *
 * The way back is by evidence only: so many canaries in a row, with a wait between tries that
 * doubles, and nothing in the last reading that speaks against it. While a reading does (the driver
 * asks for a reset, a remap has failed, it is lost or revoked) there are no tries but new readings,
 * with the same waits. Nothing is for ever: a device that is out of use has try_at or look_at. One
 * that comes back and goes again within the longest wait goes on where its waits had ended.
 *
 * The driver's own word (recovery action) goes before our table of XIDs, once it is younger than
 * the XID: when it says reset the device is drained or fenced; when it says that nothing is needed
 * after an XID that the table calls a reset, a canary may run at once. So ask for a reading after
 * each incident (look_at says so).
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
    /* kill its workers, their tasks are charged to the device; canary before the next task */
    GPI_MEASURE_RESTART,
    /* no new task; what runs ends by itself, within its limits; then the workers go.  New ones
     * come where gpi_health_starts says so (SUSPECT) */
    GPI_MEASURE_DRAIN,
    GPI_MEASURE_FENCE,   /* as RESTART, and no worker is started until it is back */
    GPI_MEASURE_RETURN   /* it is back in use: workers may start and take tasks */
};

struct gpi_health_policy {
    /* canaries in a row that bring a device back; 0 = there are none (GPUD_CUDA_NO_CANARY):
     * readings decide alone */
    uint32_t passes;
    uint64_t backoff, backoff_cap; /* between tries, doubling */
    uint64_t own_kill;            /* for so long after a kill of ours 43 and 45 are expected */
    /* a reading older than this is unknown, while readings are asked for */
    uint64_t stale;
    bool looks_only;          /* a monitor: it runs no workers, so what a canary must clear stays */
    struct gpi_xid_rules xids;
};

#define GPI_EVIDENCE_SIZE 160u

struct gpi_health {
    uint32_t state;   /* enum gpud_health */
    uint32_t kind;    /* enum gpud_device_kind */
    uint64_t since;
    char evidence[GPI_EVIDENCE_SIZE];
    uint32_t last_xid, xids; /* without those that our own kills explain */
    uint64_t last_xid_at;
    uint32_t recovery;        /* the driver's last word, GPI_UNKNOWN32 = none */
    uint64_t killed_at;       /* our last kill on it, 0 = none */
    uint32_t passes;          /* canaries in a row, since it went */
    uint32_t failures;        /* canaries that failed, in all */
    uint32_t tries;           /* waits so far: the next one is twice as long */
    /* the next canary by itself (of a SUSPECT device: if no new worker's came before); GPI_NEVER
     * = none is due */
    uint64_t try_at;
    uint64_t look_at;         /* when a reading is wanted at the latest; GPI_NEVER = not by us */
    uint64_t back_at;         /* where there are no canaries: not back before */
    /* the next worker must pass one before it gets a task; never where there are none */
    bool canary_due;
    bool speaks_against;      /* the last reading forbids a return */
    bool readable;            /* the last reading was OK */
    bool deaf;                /* incidents cannot be heard */
    /* out of use for an XID of the table: the driver may say that it needs no reset */
    bool by_xid;
    uint32_t strongest;       /* enum gpi_measure given since it went */
    uint64_t fault_at;        /* of the last incident: older readings do not count */
    uint64_t returned_at;     /* 0 = never */
    uint64_t ecc_uncorrected; /* of the last reading */
};

/* CPU: HEALTHY for good, and nothing below changes that. GPU, MIG, FAKE: UNKNOWN until the first
 * reading. */
void gpi_health_init(struct gpi_health *h, uint32_t kind, uint64_t now);

/* Each returns what is to be done now. h->state, since and evidence are what an event tells: the
 * caller compares the state before and after. */
enum gpi_measure gpi_health_incident(struct gpi_health *h, const struct gpi_health_policy *p,
                                     const struct gpi_incident *i, uint64_t now);
enum gpi_measure gpi_health_sample(struct gpi_health *h, const struct gpi_health_policy *p,
                                   const struct gpi_sample *s, uint64_t now);
/* No reading came: asked_at is when it was asked for, 0 = the monitor is gone. A driver that does
 * not answer is no fault of the device: another process that pins memory holds all of NVML up. */
enum gpi_measure gpi_health_silence(struct gpi_health *h, const struct gpi_health_policy *p,
                                    uint64_t asked_at, uint64_t now);
enum gpi_measure gpi_health_canary(struct gpi_health *h, const struct gpi_health_policy *p,
                                   bool passed, const char *text, uint64_t now);
/* Several deaths in a row there while others do well; a fault a worker saw (sticky error). Its
 * workers go on; the next one passes a canary first. */
enum gpi_measure gpi_health_suspect(struct gpi_health *h, const struct gpi_health_policy *p,
                                    const char *why, uint64_t now);
/* Out of use for a reason the caller knows: a worker that survives SIGKILL, memory that does not
 * come back. */
enum gpi_measure gpi_health_quarantine(struct gpi_health *h, const struct gpi_health_policy *p,
                                       const char *why, uint64_t now);
/* the user asks: try now */
enum gpi_measure gpi_health_return(struct gpi_health *h, const struct gpi_health_policy *p,
                                   uint64_t now);
/* we killed a worker there: its XIDs are ours, its successor passes a canary first */
void gpi_health_killed(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t now);

/* Whether a worker may be started there; where canary_due, it passes a canary before its setup. */
bool gpi_health_starts(const struct gpi_health *h);

/* Whether one that takes no worker may come back without anybody's deed: nothing in its last
 * reading speaks against it. */
bool gpi_health_hopes(const struct gpi_health *h);

/* Whether it is out of use until somebody resets it, or does another thing to it that needs it
 * closed: it is lost, the driver or an XID asks for a reset, a remap has failed. */
bool gpi_health_waits(const struct gpi_health *h);

#endif
