/* SPDX-License-Identifier: MIT */
/*
 * bound.h - the most that devices could have been busy with the jobs of a workload.
 *
 * From its arrival on a job that needs k devices for r seconds can have used k * min(r, t -
 * arrival) device-seconds by the time t (a share counts as that part of a device).  Groups of
 * devices that can hold a job are nested here, since they differ in memory alone: of g devices
 * that are the only ones for some jobs, no more than g are busy with these at a time.
 *
 * So all jobs are a flow: each arrival adds k to the rate for r seconds, the flow of the smallest
 * group passes a queue that lets g through at a time, what comes out joins the flow of the next
 * group before the queue of that one, and so on.  What has passed the last queue by the time t is
 * the bound: no schedule has more device-seconds done by t, since the work of each group until t
 * is at most that until an earlier s and g for each second from s to t.  It assumes that a job can
 * be cut in parts of any size, so a schedule does not reach it even if it holds nothing for a
 * head.
 */
#ifndef BENCH_SCHED_BOUND_H
#define BENCH_SCHED_BOUND_H

#include "jobs.h"

/* Returns the device-seconds until `until` ns; negative if there is no memory. */
double b_bound(const struct b_workload *w, const struct b_job *job, uint32_t n, uint64_t until);

#endif
