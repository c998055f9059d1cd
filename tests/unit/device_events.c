/* SPDX-License-Identifier: MIT */
#include "device_events.h"

#include "harness.h"

#include "base/clock.h"
#include "gpudispatch/device.h"

const struct gpi_health_policy d_policy = { .passes = 2,
                                            .backoff = 10 * GPI_S,
                                            .backoff_cap = 300 * GPI_S,
                                            .own_kill = 5 * GPI_S,
                                            .stale = 5 * GPI_S };
const struct gpi_health_policy d_no_canaries = { .passes = 0,
                                                 .backoff = 10 * GPI_S,
                                                 .backoff_cap = 300 * GPI_S,
                                                 .own_kill = 5 * GPI_S,
                                                 .stale = 5 * GPI_S };
const struct gpi_health_policy *d_by = &d_policy;

struct gpi_sample d_good_sample(uint64_t at)
{
    return (struct gpi_sample){ .at = at,
                                .reading = GPI_READ_OK,
                                .recovery = GPI_UNKNOWN32,
                                .remap_failed = GPI_UNKNOWN32,
                                .remap_pending = GPI_UNKNOWN32,
                                .ecc_uncorrected = GPI_UNKNOWN64,
                                .ecc_corrected = GPI_UNKNOWN64 };
}

uint64_t d_next_of(const struct gpi_health *h)
{
    return gpi_time_min(h->try_at, h->look_at);
}

bool d_out_of_use(const struct gpi_health *h)
{
    return h->state == GPUD_HEALTH_QUARANTINED || h->state == GPUD_HEALTH_LOST;
}

enum gpi_measure d_incident(struct gpi_health *h, const struct gpi_health_policy *p, uint32_t kind,
                            uint64_t number, uint64_t now)
{
    const struct gpi_incident i = { .kind = kind, .number = number, .at = now };

    return gpi_health_incident(h, p, &i, now);
}

enum gpi_measure d_reading(struct gpi_health *h, const struct gpi_health_policy *p, uint32_t what,
                           uint32_t code, uint64_t now)
{
    struct gpi_sample s = d_good_sample(now);

    s.reading = what;
    s.code = code;
    return gpi_health_sample(h, p, &s, now);
}

enum gpi_measure d_ok(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t now)
{
    return d_reading(h, p, GPI_READ_OK, 0, now);
}

enum gpi_measure d_ok_recovery(struct gpi_health *h, const struct gpi_health_policy *p,
                               uint32_t recovery, uint64_t now)
{
    struct gpi_sample s = d_good_sample(now);

    s.recovery = recovery;
    return gpi_health_sample(h, p, &s, now);
}

enum gpi_measure d_ok_remap(struct gpi_health *h, const struct gpi_health_policy *p,
                            uint32_t pending, uint32_t failed, uint64_t now)
{
    struct gpi_sample s = d_good_sample(now);

    s.remap_pending = pending;
    s.remap_failed = failed;
    return gpi_health_sample(h, p, &s, now);
}

enum gpi_measure d_happen(struct gpi_health *h, enum event e, uint64_t now)
{
    switch (e) {
    case XID_IGNORED: return d_incident(h, d_by, GPI_INCIDENT_XID, 63, now);
    case XID_OF_TASK: return d_incident(h, d_by, GPI_INCIDENT_XID, 13, now);
    case XID_RESTART: return d_incident(h, d_by, GPI_INCIDENT_XID, 94, now);
    case XID_RESET: return d_incident(h, d_by, GPI_INCIDENT_XID, 95, now);
    case XID_LOST: return d_incident(h, d_by, GPI_INCIDENT_XID, 79, now);
    case XID_UNKNOWN: return d_incident(h, d_by, GPI_INCIDENT_XID, 500, now);
    case FELL_OFF: return d_incident(h, d_by, GPI_INCIDENT_LOST, 0, now);
    case WORD_RESET: return d_incident(h, d_by, GPI_INCIDENT_RECOVERY, GPUD_RECOVERY_RESET, now);
    case WORD_DRAIN:
        return d_incident(h, d_by, GPI_INCIDENT_RECOVERY, GPUD_RECOVERY_DRAIN_RESET, now);
    case WORD_NONE: return d_incident(h, d_by, GPI_INCIDENT_RECOVERY, GPUD_RECOVERY_NONE, now);
    case DEAF: return d_incident(h, d_by, GPI_INCIDENT_DEAF, 3, now);
    case READ_OK: return d_ok(h, d_by, now);
    case READ_OK_NONE: return d_ok_recovery(h, d_by, GPUD_RECOVERY_NONE, now);
    case READ_OK_RESET: return d_ok_recovery(h, d_by, GPUD_RECOVERY_RESET, now);
    case READ_OK_REBOOT: return d_ok_recovery(h, d_by, GPUD_RECOVERY_REBOOT, now);
    case READ_OK_P2P: return d_ok_recovery(h, d_by, GPUD_RECOVERY_DRAIN_P2P, now);
    case READ_OK_DRAIN: return d_ok_recovery(h, d_by, GPUD_RECOVERY_DRAIN_RESET, now);
    case READ_OK_IMEX: return d_ok_recovery(h, d_by, GPUD_RECOVERY_IMEX, now);
    case READ_OK_PENDING: return d_ok_remap(h, d_by, 1, 0, now);
    case READ_OK_REMAP: return d_ok_remap(h, d_by, 0, 1, now);
    case READ_UNKNOWN: return d_reading(h, d_by, GPI_READ_UNKNOWN, 999, now);
    case READ_LOST: return d_reading(h, d_by, GPI_READ_LOST, 15, now);
    case READ_RESET: return d_reading(h, d_by, GPI_READ_RESET, 16, now);
    case READ_REVOKED: return d_reading(h, d_by, GPI_READ_REVOKED, 999, now);
    case SILENCE: return gpi_health_silence(h, d_by, now - 7 * GPI_S, now);
    case SHORT_SILENCE: return gpi_health_silence(h, d_by, now - 4 * GPI_S, now);
    case MONITOR_GONE: return gpi_health_silence(h, d_by, 0, now);
    case PASSED: return gpi_health_canary(h, d_by, true, "", now);
    case FAILED: return gpi_health_canary(h, d_by, false, "17 is not 42", now);
    case SUSPECTED:
        return gpi_health_suspect(h, d_by, "3 workers in a row died there while others did well",
                                  now);
    case PUT_OUT: return gpi_health_quarantine(h, d_by, "worker 4711 survives SIGKILL", now);
    case RETURNED: return gpi_health_return(h, d_by, now);
    default: T_FAIL("no event %d", (int)e);
    }
}
