/* SPDX-License-Identifier: MIT */
#include "nvidia_ml.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "gpudispatch/device.h"
#include "script_text.h"

EXPORTED atomic_uint fake_nvml_calls, fake_nvml_forbidden;
struct fake fake = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the script ---- */

__attribute__((constructor)) static void load(void)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    char *text = fake_script_text();

    if (gpi_script_parse(&fake.script, text, *text ? 0 : 1, &e)) {
        (void)fprintf(stderr, "fake libnvidia-ml: %s\n", e.text);
        abort();
    }
    free(text);
    fake.zero = gpi_now();
    for (uint32_t i = 0; i < GPI_SCRIPT_TRIGGERS_MAX; i++)
        fake.fired[i] = GPI_NEVER;
}

__attribute__((destructor)) static void unload(void)
{
    gpi_script_free(fake.script);
}

uint64_t f_now(uint64_t *ret_fired)
{
    uint64_t t;

    (void)pthread_mutex_lock(&fake.lock);
    t = gpi_now() - fake.zero;
    (void)gpi_script_look(fake.script, fake.fired, t);
    memcpy(ret_fired, fake.fired, sizeof(fake.fired));
    (void)pthread_mutex_unlock(&fake.lock);
    return t;
}

struct gpi_script_state f_state_of(uint32_t row)
{
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    const uint64_t t = f_now(fired);
    struct gpi_script_state s;

    gpi_script_state(fake.script, fired, row, t, &s);
    return s;
}

struct gpi_script_driver f_driver(void)
{
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    const uint64_t t = f_now(fired);
    struct gpi_script_driver d;

    gpi_script_driver(fake.script, fired, t, &d);
    return d;
}

struct gpi_device f_identity(uint32_t row)
{
    struct gpi_device d;

    gpi_script_identity(fake.script, row, &d);
    return d;
}

/* ---- every call ---- */

/* Whether this one is among the first `times` that fail. */
static bool fails_now(const char *call, uint32_t row, const struct gpi_script_call *c)
{
    struct turn *t = fake.turn;
    bool fails;

    (void)pthread_mutex_lock(&fake.lock);
    while (t < fake.turn + fake.turns && (strcmp(t->call, call) || t->row != row))
        t++;
    if (t == fake.turn + fake.turns) {
        if (fake.turns == TURNS)
            abort();
        fake.turns++;
        (void)snprintf(t->call, sizeof(t->call), "%s", call);
        t->row = row;
    }
    if (t->turn != c->turn)
        t->done = 0;
    t->turn = c->turn;
    fails = t->done < c->times;
    t->done += fails && c->times != UINT32_MAX;
    (void)pthread_mutex_unlock(&fake.lock);
    return fails;
}

void f_rest(uint64_t duration)
{
    const struct timespec t = { (time_t)(duration / GPI_S), (long)(duration % GPI_S) };

    (void)nanosleep(&t, NULL);
}

static int of_driver(uint32_t state)
{
    static const int codes[GPUD_DRIVER_COUNT] = {
        [GPUD_DRIVER_NONE] = 12,
        [GPUD_DRIVER_NOT_LOADED] = DRIVER_NOT_LOADED,
        [GPUD_DRIVER_MISMATCH] = VERSION_MISMATCH,
        [GPUD_DRIVER_TOO_OLD] = FUNCTION_NOT_FOUND,
        [GPUD_DRIVER_NO_PERMISSION] = NO_PERMISSION,
        [GPUD_DRIVER_REVOKED] = UNKNOWN,
        [GPUD_DRIVER_FAILED] = 23,
    };

    return codes[state];
}

int f_of_access(uint32_t row)
{
    static const int codes[] = { [GPI_ACCESS_OK] = OK,
                                 [GPI_ACCESS_DENIED] = NO_PERMISSION,
                                 [GPI_ACCESS_LOST] = GPU_IS_LOST,
                                 [GPI_ACCESS_RESET] = RESET_REQUIRED,
                                 [GPI_ACCESS_REVOKED] = UNKNOWN };

    return codes[f_state_of(row).access];
}

int f_obey(const char *call, const char *group, uint32_t row)
{
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    struct gpi_script_call c;

    atomic_fetch_add(&fake_nvml_calls, 1);
    for (;;) {
        const uint64_t t = f_now(fired);
        gpi_script_call(fake.script, fired, row, call, group, t, &c);
        if (!c.hangs && f_driver().state != GPUD_DRIVER_HUNG)
            break;
        f_rest(GPI_MS);
    }
    if (c.delay)
        f_rest(c.delay);
    if (c.code && fails_now(call, row, &c))
        return c.code;
    if (f_driver().state != GPUD_DRIVER_OK)
        return of_driver(f_driver().state);
    return row == GPI_UNKNOWN32 ? OK : f_of_access(row);
}

uint32_t f_row_of(const void *handle)
{
    const size_t row = (size_t)((const char *)handle - fake.row);

    return handle && row < gpi_script_rows(fake.script) ? (uint32_t)row : GPI_UNKNOWN32;
}

/* ---- writing records by offset ---- */

void f_put32(void *to, size_t at, uint32_t value)
{
    memcpy((char *)to + at, &value, 4);
}

void f_put64(void *to, size_t at, uint64_t value)
{
    memcpy((char *)to + at, &value, 8);
}

int f_text(char *to, uint32_t size, const char *what)
{
    if (strlen(what) >= size)
        return INSUFFICIENT_SIZE;
    memcpy(to, what, strlen(what) + 1);
    return OK;
}

int f_number(uint32_t *to, uint32_t value)
{
    if (value == GPI_UNKNOWN32)
        return NOT_SUPPORTED;
    *to = value;
    return OK;
}

bool f_is_part(uint32_t row)
{
    return f_identity(row).mig_index != GPI_UNKNOWN32;
}
