/* SPDX-License-Identifier: MIT */
#include "device/health_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "gpudispatch/device.h"

/* ---- evidence ---- */

void gpi_health_say(struct gpi_health *h, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    /* NOLINT(clang-analyzer-valist.Uninitialized) ; va_start is the line before */
    vsnprintf(h->evidence, sizeof h->evidence, format, args);
    va_end(args);
}

void gpi_health_add(struct gpi_health *h, const char *words)
{
    const size_t n = strlen(h->evidence);

    snprintf(h->evidence + n, sizeof h->evidence - n, "%s", words);
}

/* ---- states ---- */

void gpi_health_enter(struct gpi_health *h, uint32_t state, uint64_t now)
{
    if (h->state != state)
        h->since = now;
    h->state = state;
}

bool gpi_health_is_out(const struct gpi_health *h)
{
    return h->state == GPUD_HEALTH_QUARANTINED || h->state == GPUD_HEALTH_LOST;
}

uint64_t gpi_health_wait(const struct gpi_health *h, const struct gpi_health_policy *p)
{
    return gpi_time_doubled(p->backoff ? p->backoff : 1, h->tries, p->backoff_cap);
}

void gpi_health_schedule(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t at)
{
    const bool canary = !h->speaks_against && p->passes > 0;

    h->try_at = canary ? at : GPI_NEVER;
    h->look_at = canary ? GPI_NEVER : at;
    h->back_at = at;
}

/* Returns the measure only if it is stronger than all that were returned since the device left
 * use. */
static enum gpi_measure stronger(struct gpi_health *h, enum gpi_measure measure)
{
    if ((uint32_t)measure <= h->strongest)
        return GPI_MEASURE_NONE;
    h->strongest = measure;
    return measure;
}

uint32_t gpi_health_tries(const struct gpi_health *h, const struct gpi_health_policy *p,
                          uint64_t now, uint32_t again)
{
    return h->returned_at && now - h->returned_at < p->backoff_cap ? h->tries + again : 0;
}

enum gpi_measure gpi_health_out(struct gpi_health *h, const struct gpi_health_policy *p,
                                uint32_t state, enum gpi_measure measure, uint64_t now)
{
    if (!gpi_health_is_out(h)) {
        h->tries = gpi_health_tries(h, p, now, 1);
        h->strongest = GPI_MEASURE_NONE;
    }
    gpi_health_enter(h, state, now);
    h->by_xid = false;
    h->passes = 0;
    gpi_health_schedule(h, p, gpi_time_add(now, gpi_health_wait(h, p)));
    return stronger(h, measure);
}

void gpi_health_in_use(struct gpi_health *h, uint64_t now)
{
    gpi_health_enter(h, h->readable ? GPUD_HEALTH_HEALTHY : GPUD_HEALTH_UNKNOWN, now);
    h->by_xid = false;
    h->passes = 0;
    h->try_at = GPI_NEVER; /* a reading that is due stays due */
}

enum gpi_measure gpi_health_back(struct gpi_health *h, uint64_t now)
{
    gpi_health_in_use(h, now);
    h->returned_at = now;
    return GPI_MEASURE_RETURN;
}

void gpi_health_owe_canary(struct gpi_health *h, const struct gpi_health_policy *p)
{
    h->canary_due = p->passes > 0;
}

void gpi_health_doubt(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t now)
{
    if (h->state != GPUD_HEALTH_SUSPECT) { /* else the try that is due stays */
        h->tries = gpi_health_tries(h, p, now, 0);
        h->try_at = p->passes ? gpi_time_add(now, gpi_health_wait(h, p)) : GPI_NEVER;
    }
    if (!p->passes)
        h->look_at = now;
    gpi_health_enter(h, GPUD_HEALTH_SUSPECT, now);
    gpi_health_owe_canary(h, p);
}
