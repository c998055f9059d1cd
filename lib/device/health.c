/* SPDX-License-Identifier: MIT */
#include "device/health_state.h"

#include <stdio.h>

#include "base/clock.h"
#include "device/driver.h"
#include "gpudispatch/device.h"

/* ---- texts ---- */

static unsigned long long seconds(uint64_t time)
{
    return (unsigned long long)((time + GPI_S / 2) / GPI_S);
}

static const char *recovery_words(uint32_t recovery)
{
    switch (recovery) {
    case GPUD_RECOVERY_RESET: return "it must be reset";
    case GPUD_RECOVERY_REBOOT: return "the machine must be rebooted";
    case GPUD_RECOVERY_DRAIN_P2P: return "traffic between its peers must be drained";
    case GPUD_RECOVERY_DRAIN_RESET: return "it must be drained and reset";
    case GPUD_RECOVERY_BUS_RESET: return "its PCIe bus must be reset";
    case GPUD_RECOVERY_SYSTEM_REBOOT: return "the whole system must be rebooted";
    default: return NULL;
    }
}

/* Writes the evidence for a device that takes tasks. */
static void tell_good(struct gpi_health *h, const struct gpi_sample *s)
{
    gpi_health_say(h, "its last reading is good");
    if (s && s->remap_pending == 1)
        gpi_health_add(h, "; a row remap waits for the next reset, which does not disturb work");
    if (s && s->recovery == GPUD_RECOVERY_IMEX)
        gpi_health_add(h, "; the driver requests a recovery of the IMEX domain");
    if (h->xids) {
        char words[64];
        snprintf(words, sizeof words, "; %u XID%s, last %u", h->xids, h->xids == 1 ? "" : "s",
                 h->last_xid);
        gpi_health_add(h, words);
    }
    if (h->deaf)
        gpi_health_add(h, "; XIDs cannot be received");
}

static bool is_cpu(const struct gpi_health *h)
{
    return h->kind == GPUD_DEVICE_CPU;
}

void gpi_health_init(struct gpi_health *h, uint32_t kind, uint64_t now)
{
    *h = (struct gpi_health){ .state = GPUD_HEALTH_UNKNOWN,
                              .kind = kind,
                              .since = now,
                              .recovery = GPI_UNKNOWN32,
                              .try_at = GPI_NEVER,
                              .look_at = GPI_NEVER,
                              .ecc_uncorrected = GPI_UNKNOWN64 };
    gpi_health_say(h, "it has no reading yet");
    if (!is_cpu(h))
        return;
    h->state = GPUD_HEALTH_HEALTHY;
    gpi_health_say(h, "a CPU slot has no readings");
}

/* ---- the driver's recovery action ---- */

/* Returns whether the driver's action forbids tasks.  An action that is not known here forbids
 * them, too. */
static bool forbids(uint32_t recovery)
{
    return recovery != GPUD_RECOVERY_NONE && recovery != GPUD_RECOVERY_IMEX &&
           recovery != GPI_UNKNOWN32;
}

/* A reset or a reboot ends the tasks that run there in any case.  A drain lets them end, and so
 * does an action that is not known here. */
static enum gpi_measure measure_of(uint32_t recovery)
{
    switch (recovery) {
    case GPUD_RECOVERY_RESET:
    case GPUD_RECOVERY_REBOOT:
    case GPUD_RECOVERY_BUS_RESET:
    case GPUD_RECOVERY_SYSTEM_REBOOT: return GPI_MEASURE_FENCE;
    default: return GPI_MEASURE_DRAIN;
    }
}

static enum gpi_measure asks_for(struct gpi_health *h, const struct gpi_health_policy *p,
                                 uint32_t recovery, uint32_t state, uint64_t now)
{
    const char *words = recovery_words(recovery);

    h->recovery = recovery;
    h->speaks_against = true;
    if (words)
        gpi_health_say(h, "the driver reports that %s", words);
    else
        gpi_health_say(
            h, "the driver requests recovery action %u, which is unknown: see nvidia-smi -q",
            recovery);
    return gpi_health_out(h, p, state, measure_of(recovery), now);
}

/* ---- incidents ---- */

static void count_xid(struct gpi_health *h, const struct gpi_incident *i, uint64_t now)
{
    h->xids++;
    h->last_xid = i->number < GPI_UNKNOWN32 ? (uint32_t)i->number : GPI_UNKNOWN32;
    h->last_xid_at = now;
}

