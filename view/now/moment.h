/* SPDX-License-Identifier: MIT */
/* moment.h - the snapshot that an agent would have made at a time of a night. */
#ifndef GPV_MOMENT_H
#define GPV_MOMENT_H

#include "view/now/snapshot.h"

/* Fills *ret, which gpv_snapshot_free frees, with what was so at `time`.  Limits of tasks and
 * readings of GPUs are not recorded, and unknown.  -1: no memory. */
int gpv_moment(struct gpv_night *n, int64_t time, struct gpv_snapshot *ret);

#endif
