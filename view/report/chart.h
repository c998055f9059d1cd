/* SPDX-License-Identifier: MIT */
/* chart.h - pictures over the time of the night: their axis, and boxes in them. */
#ifndef GPV_CHART_H
#define GPV_CHART_H

#include <stdio.h>

#include "view/report/textures.h"

enum {
    GPV_CHART_WIDTH = 1100, /* dots; the browser scales them */
    GPV_CHART_RIGHT = 56    /* room for a number at the end of a lane */
};

struct gpv_chart {
    int64_t from, to;
    unsigned left, dots; /* where the time begins, and how many dots it has */
};

/* `labels`: characters of the longest text at the left of a lane. */
struct gpv_chart gpv_chart_of(const struct gpv_night *n, size_t labels);
/* Where a time is; one outside of the span is at its edge. */
double gpv_chart_x(const struct gpv_chart *c, int64_t time);
/* The dot of a time: 0 to dots - 1. */
unsigned gpv_chart_dot(const struct gpv_chart *c, int64_t time);
/* When a dot begins. */
int64_t gpv_chart_time(const struct gpv_chart *c, unsigned dot);

/* Begins a picture: a sentence for screen readers, its size, texts and lines of its axis. */
void gpv_chart_begin(FILE *f, const struct gpv_chart *c, const char *id, const char *sentence,
                     unsigned top, unsigned height);
void gpv_chart_end(FILE *f);
/* The line under a lane, its text at the left and its number at the right. */
void gpv_chart_lane(FILE *f, const struct gpv_chart *c, unsigned y, const char *label,
                    const char *number);
/* A note of a lane, if it fits between two dots.  False: it does not. */
bool gpv_chart_note(FILE *f, double from, double to, unsigned y, const char *text);

/* A filled area.  Boxes of a lane are written together, a path for each texture. */
struct gpv_box {
    float x, y, width, height;
    uint8_t texture;
};

struct gpv_boxes {
    GPV_LIST(struct gpv_box) list;
};

int gpv_box_add(struct gpv_boxes *b, double x, double y, double width, double height,
                enum gpv_texture texture);
void gpv_boxes_write(FILE *f, const struct gpv_boxes *b);

#endif
