/* SPDX-License-Identifier: MIT */
/*
 * log.h - reads a decision log: the file of option decision_log of a dispatcher, or of a Pool.
 *
 * The log has the facts and orders of the core, with numbers for devices, classes and tasks; its
 * comments have their names (docs/design/0022-decision-log.md).  A log of an earlier version has no
 * names: its devices are "device 0", its classes "class 1", and its times count from the start of
 * the machine.
 *
 *   batch     of each class, in the order of their first tasks; of a dispatcher without classes it
 *             is "tasks".  Tasks are numbered as they were submitted
 *   attempt   from `run` of its end.  An attempt without this number, since its worker was killed or
 *             died, began when the worker got the task, or ended the one before
 *   tenancy   boot and unload of workers, by the states of their slots
 *   out       devices that are out of use, and slots in backoff or given up
 *   reason    none: the log has no reasons
 *   life      from the first time of the log to the last one
 *
 * A log without the line "# end" goes on, or its program was killed: open rows are open at the
 * last time of the log.
 *
 * Reading is total, as in line.h: lines of an unknown kind or without sense count in `unknown`.
 */
#ifndef GPV_READ_LOG_H
#define GPV_READ_LOG_H

#include "view/records.h"

#define GPV_LOG_FIRST "# decision log" /* with which such a file begins */

struct gpv_log;

/* A reader into an empty night, which it borrows.  NULL: no memory. */
struct gpv_log *gpv_log_new(struct gpv_night *n);
void gpv_log_free(struct gpv_log *l);

/* Reads the lines of a text; the last one may lack its newline.  0, or -1 without memory. */
int gpv_log_read(struct gpv_log *l, const char *text, size_t size);

/* All lines are there: adds the rows that are still open.  gpv_night_end follows.  0, or -1 without
 * memory. */
int gpv_log_end(struct gpv_log *l);

#endif
