/* SPDX-License-Identifier: MIT */
/* draw.h - the parts of the screen, each of which draws its title and its rows. */
#ifndef GPV_DRAW_H
#define GPV_DRAW_H

#include "view/top/layout.h"
#include "view/top/table.h"
#include "view/words.h"

struct gpv_drawing {
    const struct gpv_top_state *t;
    const struct gpv_snapshot *s;
    struct gpv_layout layout;
    struct gpv_screen *screen;
    uint32_t letters; /* of the histories that are drawn: bits (draw_history.c) */
};

/* draw_header.c: the first lines and the last one. */
void gpv_draw_header(struct gpv_drawing *d);
void gpv_draw_footer(struct gpv_drawing *d);
/* draw_gpus.c, draw_batches.c, draw_classes.c, draw_findings.c */
void gpv_draw_gpus(struct gpv_drawing *d);
void gpv_draw_batches(struct gpv_drawing *d);
void gpv_draw_classes(struct gpv_drawing *d);
void gpv_draw_ends(struct gpv_drawing *d);
void gpv_draw_findings(struct gpv_drawing *d);

/* draw_history.c: what the GPUs of a row did.  A width is so that each cell has the same whole number
 * of minutes; 0: there is no room.  The legend is in the empty line behind the GPUs, if there is
 * one, and has the letters that are there. */
int gpv_history_width(const struct gpv_top_state *t);
const char *gpv_history_title(const struct gpv_drawing *d, char ret[64]);
void gpv_draw_history(struct gpv_drawing *d, int line, size_t row, const struct gpv_column *c);
void gpv_draw_legend(struct gpv_drawing *d);

/* Calls fn for each row of the part that is shown, with its line, and marks the chosen one.
 * Behind them stands a count of the rows that do not fit. */
typedef void (*gpv_draw_row_fn)(struct gpv_drawing *d, int line, size_t row,
                                const struct gpv_column *c);
void gpv_draw_rows(struct gpv_drawing *d, enum gpv_part part, const struct gpv_column *c, int n,
                   gpv_draw_row_fn fn);

/* How many of the part are not in its rows `from` to `to`. */
uint64_t gpv_draw_left_out(const struct gpv_drawing *d, enum gpv_part part, size_t from, size_t to);

/* "49-58 min", "2h42-3h59", "2h42+", "unknown": a range of ns, -1 for an unknown end, that fits
 * into 10 cells. */
char *gpv_left_text(int64_t least, int64_t most, char ret[GPV_WORD]);
/* The time that something goes on at t->now; "" if its begin is not known. */
char *gpv_draw_since(const struct gpv_drawing *d, int64_t since, char ret[GPV_WORD]);

#endif
