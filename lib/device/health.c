/* SPDX-License-Identifier: MIT */
/* health.c - a stand-in until the judgement lands. */
#include "device/health.h"

#include <stdio.h>
#include <string.h>

static void become(struct gpi_health *h, uint32_t state, uint64_t now, const char *evidence)
{
    if (h->state != state)
        h->since = now;
    h->state = state;
    snprintf(h->evidence, sizeof h->evidence, "%s", evidence);
}

void gpi_health_init(struct gpi_health *h, uint32_t kind, uint64_t now)
{
    (void)kind;
    memset(h, 0, sizeof *h);
    h->state = GPUD_HEALTH_UNKNOWN;
    h->since = now;
}

enum gpi_measure gpi_health_incident(struct gpi_health *h, const struct gpi_health_policy *p, const struct gpi_incident *i, uint64_t now)
{
    (void)p;
    if (i->kind == GPI_INCIDENT_XID) {
        h->last_xid = (uint32_t)i->number;
        h->last_xid_at = i->at;
        h->xids++;
        become(h, GPUD_HEALTH_QUARANTINED, now, "an XID");
    }
    return GPI_MEASURE_NONE;
}

enum gpi_measure gpi_health_sample(struct gpi_health *h, const struct gpi_health_policy *p, const struct gpi_sample *s, uint64_t now)
{
    (void)p, (void)s;
    if (h->state == GPUD_HEALTH_UNKNOWN)
        become(h, GPUD_HEALTH_HEALTHY, now, "");
    return GPI_MEASURE_NONE;
}

enum gpi_measure gpi_health_silence(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t asked_at, uint64_t now)
{
    if (now - asked_at >= p->stale && h->state == GPUD_HEALTH_HEALTHY)
        become(h, GPUD_HEALTH_UNKNOWN, now, "no reading comes");
    return GPI_MEASURE_NONE;
}
