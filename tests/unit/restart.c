/* SPDX-License-Identifier: MIT */
/*
 * restart.c - what follows a death: at once, after a wait that doubles, or never again.  [C9]
 */
#include "harness.h"

#include <stdint.h>

#include "base/clock.h"
#include "sched/restart.h"

T_CASE(waits_double_up_to_the_cap)
{
    const struct gpi_restart_policy p = { .backoff = GPI_S,
                                          .cap = 60 * GPI_S,
                                          .failures_in_a_row = 100 };
    struct gpi_restart r = { 0 };
    uint64_t wanted = GPI_S;

    for (int i = 0; i < 99; i++) {
        T_EQ(gpi_restart_slot_failure(&r, &p), wanted);
        wanted = 2 * wanted > p.cap ? p.cap : 2 * wanted;
    }
    T_CHECK(gpi_restart_slot_failure(&r, &p) == GPI_RESTART_GIVE_UP);
}

/* Neither a cap that is no power of two times the wait, nor one below it, is passed. */
T_CASE(caps)
{
    static const struct {
        uint64_t backoff, cap;
    } pairs[] = { { 1, 1 },        { 3, 100 },        { 100, 3 },
                  { 7, 7 * 1024 }, { GPI_MS, GPI_S }, { 1, 1ull << 40 } };

    for (size_t i = 0; i < T_LENGTH(pairs); i++) {
        const struct gpi_restart_policy p = { .backoff = pairs[i].backoff,
                                              .cap = pairs[i].cap,
                                              .failures_in_a_row = 1000 };
        struct gpi_restart r = { 0 };
        uint64_t last = 0, wait;

        for (int n = 0; n < 200; n++) {
            wait = gpi_restart_slot_failure(&r, &p);
            T_CMP(wait, >=, last);
            T_CMP(wait, <=, p.cap);
            T_CMP(wait, >, 0);
            last = wait;
        }
        T_EQ(last, p.cap);
    }
}

/* Nor does doubling wrap around, however far away the cap is. */
T_CASE(doubling_ends)
{
    static const uint64_t backoffs[] = { 3, GPI_S, (1ull << 63) - 1, (1ull << 63) + 5 };

    for (size_t i = 0; i < T_LENGTH(backoffs); i++) {
        const struct gpi_restart_policy p = { .backoff = backoffs[i],
                                              .cap = UINT64_MAX - 1,
                                              .failures_in_a_row = 1000 };
        struct gpi_restart r = { 0 };
        uint64_t last = p.backoff - 1, wait;

        for (int n = 0; n < 100; n++, last = wait) {
            wait = gpi_restart_slot_failure(&r, &p);
            T_CHECK(wait > last || (wait == last && wait == p.cap));
        }
        T_CHECK(last == p.cap);
    }
}

T_CASE(given_up_after_so_many_in_a_row)
{
    for (uint32_t most = 1; most < 20; most++) {
        const struct gpi_restart_policy p = { .backoff = 1, .cap = 8, .failures_in_a_row = most };
        struct gpi_restart r = { 0 };

        for (uint32_t i = 1; i < most; i++)
            T_CHECK(gpi_restart_slot_failure(&r, &p) != GPI_RESTART_GIVE_UP);
        for (int i = 0; i < 3; i++)
            T_CHECK(gpi_restart_slot_failure(&r, &p) == GPI_RESTART_GIVE_UP);
    }
}

/* A task that ended by itself: counting begins anew. */
T_CASE(all_is_forgiven)
{
    const struct gpi_restart_policy p = { .backoff = 5, .cap = 1000, .failures_in_a_row = 3 };
    struct gpi_restart r = { 0 };

    for (int round = 0; round < 10; round++) {
        T_EQ(gpi_restart_slot_failure(&r, &p), 5);
        T_EQ(gpi_restart_slot_failure(&r, &p), 10);
        gpi_restart_good(&r);
    }
    T_EQ(gpi_restart_slot_failure(&r, &p), 5);
    T_EQ(gpi_restart_slot_failure(&r, &p), 10);
    T_CHECK(gpi_restart_slot_failure(&r, &p) == GPI_RESTART_GIVE_UP);
}

/* A task's death costs its slot nothing, however many there are, while nobody else succeeds. */
T_CASE(task_deaths_while_none_succeeds)
{
    const struct gpi_restart_policy p = { .backoff = 5, .cap = 1000, .failures_in_a_row = 3 };
    struct gpi_restart r = { 0 };

    for (int i = 0; i < 1000; i++)
        T_EQ(gpi_restart_task_death(&r, &p, 4711), 0);
    T_EQ(r.slot_failures, 0);
}

/* Several in a row while others succeed make the slot suspect: it waits, ever longer, but it is
 * not given up; one good task and it is as new. */
T_CASE(task_deaths_while_others_succeed)
{
    const struct gpi_restart_policy p = { .backoff = 5, .cap = 1000, .failures_in_a_row = 3 };
    struct gpi_restart r = { 0 };

    for (int round = 0; round < 3; round++) {
        uint64_t last = 0, wait, successes = 100;
        int at_once = 0;

        for (int i = 0; i < 100; i++) {
            wait = gpi_restart_task_death(&r, &p, successes++);
            at_once += wait == 0;
            T_CMP(wait, >=, last);
            T_CMP(wait, <=, p.cap);
            last = wait;
        }
        T_CMP(at_once, >=, 3); /* 24 adjacent crashes on 8 slots must not slow anything down */
        T_CMP(at_once, <, 20);
        T_EQ(last, p.cap);
        gpi_restart_good(&r);
        T_EQ(gpi_restart_task_death(&r, &p, successes), 0);
        gpi_restart_good(&r);
    }
    T_EQ(gpi_restart_slot_failure(&r, &p), 5);
}
