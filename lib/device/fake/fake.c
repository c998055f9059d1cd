/* SPDX-License-Identifier: MIT */
/* fake.c - the provider of fake devices: it reports their script as if it had read devices. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/driver.h"
#include "device/provider.h"
#include "device/fake/script.h"

/* The interval at which the provider checks for awaited files. */
#define LOOK (2 * GPI_MS)

/* The files that one of the two threads has seen, and how often each of its calls has failed. */
struct side {
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    struct {
        uint32_t turn, done;
    } failed[GPI_GPUS_MAX + 1]; /* by row; the last: calls that concern no row */
};

struct fake {
    struct gpi_script *script;
    uint64_t zero;
    struct side asked, heard;
    uint32_t n, row[GPI_GPUS_MAX]; /* the rows that were enumerated */
    /* only for await's thread */
    struct gpi_script_cursor cursor;
    uint64_t heard_until;
    bool deaf;
};

static uint64_t script_time(const struct fake *f)
{
    const uint64_t now = gpi_now();

    return now > f->zero ? now - f->zero : 0;
}

/* ---- calls that hang, take long or fail ---- */

static bool waits_for_files(const struct fake *f, const struct side *side)
{
    for (uint32_t i = 0; i < gpi_script_triggers(f->script); i++)
        if (side->fired[i] == GPI_NEVER)
            return true;
    return false;
}

static void rest_until(uint64_t time)
{
    const struct timespec at = { (time_t)(time / GPI_S), (long)(time % GPI_S) };

    if (time == GPI_NEVER)
        (void)ppoll(NULL, 0, NULL, NULL);
    else
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* Rests until the state may change. */
static void rest(const struct fake *f, const struct side *side, uint64_t t)
{
    const uint64_t next = gpi_script_next(f->script, side->fired, t);

    rest_until(gpi_time_min(gpi_time_add(f->zero, next),
                            waits_for_files(f, side) ? gpi_now() + LOOK : GPI_NEVER));
}

/* Lets a call hang, take long or fail as the script requires; returns the code of the call. */
static int32_t call(const struct fake *f, struct side *side, uint32_t row, const char *name)
{
    const uint32_t whose = row == GPI_UNKNOWN32 ? GPI_GPUS_MAX : row;
    struct gpi_script_call c;
    uint64_t t;

    for (;;) {
        t = script_time(f);
        (void)gpi_script_look(f->script, side->fired, t);
        gpi_script_call(f->script, side->fired, row, name, NULL, t, &c);
        if (!c.hangs)
            break;
        rest(f, side, t);
    }
    if (c.delay)
        rest_until(gpi_time_add(gpi_now(), c.delay));
    if (side->failed[whose].turn != c.turn) {
        side->failed[whose].turn = c.turn;
        side->failed[whose].done = 0;
    }
    if (!c.code || side->failed[whose].done >= c.times)
        return 0;
    side->failed[whose].done += c.times != UINT32_MAX;
    return c.code;
}

/* ---- the driver ---- */

static void driver_now(const struct fake *f, struct side *side, struct gpi_driver *ret)
{
    struct gpi_script_driver d;

    gpi_script_driver(f->script, side->fired, script_time(f), &d);
    *ret =
        (struct gpi_driver){ .cuda_version = d.cuda_version, .gpus = gpi_script_gpus(f->script) };
    (void)snprintf(ret->driver_version, sizeof(ret->driver_version), "%s", d.version);
    (void)snprintf(ret->nvml_version, sizeof(ret->nvml_version), "%s", d.nvml_version);
    gpi_driver_say(ret, (enum gpud_driver)d.state, "set by the script");
    if (d.state == GPUD_DRIVER_OK)
        gpi_driver_say(ret, GPUD_DRIVER_OK, NULL);
}

static void *fake_open(uint32_t n, const char *script, uint64_t zero, struct gpi_driver *ret_driver)
{
    struct fake *f = calloc(1, sizeof(*f));
    int32_t code;

    *ret_driver = (struct gpi_driver){ .state = GPUD_DRIVER_FAILED };
    if (!f || gpi_script_parse(&f->script, script, n, NULL)) {
        gpi_driver_say(ret_driver, GPUD_DRIVER_FAILED,
                       "the script cannot be read, or there is no memory");
        free(f);
        return NULL;
    }
    f->zero = zero;
    for (uint32_t i = 0; i < GPI_SCRIPT_TRIGGERS_MAX; i++)
        f->asked.fired[i] = f->heard.fired[i] = GPI_NEVER;
    code = call(f, &f->asked, GPI_UNKNOWN32, GPI_SCRIPT_OPEN);
    for (driver_now(f, &f->asked, ret_driver); ret_driver->state == GPUD_DRIVER_HUNG;
         driver_now(f, &f->asked, ret_driver)) {
        rest(f, &f->asked, script_time(f));
        (void)gpi_script_look(f->script, f->asked.fired, script_time(f));
    }
    if (code)
        gpi_driver_say(ret_driver, gpi_driver_of(code), "set by the script");
    if (ret_driver->state == GPUD_DRIVER_OK)
        return f;
    gpi_script_free(f->script);
    free(f);
    return NULL;
}

/* ---- devices ---- */

static bool is_denied(const struct fake *f, uint32_t row)
{
    struct gpi_script_state state;

    gpi_script_state(f->script, f->asked.fired, row, script_time(f), &state);
    return state.access == GPI_ACCESS_DENIED;
}

static uint32_t fake_enumerate(void *state, struct gpi_device *rows, uint32_t max,
                               struct gpi_driver *ret_driver)
{
    struct fake *f = state;
    const uint32_t all = gpi_script_rows(f->script);
    struct gpi_unopened unopened = { .n = 0 };
    bool skip = false;

    driver_now(f, &f->asked, ret_driver);
    f->n = 0;
    for (uint32_t row = 0; row < all && f->n < max; row++) {
        struct gpi_device d;
        const int32_t code = call(f, &f->asked, row, GPI_SCRIPT_ENUMERATE);
        gpi_script_identity(f->script, row, &d);
        if (d.mig_index == GPI_UNKNOWN32) {
            skip = code || is_denied(f, row);
            if (skip)
                gpi_unopened_add(&unopened, ret_driver, d.index,
                                 code ? code : GPI_NVML_NO_PERMISSION);
        }
        if (skip || code)
            continue;
        rows[f->n] = d;
        f->row[f->n++] = row;
    }
    if (ret_driver->state == GPUD_DRIVER_OK)
        gpi_unopened_say(&unopened, ret_driver);
    return f->n;
}

/* Returns the code of a reading under a driver in this state. */
static uint32_t code_of(uint32_t driver)
{
    static const uint32_t codes[GPUD_DRIVER_COUNT] = {
        [GPUD_DRIVER_NONE] = GPI_NVML_LIBRARY_NOT_FOUND,
        [GPUD_DRIVER_NOT_LOADED] = GPI_NVML_DRIVER_NOT_LOADED,
        [GPUD_DRIVER_MISMATCH] = GPI_NVML_VERSION_MISMATCH,
        [GPUD_DRIVER_TOO_OLD] = GPI_NVML_FUNCTION_NOT_FOUND,
        [GPUD_DRIVER_NO_PERMISSION] = GPI_NVML_NO_PERMISSION,
        [GPUD_DRIVER_REVOKED] = GPI_NVML_UNKNOWN,
        [GPUD_DRIVER_HUNG] = GPI_NVML_TIMEOUT,
        [GPUD_DRIVER_FAILED] = 1,
    };

    return driver < GPUD_DRIVER_COUNT ? codes[driver] : 1;
}

static void fake_sample(void *state, uint32_t i, struct gpi_sample *ret)
{
    struct fake *f = state;
    const uint64_t at = gpi_now();
    struct gpi_script_driver driver;
    struct gpi_script_state now;
    uint32_t code;

    *ret = (struct gpi_sample){ .at = at, .reading = GPI_READ_UNKNOWN };
    if (i >= f->n)
        return;
    code = (uint32_t)call(f, &f->asked, f->row[i], GPI_SCRIPT_SAMPLE);
    gpi_script_state(f->script, f->asked.fired, f->row[i], script_time(f), &now);
    gpi_script_driver(f->script, f->asked.fired, script_time(f), &driver);
    *ret = now.sample;
    ret->at = at;
    if (!code && driver.state != GPUD_DRIVER_OK)
        code = code_of(driver.state);
    if (code) {
        ret->reading = gpi_reading_of((int)code);
        ret->code = code;
    }
    if (driver.hides_processes)
        ret->users_known = ret->n_users = 0;
}

/* ---- incidents ---- */

static uint32_t place_of(const struct fake *f, uint32_t row)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (f->row[i] == row)
            return i;
    return GPI_UNKNOWN32;
}

