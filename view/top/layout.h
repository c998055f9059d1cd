/* SPDX-License-Identifier: MIT */
/* layout.h - which part has which lines of the screen. */
#ifndef GPV_LAYOUT_H
#define GPV_LAYOUT_H

#include "view/top/rows.h"

struct gpv_place {
    bool shown;
    int head;   /* line of its title; -1: it has none */
    int line;   /* its first row */
    int height; /* lines of rows, the last of which counts those that do not fit */
    struct gpv_rows rows;
};

struct gpv_layout {
    int header; /* lines */
    bool folded;
    struct gpv_place part[GPV_PARTS];
};

/* -1: no memory.  The caller frees in both cases. */
int gpv_layout_make(const struct gpv_top_state *t, const struct gpv_snapshot *s,
                    struct gpv_layout *ret);
void gpv_layout_free(struct gpv_layout *l);

/* The part needs no line for the count of rows that do not fit: its title has it, or promises the
 * last ones only. */
bool gpv_layout_counts_in_title(enum gpv_part part, const struct gpv_place *p);
/* Index of the first row of a part that is shown, so that the chosen one is; and how many are. */
size_t gpv_layout_first(const struct gpv_top_state *t, const struct gpv_snapshot *s,
                        enum gpv_part part, const struct gpv_place *p, size_t *ret_n);

#endif
