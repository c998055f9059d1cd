/* SPDX-License-Identifier: MIT */
/* names.c - the text twins of every listed thing, from the lists in the headers. */
#include "gpudispatch/gpudispatch.h"

#define NUMBER_TEXT2(a, b, c) #a "." #b "." #c
#define NUMBER_TEXT(a, b, c) NUMBER_TEXT2(a, b, c)

const char *gpud_version(void)
{
    return NUMBER_TEXT(GPUD_VERSION_MAJOR, GPUD_VERSION_MINOR, GPUD_VERSION_PATCH);
}

#define X(name, value, sentence) \
    case value: \
        return sentence;
const char *gpud_error_text(int code)
{
    switch (code) {
    case 0:
        return "success";
        GPUD_ERROR_MAP(X)
    default:
        return "unknown error";
    }
}
#undef X

#define X(name, value, text) \
    case value: \
        return #name;
#define NAMER(function, map)           \
    const char *function(uint32_t v)   \
    {                                  \
        switch (v) {                   \
            map(X) default: return "?"; \
        }                              \
    }

const char *gpud_error_name(int code)
{
    switch (code) {
    case 0:
        return "OK";
        GPUD_ERROR_MAP(X)
    default:
        return "?";
    }
}

NAMER(gpud_outcome_name, GPUD_OUTCOME_MAP)
NAMER(gpud_phase_name, GPUD_PHASE_MAP)
NAMER(gpud_event_name, GPUD_EVENT_MAP)
NAMER(gpud_slot_state_name, GPUD_SLOT_MAP)
NAMER(gpud_class_change_name, GPUD_CHANGE_MAP)
NAMER(gpud_promise_name, GPUD_PROMISE_MAP)
NAMER(gpud_reason_name, GPUD_REASON_MAP)
NAMER(gpud_revoked_name, GPUD_REVOKED_MAP)
NAMER(gpud_level_name, GPUD_LEVEL_MAP)
NAMER(gpud_health_name, GPUD_HEALTH_MAP)
NAMER(gpud_device_kind_name, GPUD_DEVICE_KIND_MAP)
NAMER(gpud_device_state_name, GPUD_DEVICE_STATE_MAP)
NAMER(gpud_driver_name, GPUD_DRIVER_MAP)
#undef X

#define X(name, value, text) \
    case value: \
        return text;
const char *gpud_driver_text(uint32_t driver)
{
    switch (driver) {
        GPUD_DRIVER_MAP(X)
    default:
        return "?";
    }
}
