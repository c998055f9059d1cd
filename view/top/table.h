/* SPDX-License-Identifier: MIT */
/* table.h - columns of a part, as wide as the screen has room. */
#ifndef GPV_TABLE_H
#define GPV_TABLE_H

#include "view/top/screen.h"

enum { GPV_REST = -1, GPV_TABLE_COLUMNS = 12 };

struct gpv_column {
    const char *title;
    int width; /* 0: it is left out; GPV_REST: the rest of the line */
    bool right;
    int at; /* set by gpv_table_fit */
};

/* Gives each column its place, with a space between two of them. */
void gpv_table_fit(struct gpv_column *c, int n, int columns);
void gpv_table_head(struct gpv_screen *s, int line, const struct gpv_column *c, int n);
/* NULL: nothing. */
void gpv_table_put(struct gpv_screen *s, int line, const struct gpv_column *c,
                   enum gpv_style style, const char *text);
/* From one column to the end of another one. */
void gpv_table_span(struct gpv_screen *s, int line, const struct gpv_column *from,
                    const struct gpv_column *to, enum gpv_style style, const char *text);

#endif
