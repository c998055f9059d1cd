/* SPDX-License-Identifier: MIT */
/* rows.h - nights as scripts: record lines that one can read. */
#ifndef T_VIEW_ROWS_H
#define T_VIEW_ROWS_H

#include "view/records.h"

/* Hours, minutes and seconds after the begin of a night. */
#define T_BEGIN (INT64_C(1700000000) * 1000000000)
#define T_AT(hours, minutes, seconds) \
    (T_BEGIN + INT64_C(1000000000) * (3600 * (hours) + 60 * (minutes) + (seconds)))

/* Reads lines as view/line.h has them, with a space for a tab, '-' for an empty field and '_' for
 * a space; "@1:07" and "@1:07:30" are such times.  Each must be known.  The caller frees the
 * night. */
struct gpv_night *t_night(const char *rows);
/* The same within limits; 0 for none. */
struct gpv_night *t_night_within(const char *rows, int64_t from, int64_t to);

/* "1:07" or "1:07:30" of such a time. */
char *t_clock(int64_t time, char ret[32]);

/* A text that grows by pieces. */
struct t_script {
    char text[65536];
    size_t size;
};
__attribute__((format(printf, 2, 3))) void t_script_add(struct t_script *s, const char *format,
                                                        ...);

#endif
