/* SPDX-License-Identifier: MIT */
#include "keeper/stops.h"

#include "base/clock.h"
#include "wire/control.h"

#define LONGEST_STEP_NS GPI_S
#define LATE_NS (2 * GPI_S)
#define IDLE_STEP_NS (100 * GPI_MS) /* at least, after a step that did not count */

void gpi_stops_reset(struct gpi_stops *s, uint64_t limit)
{
    *s = (struct gpi_stops){ .limit = limit };
}

static uint32_t say_continued(struct gpi_stops *s)
{
    s->said = GPI_STOPS_RUNS;
    return GPI_CTL_CONTINUED;
}

uint32_t gpi_stops_begin(struct gpi_stops *s, uint64_t now)
{
    s->counted = 0;
    s->idle = false;
    s->from = now;
    if (s->said != GPI_STOPS_RUNS)
        return 0;
    s->said = GPI_STOPS_STOPPED;
    return GPI_CTL_STOPPED;
}

uint32_t gpi_stops_end(struct gpi_stops *s)
{
    s->from = 0;
    return s->said == GPI_STOPS_AWAITED ? say_continued(s) : 0;
}

uint32_t gpi_stops_awaited(struct gpi_stops *s)
{
    if (s->said != GPI_STOPS_STOPPED)
        return 0;
    s->said = GPI_STOPS_AWAITED;
    return s->from ? 0 : say_continued(s);
}

/* Half of a short limit, so that a single late step cannot reach it. */
static uint64_t step_length(const struct gpi_stops *s)
{
    return gpi_time_min(gpi_time_min(LONGEST_STEP_NS, s->limit - s->limit / 2),
                        s->limit - s->counted);
}

uint64_t gpi_stops_next(const struct gpi_stops *s)
{
    uint64_t step = step_length(s);

    if (!s->from || s->limit == GPI_NEVER)
        return GPI_NEVER;
    if (s->idle && step < IDLE_STEP_NS)
        step = IDLE_STEP_NS; /* the host may be stopped for hours */
    return gpi_time_add(s->from, step);
}

bool gpi_stops_step(struct gpi_stops *s, uint64_t now, bool counts)
{
    const uint64_t passed = now - s->from;

    s->idle = !counts || passed > LATE_NS;
    if (!s->idle)
        s->counted += gpi_time_min(passed, step_length(s));
    s->from = now;
    if (s->counted < s->limit)
        return false;
    s->limit = GPI_NEVER;
    return true;
}
