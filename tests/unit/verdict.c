/* SPDX-License-Identifier: MIT */
/*
 * verdict.c - how an attempt is judged: by its end time and its deadline, never by a flag. [C7]
 */
#include "harness.h"

#include <stdint.h>

#include "base/clock.h"
#include "gpudispatch/types.h"
#include "sched/verdict.h"

#define NEVER GPI_NEVER
#define START 1000000u

enum {
    S = GPUD_OUTCOME_SUCCESS,
    E = GPUD_OUTCOME_ERROR,
    T = GPUD_OUTCOME_TIMEOUT,
    C = GPUD_OUTCOME_CANCELLED
};

/* Times count from the start; `cancelled` too, NEVER = not asked for. */
static const struct row {
    const char *what;
    uint64_t limit, ran, stopped, cancelled;
    uint32_t fine, failed; /* the outcome when process answered 0, and when it did not */
} rows[] = {
    { "no limit", NEVER, 1u << 30, 0, NEVER, S, E },
    { "no limit, ended at once", NEVER, 0, 0, NEVER, S, E },
    { "in time", 100, 50, 0, NEVER, S, E },
    { "1 ns before the deadline", 100, 99, 0, NEVER, S, E },
    { "at the deadline", 100, 100, 0, NEVER, T, T },
    { "1 ns after it", 100, 101, 0, NEVER, T, T },
    { "long after it", 100, 1u << 30, 0, NEVER, T, T },
    { "a limit of nothing", 0, 0, 0, NEVER, T, T },
    { "stopped, so in time", 100, 199, 100, NEVER, S, E },
    { "stopped, at the later deadline", 100, 200, 100, NEVER, T, T },
    { "stopped, late all the same", 100, 250, 100, NEVER, T, T },
    { "stopped without a limit", NEVER, 500, 400, NEVER, S, E },
    { "a limit that ends beyond time", NEVER - 5, 500, 0, NEVER, S, E },
    { "cancelled while it ran", NEVER, 50, 0, 20, C, C },
    { "cancelled as it ended", NEVER, 50, 0, 50, C, C },
    { "ended before it was cancelled", NEVER, 50, 0, 51, S, E },
    { "cancelled before the deadline, ended in time", 100, 50, 0, 20, C, C },
    { "cancelled before the deadline, ended late", 100, 150, 0, 20, C, C },
    { "cancelled 1 ns before the deadline, ended late", 100, 150, 0, 99, C, C },
    { "cancelled at the deadline", 100, 150, 0, 100, T, T },
    { "cancelled after the deadline", 100, 150, 0, 120, T, T },
    { "cancelled after it ended late", 100, 150, 0, 160, T, T },
    { "stopped, cancelled before the later deadline", 100, 250, 100, 150, C, C },
    { "stopped, cancelled after it", 100, 250, 100, 220, T, T },
};

T_CASE(table)
{
    for (size_t i = 0; i < T_LENGTH(rows); i++)
        for (int failed = 0; failed < 2; failed++)
            for (int expired = 0; expired < 2; expired++) {
                const struct row *r = &rows[i];
                const struct gpi_attempt a = {
                    .started_at = START,
                    .ended_at = START + r->ran,
                    .stopped = r->stopped,
                    .limit = r->limit,
                    .cancelled_at = r->cancelled == NEVER ? NEVER : START + r->cancelled,
                    .failed = failed,
                    .expired = expired, /* decides nothing, whether it is set or not */
                };
                uint32_t got = gpi_verdict(&a), wanted = failed ? r->failed : r->fine;

                if (got != wanted)
                    T_FAIL("%s%s, flag %d: outcome %u, not %u", r->what, failed ? ", failed" : "",
                           expired, got, wanted);
            }
}

/* Whatever the numbers: late is never SUCCESS or ERROR, in time never TIMEOUT, and no sum wraps. */
T_CASE(never_by_a_flag)
{
    uint64_t seed = 88172645463325252U;

    for (unsigned i = 0; i < 2000000; i++) {
        uint64_t word[4];
        struct gpi_attempt a;
        uint64_t deadline;
        uint32_t outcome;

        for (int n = 0; n < 4; n++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            word[n] = seed >> (seed % 5) * 12;
        }
        a = (struct gpi_attempt){ .started_at = word[0],
                                  .ended_at = word[0] + (word[1] >> 1),
                                  .stopped = word[2],
                                  .limit = i % 5 ? word[3] : NEVER,
                                  .cancelled_at = i % 3 ? NEVER : word[0] + word[2] % 1000,
                                  .failed = i % 2,
                                  .expired = i / 2 % 2 };
        deadline = a.started_at > NEVER - a.limit ? NEVER : a.started_at + a.limit;
        deadline = deadline > NEVER - a.stopped ? NEVER : deadline + a.stopped;
        outcome = gpi_verdict(&a);
        if (outcome == C)
            T_CHECK(a.cancelled_at <= a.ended_at && a.cancelled_at < deadline);
        else
            T_EQ(outcome, a.ended_at >= deadline ? T : a.failed ? E : S);
    }
}

/* A stall limit that has passed is a deadline like the other; whichever came first counts. */
T_CASE(stalled)
{
    const struct {
        uint64_t limit, stalled, cancelled;
        uint32_t outcome;
    } row[] = {
        { NEVER, 0, NEVER, S }, { NEVER, 50, NEVER, T }, { NEVER, 100, NEVER, T },
        { 200, 50, NEVER, T }, { 50, 80, NEVER, T },
        { NEVER, 50, 49, C }, { NEVER, 50, 50, T }, { 40, 50, 45, T }, { 200, 50, 100, T },
        { 200, 0, 100, C },
    };

    for (size_t i = 0; i < T_LENGTH(row); i++) {
        const struct gpi_attempt a = {
            .started_at = START,
            .ended_at = START + 100,
            .limit = row[i].limit,
            .stalled_at = row[i].stalled ? START + row[i].stalled : 0,
            .cancelled_at = row[i].cancelled == NEVER ? NEVER : START + row[i].cancelled,
        };

        T_EQ(gpi_verdict(&a), row[i].outcome);
    }
}