static bool is_our_own(const struct gpi_health *h, const struct gpi_health_policy *p, uint64_t xid,
                       uint64_t now)
{
    return (xid == 43 || xid == 45) && h->killed_at && now - h->killed_at < p->own_kill;
}

/* Writes the evidence "XID 94 (contained memory error): ...". */
static void tell_xid(struct gpi_health *h, const struct gpi_incident *i, const char *meaning)
{
    const char *text = gpi_xid_text(i->number);

    gpi_health_say(h, "XID %llu%s%s%s: %s", (unsigned long long)i->number, *text ? " (" : "", text,
                   *text ? ")" : "", meaning);
}

/* A fresh worker and its canary are enough: SUSPECT, unless a stronger state holds. */
static enum gpi_measure shaken(struct gpi_health *h, const struct gpi_health_policy *p,
                               const struct gpi_incident *i, enum gpi_measure measure,
                               const char *meaning, uint64_t now)
{
    gpi_health_owe_canary(h, p);
    if (gpi_health_is_out(h) || h->state == GPUD_HEALTH_REVOKED)
        return GPI_MEASURE_NONE;
    gpi_health_doubt(h, p, now);
    tell_xid(h, i, meaning);
    h->look_at = now;
    return measure;
}

static enum gpi_measure xid(struct gpi_health *h, const struct gpi_health_policy *p,
                            const struct gpi_incident *i, uint64_t now)
{
    enum gpi_measure m = GPI_MEASURE_NONE;

    if (is_our_own(h, p, i->number, now))
        return GPI_MEASURE_NONE;
    count_xid(h, i, now);
    switch (gpi_xid_class(&p->xids, i->number)) {
    case GPI_XID_LOST:
        h->speaks_against = true;
        tell_xid(h, i, "it gets no task until it is readable again and canaries pass");
        m = gpi_health_out(h, p, GPUD_HEALTH_LOST, GPI_MEASURE_FENCE, now);
        break;
    case GPI_XID_RESET:
        if (h->state == GPUD_HEALTH_LOST)
            return GPI_MEASURE_NONE;
        tell_xid(h, i,
                 p->looks_only ? "it needs a reset; no canary was run"
                               : "it needs a reset, unless canaries pass");
        m = gpi_health_out(h, p, GPUD_HEALTH_QUARANTINED, GPI_MEASURE_FENCE, now);
        h->by_xid = !h->speaks_against;
        break;
    case GPI_XID_RESTART:
        return shaken(h, p, i, GPI_MEASURE_RESTART, "its workers are replaced, a canary decides",
                      now);
    case GPI_XID_UNKNOWN:
        return shaken(h, p, i, GPI_MEASURE_DRAIN,
                      "unknown; its workers end and are replaced, a canary decides", now);
    case GPI_XID_TASK: gpi_health_owe_canary(h, p); break; /* owed by the next worker */
    default: break;
    }
    h->look_at = now;
    if (h->state == GPUD_HEALTH_HEALTHY)
        tell_good(h, NULL);
    return m;
}

/* `now` may be a little older than the incident.  An incident of the future would make every
 * reading an old one. */
static void note_time(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t at,
                      uint64_t now)
{
    if (at > gpi_time_add(now, p->stale))
        at = now;
    if (at > h->fault_at)
        h->fault_at = at;
}

enum gpi_measure gpi_health_incident(struct gpi_health *h, const struct gpi_health_policy *p,
                                     const struct gpi_incident *i, uint64_t now)
{
    if (is_cpu(h))
        return GPI_MEASURE_NONE;
    if (i->kind != GPI_INCIDENT_DEAF)
        note_time(h, p, i->at, now);
    switch (i->kind) {
    case GPI_INCIDENT_XID: return xid(h, p, i, now);
    case GPI_INCIDENT_LOST: {
        enum gpi_measure m;
        h->speaks_against = true;
        gpi_health_say(
            h, "it has fallen off the bus: it gets no task until it is readable again and canaries "
               "pass");
        m = gpi_health_out(h, p, GPUD_HEALTH_LOST, GPI_MEASURE_FENCE, now);
        h->look_at = now;
        return m;
    }
    case GPI_INCIDENT_RECOVERY:
        if (i->number < GPI_UNKNOWN32 && forbids((uint32_t)i->number))
            return asks_for(
                h, p, (uint32_t)i->number,
                h->state == GPUD_HEALTH_LOST ? GPUD_HEALTH_LOST : GPUD_HEALTH_QUARANTINED, now);
        h->look_at = now; /* the whole reading decides whether the device may return */
        return GPI_MEASURE_NONE;
    case GPI_INCIDENT_DEAF:
        h->deaf = i->number != 0;
        if (h->state == GPUD_HEALTH_HEALTHY)
            tell_good(h, NULL);
        return GPI_MEASURE_NONE;
    default: return GPI_MEASURE_NONE;
    }
}

