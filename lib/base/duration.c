/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include <stdio.h>

#include "base/clock.h"

/* `ns` in a unit, rounded to three digits behind the point. */
static void write_in(char to[GPI_DURATION_SIZE], uint64_t ns, uint64_t unit, const char *name)
{
    const uint64_t digit = unit / 1000, thousandths = ns / digit + (ns % digit >= digit / 2);

    (void)snprintf(to, GPI_DURATION_SIZE, "%llu.%03u %s", (unsigned long long)(thousandths / 1000),
                   (unsigned)(thousandths % 1000), name);
}

const char *gpi_duration_text(char to[GPI_DURATION_SIZE], uint64_t ns)
{
    if (ns >= 10 * GPI_MS)
        write_in(to, ns, GPI_S, "s");
    else if (ns >= 10 * GPI_US)
        write_in(to, ns, GPI_MS, "ms");
    else
        (void)snprintf(to, GPI_DURATION_SIZE, "%u ns", (unsigned)ns);
    return to;
}

const char *gpi_duration_round(char to[GPI_DURATION_SIZE], uint64_t ns)
{
    const unsigned long long s = ns / GPI_S, ms = ns % GPI_S / GPI_MS;

    if (s == 0)
        (void)snprintf(to, GPI_DURATION_SIZE, "0.%03llu s", ms);
    else if (s < 10)
        (void)snprintf(to, GPI_DURATION_SIZE, "%llu.%llu s", s, ms / 100);
    else
        (void)snprintf(to, GPI_DURATION_SIZE, "%llu s", s);
    return to;
}
