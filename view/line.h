/* SPDX-License-Identifier: MIT */
/*
 * line.h - the form in which records are sent and kept: a line of text for each row.
 *
 * The agent sends such lines (request `records`), a closed store is printed as such lines, and a
 * file of them is a recording, which `gpudispatch report --from FILE` reads.  The page
 * docs/reference/records.md has them for other programs.
 *
 * A line is a word for its kind, and fields, each after one tab.  A field that does not apply is
 * empty.  Times are ns since 1970.  A text has "\t", "\n", "\\" and "\xHH" in place of a tab, a
 * newline, a backslash and other control characters.  Lists have commas between their items.
 *
 *   records   VERSION HOST SOURCE                             the first line
 *             SOURCE: "log" of a program without a queue
 *   gpu       NAME UUID INDEX MODEL PCI PROFILE PARENT
 *   class     NAME
 *   shape     ID CLASS GPUS TEXT
 *   batch     ID NAME MADE ENDED PRIORITY FLAGS TOTAL JOINED HELD READY RUNNING ENDS FIRST SHAPE TURN
 *             FLAGS: "open,held,turns"; ENDS: "ok=12,error=3"; FIRST, SHAPE: of its first waiting task;
 *             TURN: of HELD, tasks that wait for their turn
 *   attempt   TASK NUMBER SHAPE GPUS READY STARTED ENDED OUTCOME STATUS TEXT NAME
 *             TASK: "12.44"; GPUS: "gpu:0,gpu:1"; NUMBER 0: the task ended without an attempt
 *   tenancy   GPU KIND CLASS SINCE UNTIL TEXT
 *   out       GPU KIND SINCE UNTIL TEXT
 *   reason    SHAPE TASK KIND SINCE UNTIL TEXT
 *   life      KIND SINCE UNTIL TEXT
 *   left      BATCH TIME LEAST MOST                           ns; empty: unknown
 *   now       TIME                                            the last line
 *
 * A GPU is written as its UUID or its name, which have no comma.  GPUs, classes and shapes stand
 * before the rows that name them; one that was not there is added by its name, such as a GPU that
 * is gone.
 *
 * Reading is total.  A line of an unknown kind, or without sense, is counted in `unknown` of the
 * night and left out; fields behind the known ones are ignored.  So a reader of today reads the
 * lines of a later version, as far as it knows them.  [V9]
 */
#ifndef GPV_LINE_H
#define GPV_LINE_H

#include <stdio.h>

#include "view/records.h"

enum { GPV_LINES_VERSION = 1, GPV_LINE_MOST = 65536 /* bytes of a line; longer ones are left out */ };

/* Reads a line of `size` bytes without its newline.  0, or -1 without memory. */
int gpv_line_read(struct gpv_night *n, const char *line, size_t size);

/* Reads the lines of a text; the last one may lack its newline. */
int gpv_lines_read(struct gpv_night *n, const char *text, size_t size);

/* Keeps the text of a field, without its escapes and as UTF-8.  GPV_NONE: no memory. */
uint32_t gpv_line_keep(struct gpv_night *n, const char *field, size_t size);

/* ---- Writing: one field after the other ---- */

/* A line under construction.  It grows as needed; `failed` is set without memory. */
struct gpv_lines {
    char *text;
    size_t size, room;
    bool failed;
};

void gpv_lines_free(struct gpv_lines *l);
void gpv_line_begin(struct gpv_lines *l, const char *kind);
void gpv_line_text(struct gpv_lines *l, const char *text); /* NULL: empty */
void gpv_line_bytes(struct gpv_lines *l, const char *text, size_t size);
void gpv_line_number(struct gpv_lines *l, int64_t number);
void gpv_line_time(struct gpv_lines *l, uint64_t ns); /* 0: empty */
void gpv_line_task(struct gpv_lines *l, uint64_t task);
void gpv_line_flags(struct gpv_lines *l, bool open, bool held, bool at_once);
void gpv_line_end(struct gpv_lines *l);

/* All rows of a night, from `records` to `now`.  False: no memory. */
bool gpv_night_write(const struct gpv_night *n, struct gpv_lines *l);

#endif
