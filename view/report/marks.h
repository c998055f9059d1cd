/* SPDX-License-Identifier: MIT */
/*
 * marks.h - bad ends in a lane: a tick at each dot that has some, and above it a glyph for each
 * outcome with its number.  Neighbours whose texts would overlap have one text together.
 *
 * The numbers of a lane add up to its bad ends; data-n of each text has their sum.         [V4]
 */
#ifndef GPV_MARKS_H
#define GPV_MARKS_H

#include "view/report/chart.h"

struct gpv_marks {
    unsigned dots;
    uint32_t (*dot)[GPV_OUTCOMES]; /* bad ends of each dot, by outcome */
};

/* 0, or -1 without memory. */
int gpv_marks_init(struct gpv_marks *m, unsigned dots);
void gpv_marks_fini(struct gpv_marks *m);
void gpv_marks_clear(struct gpv_marks *m);
static inline void gpv_marks_add(struct gpv_marks *m, unsigned dot, unsigned outcome)
{
    m->dot[dot][outcome]++;
}

/* Writes them, with the ticks between `y` and the lane. */
void gpv_marks_write(FILE *f, const struct gpv_marks *m, const struct gpv_chart *c, unsigned y);

#endif
