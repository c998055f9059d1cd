/* SPDX-License-Identifier: MIT */
/* array.h - the numbers of `--array N-M`, `N-M:STEP` and `N-M%K`. */
#ifndef GPQ_JOBS_ARRAY_H
#define GPQ_JOBS_ARRAY_H

#include <stdint.h>

#include "queue/jobs/jobs.h"

/* The most tasks of an array. */
#define GPQ_ARRAY_MOST 1000000U

struct gpq_array {
    uint64_t first, last, step;
    uint32_t n;       /* how many numbers these are */
    uint32_t at_once; /* K: tasks that run at a time; 0 = no limit */
};

/* Errors: EINVAL. */
int gpq_array_read(const char *text, struct gpq_array *ret, struct gpq_error *e);
/* Calls fn for the job of each number, which is {} in the command and the texts of `how`.  The
 * line of these jobs is 0.  Returns 0, EINVAL, ENOMEM, or what fn returned. */
int gpq_array_jobs(const struct gpq_array *array, const struct gpq_jobs_how *how, gpq_job_fn fn,
                   void *user, struct gpq_error *e);

#endif
