/* SPDX-License-Identifier: MIT */
/* words.h - numbers, times and ids, as all views show them. */
#ifndef GPV_WORDS_H
#define GPV_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GPV_WORD = 40 };

/* "45 s", "12 min", "3 h 41", "2 d 4 h"; below 10 s "3.2 s", below 1 s "15 ms". */
char *gpv_span(int64_t ns, char ret[GPV_WORD]);
/* Local time "02:17", with seconds "02:17:00"; "29 Nov 02:17" where the night is longer than a
 * day. */
char *gpv_clock(int64_t time, char ret[GPV_WORD]);
char *gpv_clock_seconds(int64_t time, char ret[GPV_WORD]);
char *gpv_date_clock(int64_t time, char ret[GPV_WORD]);
/* Local time less UTC, in ns. */
int64_t gpv_zone(int64_t time);
/* "13 November 2026" */
char *gpv_date(int64_t time, char ret[GPV_WORD]);
/* "1,200" */
char *gpv_count(uint64_t n, char ret[GPV_WORD]);
/* "84 %", "0.4 %", "<0.1 %", "0 %": a part of a whole. */
char *gpv_percent(double part, double whole, char ret[GPV_WORD]);
/* "12.44" */
char *gpv_task_id(uint64_t task, char ret[GPV_WORD]);

/* A text of parts; " ..." stands for those for which it had no room. */
struct gpv_cut {
    char *to;
    size_t size, used;
    bool full;
};
struct gpv_cut gpv_cut(char *to, size_t size); /* the empty text */
void gpv_cut_add(struct gpv_cut *c, const char *separator, const char *text);

/* "0-2, 4": numbers in ascending order as ranges, cut with " ..." to `size`. */
char *gpv_ranges(const uint16_t *number, size_t n, char *ret, size_t size);

#endif
