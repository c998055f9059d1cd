/* SPDX-License-Identifier: MIT */
/* rows.h - nights as scripts: record lines that one can read. */
#ifndef T_VIEW_ROWS_H
#define T_VIEW_ROWS_H

#include "view/records.h"

/* Reads lines as view/line.h has them, with a space for a tab, '-' for an empty field and '_' for
 * a space.  Each must be known.  The caller frees the night. */
struct gpv_night *t_night(const char *rows);
/* The same within limits; 0 for none. */
struct gpv_night *t_night_within(const char *rows, int64_t from, int64_t to);

/* A text that grows by pieces. */
struct t_script {
    char text[16384];
    size_t size;
};
__attribute__((format(printf, 2, 3))) void t_script_add(struct t_script *s, const char *format,
                                                        ...);

#endif