/* ---- readings ---- */

/* Counts one more reading in vain, if the schedule of the device required it: the next wait is
 * longer. */
static void looked(struct gpi_health *h, uint64_t now)
{
    if (h->look_at != GPI_NEVER && now >= h->look_at && h->speaks_against)
        h->tries++;
}

/* The state is not known now; the verdict on a device that is out of use still holds. */
static void unreadable(struct gpi_health *h, const struct gpi_health_policy *p, const char *words,
                       uint64_t now)
{
    h->readable = false;
    if (gpi_health_is_out(h) || h->state == GPUD_HEALTH_REVOKED) {
        if (h->look_at != GPI_NEVER && now >= h->look_at) {
            h->tries += h->speaks_against;
            h->look_at = gpi_time_add(now, gpi_health_wait(h, p));
        }
        return;
    }
    h->look_at = GPI_NEVER;
    if (h->state == GPUD_HEALTH_SUSPECT) {
        if (p->passes == 0)
            h->look_at = gpi_time_add(now, gpi_health_wait(h, p));
        return;
    }
    gpi_health_enter(h, GPUD_HEALTH_UNKNOWN, now);
    gpi_health_say(h, "%s; it still gets tasks", words);
}

static enum gpi_measure revoked(struct gpi_health *h, const struct gpi_health_policy *p,
                                uint64_t now)
{
    looked(h, now);
    h->readable = false;
    h->speaks_against = true;
    if (gpi_health_starts(h))
        h->tries = gpi_health_tries(h, p, now, 1);
    if (!gpi_health_is_out(h)) {
        gpi_health_enter(h, GPUD_HEALTH_REVOKED, now);
        gpi_health_say(h, "access to it was revoked: its tasks go on, no worker starts");
    }
    gpi_health_schedule(h, p, gpi_time_add(now, gpi_health_wait(h, p)));
    return GPI_MEASURE_NONE;
}

static enum gpi_measure gone(struct gpi_health *h, const struct gpi_health_policy *p,
                             const struct gpi_sample *s, uint64_t now)
{
    const bool lost = s->reading == GPI_READ_LOST;

    looked(h, now);
    h->readable = false;
    h->speaks_against = true;
    gpi_health_say(h,
                   lost ? "the driver reports that it is lost (NVML code %u)"
                        : "the driver reports that it must be reset (NVML code %u)",
                   s->code);
    return gpi_health_out(h, p, lost ? GPUD_HEALTH_LOST : GPUD_HEALTH_QUARANTINED,
                          GPI_MEASURE_FENCE, now);
}

/* A good reading of a device that is out of use. */
static enum gpi_measure cleared(struct gpi_health *h, const struct gpi_health_policy *p,
                                const struct gpi_sample *s, uint64_t now)
{
    const bool spoke = h->speaks_against;
    const char *what = h->state == GPUD_HEALTH_LOST ? "it is readable again"
                                                    : "its reading shows no fault any more";

    h->speaks_against = false;
    if (!spoke && p->looks_only && h->by_xid)
        return GPI_MEASURE_NONE;
    if (!spoke && p->passes == 0 && now >= h->back_at) {
        enum gpi_measure m = gpi_health_back(h, now);
        h->look_at = GPI_NEVER;
        gpi_health_say(h, "its readings are good again (canaries are off)");
        return m;
    }
    if (!spoke && h->by_xid && s->recovery == GPUD_RECOVERY_NONE && h->tries == 0)
        what = "the driver reports that no reset is needed";
    else if (!spoke) {
        h->look_at = p->passes ? GPI_NEVER : h->back_at;
        return GPI_MEASURE_NONE;
    }
    h->by_xid = false;
    if (p->passes)
        gpi_health_say(h, "%s; it comes back when %u canar%s passed", what, p->passes,
                       p->passes == 1 ? "y has" : "ies in a row have");
    else
        gpi_health_say(h, "%s; it comes back with the next good reading", what);
    gpi_health_schedule(h, p, now);
    return GPI_MEASURE_NONE;
}

