/* SPDX-License-Identifier: MIT */
/*
 * health.h - the judgement of a device, by its incidents, readings and canaries.  Pure: no clock,
 * no fd, no memory of its own.
 *
 *   HEALTHY      takes tasks
 *   UNKNOWN      takes tasks, but is never called healthy: it cannot be read, or has not been for
 *                a while.  A driver that sends a monitor no reply may serve workers well
 *   SUSPECT      takes tasks once a canary has passed.  It had a fault that a fresh worker clears,
 *                or an unknown one, or workers died there again and again while other devices
 *                did well
 *   QUARANTINED  takes none: a fault that needs a reset, a failed remap, canaries that failed
 *   LOST         takes none: it has fallen off the bus
 *   REVOKED      takes no new worker, but running tasks continue: the system has revoked access,
 *                the hardware is fine
 *
 * A device returns by evidence only: `passes` canaries in a row, with a wait between tries that
 * doubles, and no objection in the last reading.  A reading objects if the driver requires a reset,
 * a remap has failed, or the device is lost or revoked.  While it does, there are no canaries but
 * new readings, with the same waits.  No state is final: a device that is out of use has try_at or
 * look_at.  If a device returns and leaves again within the longest wait, its waits continue where
 * they had ended.
 *
 * The driver's own recovery action overrides the library's table of XIDs, once it is younger than
 * the XID.  If the driver requires a reset, the device is drained or fenced.  If it requires
 * nothing after an XID that the table calls a reset, a canary may run at once.  So request a
 * reading after each incident (look_at is due then).
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

/* The measures that a judgement requires of the dispatcher for the device's workers; the strongest
 * one is returned. */
enum gpi_measure {
    GPI_MEASURE_NONE,
    /* kill its workers and charge their tasks to the device; canary before the next task */
    GPI_MEASURE_RESTART,
    /* no new task; running ones end on their own, within their limits; then the workers exit.  New
     * workers start where gpi_health_starts allows it (SUSPECT) */
    GPI_MEASURE_DRAIN,
    GPI_MEASURE_FENCE,   /* as RESTART, and no worker starts until the device is back */
    GPI_MEASURE_RETURN   /* it is back in use: workers may start and take tasks */
};

struct gpi_health_policy {
    /* canaries in a row that bring a device back; 0 = there are none (GPUD_CUDA_NO_CANARY):
     * readings alone decide */
    uint32_t passes;
    uint64_t backoff, backoff_cap; /* ns between tries, doubling */
    uint64_t own_kill;            /* ns after the library's kill in which XIDs 43, 45 are normal */
    /* ns; an older reading is unknown, while readings are requested */
    uint64_t stale;
    bool looks_only;          /* a monitor: without canaries, a fault that needs one stays */
    struct gpi_xid_rules xids;
};

#define GPI_EVIDENCE_SIZE 160u

struct gpi_health {
    uint32_t state;   /* enum gpud_health */
    uint32_t kind;    /* enum gpud_device_kind */
    uint64_t since;
    char evidence[GPI_EVIDENCE_SIZE];
    uint32_t last_xid, xids; /* without XIDs that the library's kills explain */
    uint64_t last_xid_at;
    uint32_t recovery;        /* the driver's last action, GPI_UNKNOWN32 = none */
    uint64_t killed_at;       /* the library's last kill on it, 0 = none */
    uint32_t passes;          /* canaries in a row, since it left use */
    uint32_t failures;        /* canaries that failed, in all */
    uint32_t tries;           /* waits so far: the next one is twice as long */
    /* time of the next canary (SUSPECT: unless a new worker's canary is earlier); GPI_NEVER = none
     * is due */
    uint64_t try_at;
    uint64_t look_at;         /* latest time of the next reading; GPI_NEVER = none is required */
    uint64_t back_at;         /* where there are no canaries: earliest time of a return */
    /* the next worker must pass a canary before it gets a task; never where there are none */
    bool canary_due;
    bool speaks_against;      /* the last reading forbids a return */
    bool readable;            /* the last reading was OK */
    bool deaf;                /* the monitor receives no incidents */
    /* out of use for an XID of the table: the driver may report that it needs no reset */
    bool by_xid;
    uint32_t strongest;       /* enum gpi_measure returned since it left use */
    uint64_t fault_at;        /* of the last incident: older readings do not count */
    uint64_t returned_at;     /* 0 = never */
    uint64_t ecc_uncorrected; /* of the last reading */
};

/* CPU: HEALTHY for good, and no function below changes that.  GPU, MIG, FAKE: UNKNOWN until the
 * first reading. */
void gpi_health_init(struct gpi_health *h, uint32_t kind, uint64_t now);

/* Each returns the measure to take now.  An event carries h->state, since and evidence: the caller
 * compares the state before and after. */
enum gpi_measure gpi_health_incident(struct gpi_health *h, const struct gpi_health_policy *p,
                                     const struct gpi_incident *i, uint64_t now);
enum gpi_measure gpi_health_sample(struct gpi_health *h, const struct gpi_health_policy *p,
                                   const struct gpi_sample *s, uint64_t now);
/* No reading has arrived: asked_at is the time of its request, 0 = the monitor is gone.  A driver
 * that does not reply is no fault of the device: another process that pins memory holds up all of
 * NVML. */
enum gpi_measure gpi_health_silence(struct gpi_health *h, const struct gpi_health_policy *p,
                                    uint64_t asked_at, uint64_t now);
enum gpi_measure gpi_health_canary(struct gpi_health *h, const struct gpi_health_policy *p,
                                   bool passed, const char *text, uint64_t now);
/* Several deaths in a row on it while other devices do well, or a fault that a worker saw (sticky
 * error).  Its workers continue; the next one passes a canary first. */
enum gpi_measure gpi_health_suspect(struct gpi_health *h, const struct gpi_health_policy *p,
                                    const char *why, uint64_t now);
/* Takes the device out of use for a reason that the caller knows: a worker that survives SIGKILL,
 * or memory that is not freed. */
enum gpi_measure gpi_health_quarantine(struct gpi_health *h, const struct gpi_health_policy *p,
                                       const char *why, uint64_t now);
/* the user requests a return: try now */
enum gpi_measure gpi_health_return(struct gpi_health *h, const struct gpi_health_policy *p,
                                   uint64_t now);
/* the library has killed a worker there: that explains XIDs, and its successor passes a canary
 * first */
void gpi_health_killed(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t now);

/* Returns whether a worker may start there; if canary_due, it passes a canary before its setup. */
bool gpi_health_starts(const struct gpi_health *h);

/* Returns whether a device that takes no worker may return without help from outside: its last
 * reading has no objection. */
bool gpi_health_hopes(const struct gpi_health *h);

/* Returns whether it is out of use until a person resets it, or does another thing that needs it
 * closed.  So it is if it is lost, the driver or an XID requires a reset, or a remap has failed. */
bool gpi_health_waits(const struct gpi_health *h);

#endif