/* Finds the next incident that is due, of a device that was enumerated; .at is on the monotonic
 * clock. */
static bool next_told(struct fake *f, uint64_t until, struct gpi_incident *ret)
{
    while (gpi_script_incident(f->script, f->heard.fired, &f->cursor, until, ret)) {
        const uint32_t row = ret->device;
        ret->at += f->zero;
        if (row != GPI_UNKNOWN32)
            ret->device = place_of(f, row);
        if (row == GPI_UNKNOWN32 || ret->device != GPI_UNKNOWN32)
            return true;
    }
    return false;
}

static bool fake_await(void *state, struct gpi_incident *ret)
{
    struct fake *f = state;

    if (f->deaf)
        return false;
    for (;;) {
        const int32_t code = call(f, &f->heard, GPI_UNKNOWN32, GPI_SCRIPT_AWAIT);
        const uint64_t now = script_time(f), t = now > f->heard_until ? now : f->heard_until;
        if (code) {
            *ret = (struct gpi_incident){ .kind = GPI_INCIDENT_DEAF,
                                          .device = GPI_UNKNOWN32,
                                          .number = (uint64_t)code,
                                          .at = gpi_now() };
            break;
        }
        (void)gpi_script_look(f->script, f->heard.fired, t);
        f->heard_until = t + 1;
        if (next_told(f, f->heard_until, ret))
            break;
        rest(f, &f->heard, t);
    }
    f->deaf = ret->kind == GPI_INCIDENT_DEAF;
    return true;
}

const struct gpi_provider gpi_provider_fake = {
    .open = fake_open,
    .enumerate = fake_enumerate,
    .sample = fake_sample,
    .await = fake_await,
};
