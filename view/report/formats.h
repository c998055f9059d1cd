/* SPDX-License-Identifier: MIT */
/*
 * formats.h - a night as programs read it.
 *
 * Each function writes to a stream, whose error flag the caller checks.  They keep no numbers of
 * their own: view/night/ has them.  docs/reference/report-formats.md explains members and columns.
 */
#ifndef GPV_REPORT_FORMATS_H
#define GPV_REPORT_FORMATS_H

#include <stdio.h>

#include "view/records.h"

enum { GPV_REPORT_VERSION = 1 }; /* of the document */

/* The numbers of the report: one object on one line.  0, or -1 without memory. */
int gpv_report_json(struct gpv_night *n, FILE *f);

/* A row for each attempt, and for each task that ended without one, below a row of heads; of the
 * batches that the reader has named, if there are any.  Quoted
 * as RFC 4180 has it, but a line ends with \n, and no cell has a line of its own.  A spreadsheet
 * takes no cell for a formula.  [V5] */
void gpv_report_csv(const struct gpv_night *n, FILE *f);

/* A row for each task whose last row is an attempt that has ended, in the columns of GNU parallel;
 * of the same batches. */
void gpv_report_joblog(const struct gpv_night *n, FILE *f);

#endif
