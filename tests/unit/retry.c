/* SPDX-License-Identifier: MIT */
/*
 * retry.c - whether another attempt follows, and after what wait.                        [C3]
 */
#include "harness.h"

#include <stdint.h>

#include "base/clock.h"
#include "gpudispatch/dispatch.h"
#include "sched/retry.h"

/* Each cause lets exactly its own outcome be tried again, and only while attempts are left. */
T_CASE(causes)
{
    static const uint32_t cause[GPUD_OUTCOME_COUNT] = {
        [GPUD_OUTCOME_ERROR] = GPUD_RETRY_ERROR,
        [GPUD_OUTCOME_TIMEOUT] = GPUD_RETRY_TIMEOUT,
        [GPUD_OUTCOME_CRASHED] = GPUD_RETRY_CRASH,
    };

    for (uint32_t causes = 0; causes <= GPI_RETRY_ALL; causes++)
        for (uint32_t outcome = 0; outcome < GPUD_OUTCOME_COUNT; outcome++)
            for (uint32_t attempts = 1; attempts < 5; attempts++)
                for (uint32_t most = 1; most < 5; most++)
                    T_EQ(gpi_retry_allowed(causes, outcome, attempts, most),
                         attempts < most && (causes & cause[outcome]));
}

/* What a device did to a task is no crash of its own. */
T_CASE(after_a_device)
{
    for (uint32_t causes = 0; causes <= GPI_RETRY_ALL; causes++)
        for (uint32_t attempts = 1; attempts < 5; attempts++)
            for (uint32_t most = 1; most < 5; most++)
                T_EQ(gpi_retry_after_device(causes, attempts, most),
                     attempts < most && (causes & GPUD_RETRY_DEVICE));
}

T_CASE(waits_double_up_to_the_cap)
{
    const struct gpi_retry_policy p = { .backoff = GPI_S, .cap = 60 * GPI_S },
                                  none = { .backoff = 0, .cap = GPI_S };
    uint64_t wanted = GPI_S;

    for (uint32_t n = 1; n < 256; n++) {
        T_EQ(gpi_retry_wait(&p, n), wanted);
        T_EQ(gpi_retry_wait(&none, n), 0);
        wanted = 2 * wanted > p.cap ? p.cap : 2 * wanted;
    }
}

/* No sum wraps, whatever the numbers. */
T_CASE(far_waits)
{
    const struct gpi_retry_policy p = { .backoff = 3, .cap = GPI_NEVER - 1 };
    uint64_t last = 0;

    for (uint32_t n = 1; n < 256; n++) {
        uint64_t wait = gpi_retry_wait(&p, n);

        T_CHECK(wait >= last && wait <= p.cap);
        last = wait;
    }
    T_CHECK(last == p.cap);
}
