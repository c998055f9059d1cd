/* SPDX-License-Identifier: MIT */
/* moment.h - the snapshot that an agent would have made at a time of a night. */
#ifndef GPV_MOMENT_H
#define GPV_MOMENT_H

#include "view/night/findings.h"
#include "view/now/snapshot.h"

/* Fills *ret, which gpv_snapshot_free frees, with the state at `time`, or at the nearest time of
 * the span.  All rows are there.  Limits of tasks, readings of GPUs and the version of the agent
 * are not recorded, and unknown; so are the facts that gpv_night_part does not know.  Time left is
 * unknown (-1).  -1: no memory; then *ret is empty. */
int gpv_moment(struct gpv_night *n, int64_t time, struct gpv_snapshot *ret);

/* ---- Rows that an agent makes in the same way ---- */

/* "quarantined: XID 48", "drained": why a GPU is out of use. */
void gpv_now_out(char *to, size_t size, uint32_t kind, const char *text);
/* The task for which a GPU is kept, with which the text of the row begins: "14.12: held for 2 GPUs".
 * 0: the text begins with none. */
uint64_t gpv_now_kept_for(const char *text);
/* A finding of a night in words. */
void gpv_now_finding_of(const struct gpv_night *n, const struct gpv_finding *f,
                        struct gpv_now_finding *ret);
/* How many different tasks the bad ends are of, in findings with an end after a time.  A finding has
 * 8 ranges of tasks: a task beyond them counts in each finding that it is in.  -1: no memory. */
int gpv_now_bad_tasks(const struct gpv_findings *f, int64_t after, uint64_t *ret);
/* Newest first. */
void gpv_now_sort_findings(struct gpv_now_finding *finding, size_t n);
/* Ends in the last hour, or since the batch was made, as a rate; it was made a minute ago at
 * least. */
double gpv_now_per_hour(uint64_t ends, int64_t made, int64_t now);

#endif
