/* SPDX-License-Identifier: MIT */
/*
 * report.h - a night as one HTML file, for its owner in the morning.
 *
 * The file needs nothing else: no request to anywhere, which a policy in the file enforces.  Its
 * pictures are SVG.  Without scripts and without style sheets everything but hover, zoom and
 * search still reads; colours stand in attributes.
 *
 * Whatever a task, a class, a batch or a machine is called is text.  It makes no markup.    [V5]
 * Each bad end is a mark in the timeline, or is counted at one: the numbers at the marks add up to
 * the number of bad ends.                                                                  [V4]
 * Nothing is shown by colour alone: a class has a texture and a word, an outcome a glyph and a
 * word.                                                                                    [V7]
 */
#ifndef GPV_REPORT_H
#define GPV_REPORT_H

#include <stdio.h>

#include "view/records.h"

struct gpv_report_options {
    unsigned reload; /* the page loads itself again after so many s, until the night is over; 0:
                        never */
    bool all;        /* the attempts' table is there however many they are: without it the page leaves
                        it out above GPV_REPORT_ATTEMPTS, and says so */
};

enum { GPV_REPORT_ATTEMPTS = 200000 };

/* Where a night has more attempts, the page has names of tasks that ended badly only: it needs no
 * other ones. */
enum { GPV_REPORT_NAMES = 10000 };

/* Writes the page.  It may keep sets in the night.  0, or -1 without memory, or when a write to
 * `f` has failed; the caller flushes and closes it. */
int gpv_report_write(struct gpv_night *n, const struct gpv_report_options *o, FILE *f);

#endif