/* A good reading of a device in use. */
static enum gpi_measure good(struct gpi_health *h, const struct gpi_health_policy *p,
                             const struct gpi_sample *s, uint64_t ecc_before, uint64_t now)
{
    enum gpi_measure m = GPI_MEASURE_NONE;

    h->speaks_against = false;
    h->look_at = GPI_NEVER;
    if (h->state == GPUD_HEALTH_REVOKED) {
        m = gpi_health_back(h, now);
        gpi_health_owe_canary(h, p);
    } else if (h->state == GPUD_HEALTH_SUSPECT && p->passes > 0)
        return GPI_MEASURE_NONE;
    else if (h->deaf && ecc_before != GPI_UNKNOWN64 && s->ecc_uncorrected != GPI_UNKNOWN64 &&
             s->ecc_uncorrected > ecc_before && p->passes > 0) {
        gpi_health_doubt(h, p, now); /* no XID can report it */
        gpi_health_say(h,
                       "%llu uncorrectable memory errors, %llu before; its workers end and are "
                       "replaced, a canary decides",
                       (unsigned long long)s->ecc_uncorrected, (unsigned long long)ecc_before);
        return GPI_MEASURE_DRAIN;
    } else {
        gpi_health_in_use(h, now);
    }
    tell_good(h, s);
    return m;
}

static enum gpi_measure judge(struct gpi_health *h, const struct gpi_health_policy *p,
                              const struct gpi_sample *s, uint64_t now)
{
    const uint64_t ecc_before = h->ecc_uncorrected;

    h->readable = true;
    if (s->recovery != GPI_UNKNOWN32)
        h->recovery = s->recovery;
    if (s->ecc_uncorrected != GPI_UNKNOWN64)
        h->ecc_uncorrected = s->ecc_uncorrected;
    if (forbids(s->recovery)) {
        looked(h, now);
        return asks_for(h, p, s->recovery, GPUD_HEALTH_QUARANTINED, now);
    }
    if (s->remap_failed == 1) {
        looked(h, now);
        h->speaks_against = true;
        gpi_health_say(h, "a row of its memory could not be remapped: its memory is unreliable");
        return gpi_health_out(h, p, GPUD_HEALTH_QUARANTINED, GPI_MEASURE_DRAIN, now);
    }
    return gpi_health_is_out(h) ? cleared(h, p, s, now) : good(h, p, s, ecc_before, now);
}

enum gpi_measure gpi_health_sample(struct gpi_health *h, const struct gpi_health_policy *p,
                                   const struct gpi_sample *s, uint64_t now)
{
    char words[80];

    if (is_cpu(h) || (h->fault_at && s->at <= h->fault_at)) /* read before the last incident */
        return GPI_MEASURE_NONE;
    switch (s->reading) {
    case GPI_READ_OK: return judge(h, p, s, now);
    case GPI_READ_LOST:
    case GPI_READ_RESET: return gone(h, p, s, now);
    case GPI_READ_REVOKED: return revoked(h, p, now);
    default:
        snprintf(words, sizeof words, "it cannot be read (NVML code %u%s)", s->code,
                 s->code == GPI_NVML_NOT_READY ? ": the system is not ready yet" : "");
        unreadable(h, p, words, now);
        return GPI_MEASURE_NONE;
    }
}

enum gpi_measure gpi_health_silence(struct gpi_health *h, const struct gpi_health_policy *p,
                                    uint64_t asked_at, uint64_t now)
{
    char words[96];

    if (is_cpu(h) || (asked_at && now - asked_at < p->stale))
        return GPI_MEASURE_NONE;
    if (asked_at)
        snprintf(words, sizeof words, "the driver has not replied to a reading for %llu s",
                 seconds(now - asked_at));
    else
        snprintf(words, sizeof words, "the monitor process has died");
    h->deaf &= asked_at != 0; /* the next monitor reports that itself */
    unreadable(h, p, words, now);
    return GPI_MEASURE_NONE;
}

/* ---- canaries ---- */

