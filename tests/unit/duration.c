/* SPDX-License-Identifier: MIT */
/* duration.c - a time in a text: at least two of its digits show. */
#include "harness.h"

#include <stdint.h>

#include "base/duration.h"

T_CASE(units_and_digits)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } rows[] = {
        { 0, "0 ns" },
        { 1, "1 ns" },
        { 999, "999 ns" },
        { T_US(10) - 1, "9999 ns" },
        { T_US(10), "0.010 ms" },
        { T_US(10) + 499, "0.010 ms" },
        { T_US(10) + 500, "0.011 ms" },
        { T_US(1500), "1.500 ms" },
        { T_MS(10) - 1, "10.000 ms" },
        { T_MS(10), "0.010 s" },
        { T_MS(60), "0.060 s" },
        { T_MS(10) + T_US(500), "0.011 s" },
        { T_S(30), "30.000 s" },
        { T_S(3600) + T_MS(1), "3600.001 s" },
        { UINT64_MAX, "18446744073.710 s" },
    };
    char text[GPI_DURATION_SIZE];

    for (size_t i = 0; i < T_LENGTH(rows); i++)
        T_TEXT(gpi_duration_text(text, rows[i].ns), rows[i].text);
}

T_CASE(of_what_still_runs)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } rows[] = {
        { 0, "0.000 s" },
        { T_MS(250) + 999, "0.250 s" },
        { T_S(1), "1.0 s" },
        { T_MS(2599), "2.5 s" },
        { T_S(10) - 1, "9.9 s" },
        { T_MS(12900), "12 s" },
    };
    char text[GPI_DURATION_SIZE];

    for (size_t i = 0; i < T_LENGTH(rows); i++)
        T_TEXT(gpi_duration_round(text, rows[i].ns), rows[i].text);
}
