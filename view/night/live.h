/* SPDX-License-Identifier: MIT */
/*
 * live.h - the uses of GPUs while they happen: totals since a time, and a ring of the last
 * minutes.
 *
 * The owner reports each begin and end.  Time is charged by arithmetic at these reports and at
 * each call that reads it: there is no timer.                                                 [V1]
 * The rules are those of use.h, by the same function.  An attempt that runs counts as work until
 * it ends; if it ends badly, its time moves from OK to LOST, in the totals and in the ring, where
 * no other attempt worked beside it.  So the totals equal gpv_use_sum of the records.    [V3]
 *
 * A report may come late: each GPU keeps the last 16 of them, and one with an earlier time than
 * those before it has its place by its time.  A time before all of these counts as the earliest
 * possible one, so that no clock makes a length negative.
 *
 * 16 KiB for each GPU, and 2 KiB for each attempt that runs.
 */
#ifndef GPV_LIVE_H
#define GPV_LIVE_H

#include "view/night/use.h"

enum { GPV_MINUTES = 240 };

struct gpv_live;

/* For n GPUs, all idle at `now`, with a history before it that is unknown.  NULL: no memory. */
struct gpv_live *gpv_live_new(uint32_t gpus, int64_t now);
void gpv_live_free(struct gpv_live *l);
/* More GPUs; their time before `now` is unknown.  -1: no memory. */
int gpv_live_grow(struct gpv_live *l, uint32_t gpus, int64_t now);

/* Fills ring and totals from records up to n->to, as after a restart: GPU i is that of n->gpus, and
 * rows without an end go on.  The totals begin at n->from.  -1: no memory, and some GPUs are not
 * filled. */
int gpv_live_fill(struct gpv_live *l, const struct gpv_night *n);

/* The totals begin anew at `now`, as at the start of an agent; the ring stays. */
void gpv_live_restart(struct gpv_live *l, int64_t now);

/* Something begins (+1) or ends (-1) on a GPU. */
void gpv_live_loading(struct gpv_live *l, uint32_t gpu, int change, int64_t now);
void gpv_live_kept(struct gpv_live *l, uint32_t gpu, int change, int64_t now);
void gpv_live_out(struct gpv_live *l, uint32_t gpu, int change, int64_t now);
/* A task waits, of any shape; or none. */
void gpv_live_waits(struct gpv_live *l, bool waits, int64_t now);

/* An attempt starts on a GPU: -1 without memory, and then it does not count. */
int gpv_live_start(struct gpv_live *l, uint32_t gpu, uint64_t task, int64_t start);
/* It ends, well or badly; an unknown one is left alone. */
void gpv_live_end(struct gpv_live *l, uint32_t gpu, uint64_t task, int64_t end, bool ok);

/* The totals up to `now`; and the minutes of the ring, as the wall clock begins them, oldest first,
 * of which the last one is that of `now`: ns by use, whose sum is a minute but in the last one. */
void gpv_live_totals(struct gpv_live *l, uint32_t gpu, int64_t now, struct gpv_uses *ret);
void gpv_live_ring(struct gpv_live *l, uint32_t gpu, int64_t now,
                   struct gpv_uses ret[GPV_MINUTES]);
/* When the totals began. */
int64_t gpv_live_since(const struct gpv_live *l);

#endif
