/* SPDX-License-Identifier: MIT */
/* words.c - numbers and times in words. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "view/words.h"

#define MS INT64_C(1000000)
#define S (1000 * MS)
#define MIN (60 * S)
#define H (60 * MIN)

T_CASE(spans)
{
    static const struct {
        int64_t ns;
        const char *text;
    } spans[] = {
        { INT64_MIN, "0 ms" },
        { -1, "0 ms" },
        { 0, "0 ms" },
        { MS - 1, "0 ms" },
        { 15 * MS, "15 ms" },
        { S - 1, "999 ms" },
        { S, "1.0 s" },
        { 3 * S + 299 * MS, "3.2 s" },
        { 10 * S - 1, "9.9 s" },
        { 10 * S, "10 s" },
        { 100 * S - 1, "99 s" },
        { 100 * S, "1 min" },
        { 12 * MIN, "12 min" },
        { 90 * MIN - 1, "89 min" },
        { 90 * MIN, "1 h 30" },
        { 3 * H + 41 * MIN, "3 h 41" },
        { 48 * H - 1, "47 h 59" },
        { 48 * H, "2 d 0 h" },
        { 52 * H, "2 d 4 h" },
        { INT64_MAX, "106751 d 23 h" },
    };
    char word[GPV_WORD];

    for (size_t i = 0; i < T_LENGTH(spans); i++)
        T_TEXT(gpv_span(spans[i].ns, word), spans[i].text);
}

T_CASE(clocks)
{
    const int64_t time = INT64_C(1763000220) * S + 5; /* 13 November 2025 02:17 UTC */
    char word[GPV_WORD];
    const char *zone = getenv("TZ");
    char *before = zone ? strdup(zone) : NULL;

    T_EQ(setenv("TZ", "UTC0", 1), 0);
    tzset();
    T_TEXT(gpv_clock(time, word), "02:17");
    T_TEXT(gpv_clock_seconds(time, word), "02:17:00");
    T_TEXT(gpv_date_clock(time, word), "13 Nov 02:17");
    T_TEXT(gpv_date(time, word), "13 November 2025");
    T_TEXT(gpv_date(time + 180 * 24 * H, word), "12 May 2026");
    T_TEXT(gpv_clock(INT64_MAX, word), "23:47");
    T_TEXT(gpv_date(INT64_MAX, word), "11 April 2262");
    T_EQ(setenv("TZ", "XXX-5:45", 1), 0);
    tzset();
    T_TEXT(gpv_clock(time, word), "08:02");
    T_TEXT(gpv_date_clock(time + 16 * H, word), "14 Nov 00:02");
    T_EQ(before ? setenv("TZ", before, 1) : unsetenv("TZ"), 0);
    tzset();
    free(before);
}

T_CASE(counts)
{
    char word[GPV_WORD];

    T_TEXT(gpv_count(0, word), "0");
    T_TEXT(gpv_count(999, word), "999");
    T_TEXT(gpv_count(1200, word), "1,200");
    T_TEXT(gpv_count(100000, word), "100,000");
    T_TEXT(gpv_count(UINT64_MAX, word), "18,446,744,073,709,551,615");
}

T_CASE(percents)
{
    char word[GPV_WORD];

    T_TEXT(gpv_percent(84, 100, word), "84 %");
    T_TEXT(gpv_percent(0.4, 100, word), "0.4 %");
    T_TEXT(gpv_percent(1, 1e6, word), "<0.1 %");
    T_TEXT(gpv_percent(0, 100, word), "0 %");
    T_TEXT(gpv_percent(0, 0, word), "0 %");
    T_TEXT(gpv_percent(1, 0, word), "0 %");
    T_TEXT(gpv_percent(3, 3, word), "100 %");
}

T_CASE(ids)
{
    char word[GPV_WORD];

    T_TEXT(gpv_task_id(UINT64_C(12) << 32 | 44, word), "12.44");
    T_TEXT(gpv_task_id(UINT64_MAX, word), "4294967295.4294967295");
}

T_CASE(ranges)
{
    static const uint16_t four[] = { 0, 1, 2, 4 }, ends[] = { 65534, 65535 };
    uint16_t many[200];
    char text[64];

    T_TEXT(gpv_ranges(NULL, 0, text, sizeof(text)), "");
    T_TEXT(gpv_ranges(four, 1, text, sizeof(text)), "0");
    T_TEXT(gpv_ranges(four, 4, text, sizeof(text)), "0-2, 4");
    T_TEXT(gpv_ranges(ends, 2, text, sizeof(text)), "65534-65535");
    for (uint16_t i = 0; i < 200; i++)
        many[i] = (uint16_t)(3 * i);
    T_TEXT(gpv_ranges(many, 200, text, 20), "0, 3, 6, 9, 12 ...");
    /* At each size it is a beginning of the list, and ends with " ...". */
    for (size_t size = 5; size < sizeof(text); size++) {
        memset(text, 'x', sizeof(text));
        (void)gpv_ranges(many, 200, text, size);
        T_CMP(strlen(text), <, size);
        T_TEXT(text + strlen(text) - 4, " ...");
    }
}
