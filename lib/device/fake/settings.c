/* SPDX-License-Identifier: MIT */
/* settings.c - the settings in a script: KEY=VALUE that may change. */
#include <string.h>

#include "device/fake/grammar.h"
#include "gpudispatch/device.h"

static const struct gpi_keyword yes_no[] = { { "no", 0 }, { "yes", 1 }, { NULL, 0 } };
static const struct gpi_keyword modes[] = {
    { "default", 0 }, { "prohibited", 2 }, { "exclusive", 3 }, { NULL, 0 }
};
static const struct gpi_keyword shown[] = { { "shown", 0 }, { "hidden", 1 }, { NULL, 0 } };
static const struct gpi_keyword recoveries[] = { { "none", GPUD_RECOVERY_NONE },
                                                 { "reset", GPUD_RECOVERY_RESET },
                                                 { "reboot", GPUD_RECOVERY_REBOOT },
                                                 { "drain-p2p", GPUD_RECOVERY_DRAIN_P2P },
                                                 { "drain-reset", GPUD_RECOVERY_DRAIN_RESET },
                                                 { "imex", GPUD_RECOVERY_IMEX },
                                                 { "bus-reset", GPUD_RECOVERY_BUS_RESET },
                                                 { "system-reboot", GPUD_RECOVERY_SYSTEM_REBOOT },
                                                 { NULL, 0 } };
static const struct gpi_keyword states[] = { { "ok", GPUD_DRIVER_OK },
                                             { "none", GPUD_DRIVER_NONE },
                                             { "not-loaded", GPUD_DRIVER_NOT_LOADED },
                                             { "mismatch", GPUD_DRIVER_MISMATCH },
                                             { "too-old", GPUD_DRIVER_TOO_OLD },
                                             { "no-permission", GPUD_DRIVER_NO_PERMISSION },
                                             { "revoked", GPUD_DRIVER_REVOKED },
                                             { "hung", GPUD_DRIVER_HUNG },
                                             { "failed", GPUD_DRIVER_FAILED },
                                             { NULL, 0 } };
static const struct gpi_keyword throttles[] = { { "none", 0 },
                                                { "idle", GPUD_THROTTLE_IDLE },
                                                { "app-clocks", GPUD_THROTTLE_APP_CLOCKS },
                                                { "power-cap", GPUD_THROTTLE_POWER_CAP },
                                                { "hw-slowdown", GPUD_THROTTLE_HW_SLOWDOWN },
                                                { "sync-boost", GPUD_THROTTLE_SYNC_BOOST },
                                                { "sw-thermal", GPUD_THROTTLE_SW_THERMAL },
                                                { "hw-thermal", GPUD_THROTTLE_HW_THERMAL },
                                                { "power-brake", GPUD_THROTTLE_HW_POWER_BRAKE },
                                                { NULL, 0 } };

/* Reads WORD+WORD+... */
static bool throttle(const char *text, uint64_t *ret)
{
    uint64_t bit;
    size_t n;

    for (*ret = 0;; text += n + 1) {
        n = strcspn(text, "+");
        if (!gpi_keyword_read(throttles, text, n, &bit))
            return false;
        *ret |= bit;
        if (!text[n])
            return true;
    }
}

static bool canary(char *text, uint64_t *ret)
{
    if (!gpi_times_in(text, ret))
        return false;
    if (!strcmp(text, "ok") && *ret == GPI_UNKNOWN32)
        *ret = 0;
    else if (strcmp(text, "fail") != 0)
        return false;
    return true;
}

enum how {
    HOW_NONE,
    HOW_NUMBER,
    HOW_PERCENT,
    HOW_WATTS,
    HOW_SIZE_OR_PERCENT,
    HOW_YES_NO,
    HOW_TIME,
    HOW_THROTTLE,
    HOW_RECOVERY,
    HOW_MODE,
    HOW_CANARY,
    HOW_STATE,
    HOW_PROCESSES
};

static const struct setting {
    const char *key;
    enum how how;
} settings[] = {
#define X_HOW(name, key, how, otherwise) [GPI_SET_##name] = { key, HOW_##how },
    GPI_SETTING_MAP(X_HOW)
#undef X_HOW
};

