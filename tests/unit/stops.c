/* SPDX-License-Identifier: MIT */
/*
 * stops.c - how the time of a stop is counted, step by step, and what is said of stops.
 */
#include "harness.h"

#include <stdint.h>

#include "base/clock.h"
#include "keeper/stops.h"
#include "wire/control.h"

enum { COUNTS = 1, NOT = 0 };

/* One stop, seen by a keeper that takes its steps `late` after they are due. */
struct step {
    uint64_t late;
    int counts;
    uint64_t counted; /* afterwards */
    int over;
};

static void walk(uint64_t limit, const struct step *steps, size_t n)
{
    struct gpi_stops s;
    uint64_t now = 5 * GPI_S;

    gpi_stops_reset(&s, limit);
    T_EQ(gpi_stops_next(&s), GPI_NEVER);
    (void)gpi_stops_begin(&s, now);
    for (size_t i = 0; i < n; i++) {
        T_CMP(gpi_stops_next(&s), >, now);
        T_CMP(gpi_stops_next(&s), <=, now + GPI_S);
        now = gpi_stops_next(&s) + steps[i].late;
        T_EQ(gpi_stops_step(&s, now, steps[i].counts), steps[i].over);
        T_EQ(s.counted, steps[i].counted);
    }
}

#define WALK(limit, ...)                                 \
    do {                                                 \
        const struct step list[] = { __VA_ARGS__ };      \
        walk((limit), list, sizeof list / sizeof *list); \
    } while (0)

T_CASE(steps)
{
    /* In time, or a little late: each counts for its own length, a second. */
    WALK(3 * GPI_S, { 0, COUNTS, GPI_S, 0 }, { 0, COUNTS, 2 * GPI_S, 0 },
         { 0, COUNTS, 3 * GPI_S, 1 });
    WALK(3 * GPI_S, { GPI_S, COUNTS, GPI_S, 0 }, { GPI_MS, COUNTS, 2 * GPI_S, 0 },
         { 0, COUNTS, 3 * GPI_S, 1 });
    /* More than 2 s after the one before: none. */
    WALK(3 * GPI_S, { GPI_S + 1, COUNTS, 0, 0 }, { 0, COUNTS, GPI_S, 0 },
         { 3600 * GPI_S, COUNTS, GPI_S, 0 }, { 0, COUNTS, 2 * GPI_S, 0 },
         { GPI_S + 1, COUNTS, 2 * GPI_S, 0 }, { GPI_S, COUNTS, 3 * GPI_S, 1 });
    /* In which host or worker was not as it has to be: none. */
    WALK(2 * GPI_S, { 0, NOT, 0, 0 }, { 0, COUNTS, GPI_S, 0 }, { 0, NOT, GPI_S, 0 },
         { 0, COUNTS, 2 * GPI_S, 1 });
    /* Of a short limit a step is half. */
    WALK(GPI_S, { GPI_S, COUNTS, GPI_S / 2, 0 }, { 0, COUNTS, GPI_S, 1 });
    WALK(3, { GPI_S, COUNTS, 2, 0 }, { GPI_S, COUNTS, 3, 1 });
    WALK(1, { 0, COUNTS, 1, 1 });
    /* The last one is what is left. */
    WALK(2500 * GPI_MS, { 0, COUNTS, GPI_S, 0 }, { 0, COUNTS, 2 * GPI_S, 0 },
         { 0, COUNTS, 2500 * GPI_MS, 1 });
}

/* Without a limit there is no step, and after the kill none any more. */
T_CASE(no_steps)
{
    struct gpi_stops s;

    gpi_stops_reset(&s, GPI_NEVER);
    (void)gpi_stops_begin(&s, GPI_S);
    T_EQ(gpi_stops_next(&s), GPI_NEVER);
    gpi_stops_reset(&s, 1);
    (void)gpi_stops_begin(&s, GPI_S);
    T_CHECK(gpi_stops_step(&s, 2 * GPI_S, true));
    T_EQ(gpi_stops_next(&s), GPI_NEVER);
}

/* A continue ends the count, and so does one that was overtaken by the next stop. */
T_CASE(in_a_row)
{
    for (int overtaken = 0; overtaken < 2; overtaken++) {
        struct gpi_stops s;

        gpi_stops_reset(&s, 2 * GPI_S);
        (void)gpi_stops_begin(&s, GPI_S);
        T_CHECK(!gpi_stops_step(&s, 2 * GPI_S, true));
        if (!overtaken) {
            (void)gpi_stops_end(&s);
            T_EQ(gpi_stops_next(&s), GPI_NEVER);
        }
        (void)gpi_stops_begin(&s, 3 * GPI_S);
        T_CHECK(!gpi_stops_step(&s, 4 * GPI_S, true));
        T_CHECK(gpi_stops_step(&s, 5 * GPI_S, true));
    }
}

/* The host may be stopped for hours: a short limit must not make the keeper look all the time. */
T_CASE(looks_rarely_while_nothing_counts)
{
    struct gpi_stops s;

    gpi_stops_reset(&s, T_MS(1));
    (void)gpi_stops_begin(&s, T_S(1));
    T_CMP(gpi_stops_next(&s), <=, T_S(1) + T_MS(1));
    T_CHECK(!gpi_stops_step(&s, T_S(2), false));
    T_EQ(gpi_stops_next(&s), T_S(2) + T_MS(100));
    T_CHECK(!gpi_stops_step(&s, T_S(2) + T_MS(100), true)); /* half of it */
    T_CMP(gpi_stops_next(&s), <=, T_S(2) + T_MS(101));
    T_CHECK(gpi_stops_step(&s, T_S(2) + T_MS(101), true));
}

/* However often it stops and goes on: what the host has not asked about is not said again. */
T_CASE(words)
{
    enum { BEGIN, END, ASK };
    static const struct {
        int event;
        uint32_t word;
    } list[] = {
        { END, 0 },
        { ASK, 0 },
        { BEGIN, GPI_CTL_STOPPED },
        { END, 0 },
        { BEGIN, 0 },
        { BEGIN, 0 },
        { END, 0 },
        { ASK, GPI_CTL_CONTINUED },
        { ASK, 0 },
        { END, 0 },
        { BEGIN, GPI_CTL_STOPPED },
        { ASK, 0 },
        { BEGIN, 0 },
        { ASK, 0 },
        { END, GPI_CTL_CONTINUED },
        { END, 0 },
        { BEGIN, GPI_CTL_STOPPED },
        { END, 0 },
        { BEGIN, 0 },
        { ASK, 0 },
        { END, GPI_CTL_CONTINUED },
    };
    struct gpi_stops s;

    gpi_stops_reset(&s, GPI_NEVER);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        T_EQ(list[i].event == BEGIN ? gpi_stops_begin(&s, GPI_S)
             : list[i].event == END ? gpi_stops_end(&s)
                                    : gpi_stops_awaited(&s),
             list[i].word);
}
