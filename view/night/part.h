/* SPDX-License-Identifier: MIT */
/* part.h - a part of a night, as its records were at the end of the part. */
#ifndef GPV_PART_H
#define GPV_PART_H

#include "view/records.h"

/*
 * The rows from `from` to `to`, in a night of its own with the same texts, GPUs, classes, shapes
 * and sets.  A row that ended later goes on; an attempt that did so runs.
 *
 * The counts of batches are those at `to`, as far as records tell: later changes are undone.
 * Records do not tell when a task was made, held, or joined; a task between two attempts waits from
 * `ready` of the next one.  Before `ready` of its first one it waits for its turn, if its batch has
 * turns.  The first waiting task is the first one of those that have a row, or that of the end of
 * the night if it did not run; 0: none of them waits.  Batches that were made later are left out.
 * NULL: no memory.
 */
struct gpv_night *gpv_night_part(const struct gpv_night *n, int64_t from, int64_t to);

#endif