/* The expected form of each kind of value, for errors. */
static const char *const how_texts[] = {
    [HOW_NUMBER] = "a number or unknown",
    [HOW_PERCENT] = "a percentage from 0 to 100, without %, or unknown",
    [HOW_WATTS] = "watts, without a unit, or unknown",
    [HOW_SIZE_OR_PERCENT] = "a size such as 20GiB, or a percentage such as 90%",
    [HOW_YES_NO] = "yes, no or unknown",
    [HOW_TIME] = "a time such as 50ms",
    [HOW_THROTTLE] = "none, idle, app-clocks, power-cap, hw-slowdown, sync-boost, sw-thermal, "
                     "hw-thermal, power-brake, several with +, or unknown",
    [HOW_RECOVERY] = "none, reset, reboot, drain-p2p, drain-reset, imex, bus-reset, system-reboot, "
                     "a number or unknown",
    [HOW_MODE] = "default, prohibited, exclusive or unknown",
    [HOW_CANARY] = "ok, fail or fail*N",
    [HOW_STATE] = "ok, none, not-loaded, mismatch, too-old, no-permission, revoked, hung or failed",
    [HOW_PROCESSES] = "shown or hidden",
};

static bool used(char *text, struct gpi_effect *e)
{
    const size_t n = strlen(text);

    if (n && text[n - 1] == '%') {
        text[n - 1] = '\0';
        e->more = 1;
        return gpi_whole(text, 100, &e->value);
    }
    return gpi_quantity(text, gpi_sizes, &e->value);
}

static bool read_value(enum how how, char *text, struct gpi_effect *e)
{
    const bool fixed = how == HOW_SIZE_OR_PERCENT || how == HOW_TIME || how == HOW_CANARY ||
                       how == HOW_STATE || how == HOW_PROCESSES;

    if (!fixed && !strcmp(text, "unknown")) {
        e->value = GPI_UNKNOWN64;
        return true;
    }
    switch (how) {
    case HOW_NUMBER:
        return gpi_whole(text, GPI_UNKNOWN32 - 1u, &e->value);
    case HOW_PERCENT:
        return gpi_whole(text, 100, &e->value);
    case HOW_WATTS:
        if (!gpi_whole(text, 1000000, &e->value))
            return false;
        e->value *= 1000; /* NVML uses mW */
        return true;
    case HOW_SIZE_OR_PERCENT:
        return used(text, e);
    case HOW_YES_NO:
        return gpi_keyword_read(yes_no, text, strlen(text), &e->value);
    case HOW_TIME:
        return gpi_quantity(text, gpi_times, &e->value);
    case HOW_THROTTLE:
        return throttle(text, &e->value);
    case HOW_RECOVERY:
        return gpi_keyword_read(recoveries, text, strlen(text), &e->value) ||
               gpi_whole(text, GPI_UNKNOWN32 - 1u, &e->value);
    case HOW_MODE:
        return gpi_keyword_read(modes, text, strlen(text), &e->value);
    case HOW_CANARY:
        return canary(text, &e->value);
    case HOW_STATE:
        return gpi_keyword_read(states, text, strlen(text), &e->value);
    case HOW_PROCESSES:
        return gpi_keyword_read(shown, text, strlen(text), &e->value);
    case HOW_NONE:
        break;
    }
    return false;
}

void gpi_script_set(struct gpi_reader *r, struct gpi_effect e, uint32_t which,
                    const struct gpi_word *w)
{
    struct gpi_word v = gpi_word_value(w);
    const struct gpi_word found = v;

    e.verb = GPI_VERB_SET;
    e.setting = (uint8_t)which;
    if (!read_value(settings[which].how, v.text, &e))
        gpi_word_expected(r, &found, how_texts[settings[which].how]);
    gpi_script_push(r, &e);
}

/* Returns the setting that a word KEY=VALUE names, GPI_SETTINGS = none. */
uint32_t gpi_setting_named(const struct gpi_word *w, uint32_t from, uint32_t to)
{
    const size_t n = strcspn(w->text, "=");

    for (uint32_t i = from; i < to; i++)
        if (settings[i].key && strlen(settings[i].key) == n && !memcmp(settings[i].key, w->text, n))
            return i;
    return GPI_SETTINGS;
}
