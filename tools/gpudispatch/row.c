/* SPDX-License-Identifier: MIT */
#include "row.h"

#include <stdio.h>
#include <string.h>

#include "look.h"

#define HOT                                                                                  \
    (GPUD_THROTTLE_HW_SLOWDOWN | GPUD_THROTTLE_HW_THERMAL | GPUD_THROTTLE_HW_POWER_BRAKE | \
     GPUD_THROTTLE_SW_THERMAL)

static bool heat(const struct gpud_device_info *r, char *text, size_t size)
{
    const uint64_t why = r->throttle == GPUD_UNKNOWN64 ? 0 : r->throttle & HOT;
    const char *between = "";
    size_t n;

    n = (size_t)snprintf(text, size, "its clocks are held down (");
    for (unsigned i = 0; i < 64 && n < size; i++)
        if (why >> i & 1 && throttle_name(i)) {
            n += (size_t)snprintf(text + n, size - n, "%s%s", between, throttle_name(i));
            between = ", ";
        }
    if (n < size)
        n += (size_t)snprintf(text + n, size - n, ")");
    if (n < size && r->temperature != GPUD_UNKNOWN32)
        (void)snprintf(text + n, size - n, " at %u C", r->temperature);
    return why != 0;
}

static bool errors(const struct gpud_device_info *r, char *text, size_t size)
{
    (void)snprintf(text, size, "%llu uncorrected memory error%s since the driver was loaded",
                   (unsigned long long)r->ecc_uncorrected, r->ecc_uncorrected == 1 ? "" : "s");
    return r->ecc_uncorrected != 0 && r->ecc_uncorrected != GPUD_UNKNOWN64;
}

bool row_fact(const struct gpud_device_info *r, enum fact which, char *text, size_t size)
{
    switch (which) {
    case FACT_HEAT:
        return heat(r, text, size);
    case FACT_ERRORS:
        return errors(r, text, size);
    case FACT_REMAP_PENDING:
        (void)snprintf(text, size, "a remap of memory rows waits for a reset; work may go on");
        return r->remap_pending == 1;
    case FACT_REMAP_FAILED:
        (void)snprintf(text, size, "a remap of memory rows has failed");
        return r->remap_failed == 1;
    case FACT_COUNT:
        break;
    }
    return false;
}

bool row_is_out(const struct gpud_device_info *r)
{
    return r->health == GPUD_HEALTH_LOST || r->health == GPUD_HEALTH_QUARANTINED;
}
