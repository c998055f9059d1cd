/* SPDX-License-Identifier: MIT */
/* health_walks.c - how a device is judged on any walk through all that can happen: what always
 * holds, and a way back. */
#include "device_events.h"

#include "harness.h"

#include <string.h>

#include "base/clock.h"
#include "gpudispatch/device.h"

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* What must hold after each step, whatever came before. */
static void check_step(const struct gpi_health *before, const struct gpi_health *h,
                       enum gpi_measure m, bool last_reading_ok, uint64_t now)
{
    T_CHECK(h->state < GPUD_HEALTH_COUNT);
    T_CHECK(h->state != GPUD_HEALTH_HEALTHY || last_reading_ok);
    T_CHECK(h->evidence[0] && memchr(h->evidence, '\0', sizeof(h->evidence)));
    T_EQ(h->since, h->state == before->state ? before->since : now);
    T_EQ(gpi_health_starts(h), !d_out_of_use(h) && h->state != GPUD_HEALTH_REVOKED);
    /* nothing is for ever: there is a next try or a next look, within the longest wait */
    if (!gpi_health_starts(h))
        T_CMP(d_next_of(h), <=, now + d_policy.backoff_cap);
    T_EQ(gpi_health_hopes(h), gpi_health_starts(h) || h->try_at != GPI_NEVER);
    if (h->state == GPUD_HEALTH_SUSPECT)
        T_CHECK(h->canary_due && h->try_at != GPI_NEVER);
    T_CHECK(h->try_at == GPI_NEVER || d_out_of_use(h) || h->state == GPUD_HEALTH_SUSPECT);
    T_CHECK(h->try_at == GPI_NEVER || !h->speaks_against);
    T_CMP(h->passes, <=, d_out_of_use(h) ? 1000 : 0);
    /* measures: who leaves is drained or fenced, who comes is returned, and nobody is returned who
     * was there */
    if (m == GPI_MEASURE_RETURN)
        T_CHECK(!gpi_health_starts(before) && gpi_health_starts(h) && !h->speaks_against);
    else
        T_CHECK(gpi_health_starts(before) || !gpi_health_starts(h));
    if (!d_out_of_use(before) && d_out_of_use(h))
        T_CHECK(m == GPI_MEASURE_DRAIN || m == GPI_MEASURE_FENCE);
    if (m == GPI_MEASURE_FENCE)
        T_CHECK(d_out_of_use(h));
    if (m == GPI_MEASURE_DRAIN)
        T_CHECK(d_out_of_use(h) || h->state == GPUD_HEALTH_SUSPECT);
    if (m == GPI_MEASURE_RESTART)
        T_EQ(h->state, GPUD_HEALTH_SUSPECT);
    if (d_out_of_use(before) && m == GPI_MEASURE_RETURN)
        T_CMP(before->passes + 1, >=, d_policy.passes);
}

/* Moves that come of the waits: a try or a look when its time has come, or whatever it may be. */
static enum event next_event(const struct gpi_health *h, uint64_t now, uint64_t *seed)
{
    if (draw(seed) % 4 == 0 && h->try_at <= now)
        return draw(seed) % 3 ? PASSED : FAILED;
    return (enum event)(draw(seed) % EVENTS);
}

T_LONG_CASE(random_walks, 120)
{
    uint64_t seed = 0x9e3779b97f4a7c15U;
    unsigned seen[GPUD_HEALTH_COUNT] = { 0 }, returns = 0;

    for (int walk = 0; walk < 4000; walk++) {
        struct gpi_health h;
        uint64_t now = D_START;
        bool readable = false;

        gpi_health_init(&h, walk % 2 ? GPUD_DEVICE_GPU : GPUD_DEVICE_FAKE, now);
        for (int step = 0; step < 200; step++) {
            const struct gpi_health before = h;
            enum event e;
            enum gpi_measure m;
            now += 1 + draw(&seed) % (draw(&seed) % 8 ? 2 * GPI_S : 400 * GPI_S);
            if (draw(&seed) % 16 == 0) {
                gpi_health_killed(&h, d_by, now);
                continue;
            }
            e = next_event(&h, now, &seed);
            m = d_happen(&h, e, now);
            if (e >= READ_OK && e <= READ_REVOKED)
                readable = e < READ_UNKNOWN;
            else if (e == SILENCE || e == MONITOR_GONE)
                readable = false;
            check_step(&before, &h, m, readable, now);
            seen[h.state]++;
            returns += m == GPI_MEASURE_RETURN;
        }
    }
    for (unsigned i = 0; i < GPUD_HEALTH_COUNT; i++)
        T_CMP(seen[i], >, 1000);
    T_CMP(returns, >, 1000);
}

/* From wherever a walk has led, a device that is well again comes back within its waits, by what it
 * asks for itself. */
T_LONG_CASE(a_way_back_from_anywhere, 120)
{
    uint64_t seed = 0x2545f4914f6cdd1dU;

    for (int walk = 0; walk < 20000; walk++) {
        struct gpi_health h;
        uint64_t now = D_START;

        gpi_health_init(&h, GPUD_DEVICE_GPU, now);
        for (uint64_t step = draw(&seed) % 40; step > 0; step--) {
            now += 1 + draw(&seed) % (100 * GPI_S);
            (void)d_happen(&h, next_event(&h, now, &seed), now);
        }
        for (int step = 0; !gpi_health_starts(&h); step++) {
            const uint64_t next = d_next_of(&h);
            T_CMP(step, <, 8);
            now = 1 + (next > now ? next : now);
            if (h.try_at <= now)
                (void)d_happen(&h, PASSED, now);
            else
                (void)d_ok(&h, &d_policy, now);
        }
    }
}

/* The same where there are no canaries: readings alone lead back. */
T_LONG_CASE(a_way_back_without_canaries, 120)
{
    uint64_t seed = 0x9e3779b97f4a7c15U;

    d_by = &d_no_canaries;
    for (int walk = 0; walk < 20000; walk++) {
        struct gpi_health h;
        uint64_t now = D_START;

        gpi_health_init(&h, GPUD_DEVICE_GPU, now);
        for (uint64_t step = draw(&seed) % 40; step > 0; step--) {
            enum event e = (enum event)(draw(&seed) % EVENTS);
            now += 1 + draw(&seed) % (100 * GPI_S);
            (void)d_happen(&h, e, now);
            T_EQ(h.try_at, GPI_NEVER);
            if (draw(&seed) % 16 == 0)
                gpi_health_killed(&h, d_by, now);
            T_CHECK(!h.canary_due); /* nobody could ever pass it */
            if (!gpi_health_starts(&h) || h.state == GPUD_HEALTH_SUSPECT)
                T_CMP(h.look_at, <=, now + d_by->backoff_cap);
        }
        for (int step = 0; !gpi_health_starts(&h) || h.state == GPUD_HEALTH_SUSPECT; step++) {
            const uint64_t next = d_next_of(&h);
            T_CMP(step, <, 4);
            now = 1 + (next > now ? next : now);
            (void)d_ok(&h, d_by, now);
        }
        T_EQ(h.state == GPUD_HEALTH_HEALTHY, h.readable);
    }
}