static enum gpi_measure passed(struct gpi_health *h, const struct gpi_health_policy *p,
                               uint64_t now)
{
    enum gpi_measure m = GPI_MEASURE_NONE;

    h->canary_due = false;
    if (h->state == GPUD_HEALTH_SUSPECT) {
        gpi_health_in_use(h, now);
        gpi_health_say(h, "a canary has passed");
    }
    if (!gpi_health_is_out(h))
        return m;
    h->passes++;
    if (h->speaks_against) { /* the evidence stays */
        if (h->passes == p->passes)
            gpi_health_add(h, ", though canaries pass");
        gpi_health_schedule(h, p, gpi_time_add(now, gpi_health_wait(h, p)));
    } else if (h->passes < p->passes) {
        gpi_health_say(h, "%u of %u canaries in a row have passed", h->passes, p->passes);
        gpi_health_schedule(h, p, gpi_time_add(now, p->backoff));
    } else {
        const uint32_t passes = h->passes;
        m = gpi_health_back(h, now);
        gpi_health_say(h, "%u canar%s in a row passed", passes, passes == 1 ? "y" : "ies");
    }
    return m;
}

static enum gpi_measure failed(struct gpi_health *h, const struct gpi_health_policy *p,
                               const char *text, uint64_t now)
{
    enum gpi_measure m = GPI_MEASURE_NONE;

    h->failures++;
    h->passes = 0;
    gpi_health_owe_canary(h, p);
    if (h->state == GPUD_HEALTH_REVOKED)
        return m;
    if (gpi_health_is_out(h)) {
        h->tries++;
        gpi_health_schedule(h, p, gpi_time_add(now, gpi_health_wait(h, p)));
    } else
        m = gpi_health_out(h, p, GPUD_HEALTH_QUARANTINED, GPI_MEASURE_DRAIN, now);
    if (!h->speaks_against)
        gpi_health_say(h, "its canary failed: %.100s; the next one runs in %llu s",
                       text && *text ? text : "no reason reported", seconds(gpi_health_wait(h, p)));
    return m;
}

enum gpi_measure gpi_health_canary(struct gpi_health *h, const struct gpi_health_policy *p, bool ok,
                                   const char *text, uint64_t now)
{
    if (is_cpu(h))
        return GPI_MEASURE_NONE;
    return ok ? passed(h, p, now) : failed(h, p, text, now);
}

/* ---- evidence of the dispatcher and its user ---- */

enum gpi_measure gpi_health_suspect(struct gpi_health *h, const struct gpi_health_policy *p,
                                    const char *why, uint64_t now)
{
    if (is_cpu(h))
        return GPI_MEASURE_NONE;
    gpi_health_owe_canary(h, p);
    if (gpi_health_is_out(h) || h->state == GPUD_HEALTH_REVOKED)
        return GPI_MEASURE_NONE;
    gpi_health_doubt(h, p, now);
    gpi_health_say(h, "%.120s; a canary decides", why);
    return GPI_MEASURE_NONE;
}

enum gpi_measure gpi_health_quarantine(struct gpi_health *h, const struct gpi_health_policy *p,
                                       const char *why, uint64_t now)
{
    if (is_cpu(h))
        return GPI_MEASURE_NONE;
    gpi_health_say(h, "%.150s", why);
    return gpi_health_out(h, p,
                          h->state == GPUD_HEALTH_LOST ? GPUD_HEALTH_LOST : GPUD_HEALTH_QUARANTINED,
                          GPI_MEASURE_DRAIN, now);
}

enum gpi_measure gpi_health_return(struct gpi_health *h, const struct gpi_health_policy *p,
                                   uint64_t now)
{
    if (gpi_health_is_out(h)) {
        /* that reading is old now: request a new one, then canaries decide */
        h->speaks_against = false;
        h->by_xid = false;
        h->tries = h->passes = 0;
        gpi_health_schedule(h, p, now);
    }
    if (h->state == GPUD_HEALTH_SUSPECT && p->passes)
        h->try_at = now;
    if (gpi_health_is_out(h) || h->state == GPUD_HEALTH_REVOKED)
        h->look_at = now;
    return GPI_MEASURE_NONE;
}

void gpi_health_killed(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t now)
{
    if (is_cpu(h))
        return;
    h->killed_at = now;
    gpi_health_owe_canary(h, p);
}

bool gpi_health_starts(const struct gpi_health *h)
{
    return !gpi_health_is_out(h) && h->state != GPUD_HEALTH_REVOKED;
}

bool gpi_health_hopes(const struct gpi_health *h)
{
    return !h->speaks_against;
}

bool gpi_health_waits(const struct gpi_health *h)
{
    return gpi_health_is_out(h) && (h->speaks_against || h->by_xid);
}
