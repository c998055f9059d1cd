/* SPDX-License-Identifier: MIT */
/*
 * jobs_rig.h - files of jobs as tables: bytes in, and a transcript of the jobs out.
 *
 * A transcript has a line for each job and one for the end:
 *
 *     3 | /bin/sh | -c | echo 1 | name=a gpus=2 replace
 *     1 jobs, 2 comments
 *     EINVAL: line 4: ...
 */
#ifndef T_JOBS_RIG_H
#define T_JOBS_RIG_H

#include "queue/jobs/jobs.h"

struct jobs_case {
    enum gpq_jobs_format format;
    const char *command;  /* a template, with | between arguments; NULL: none */
    const char *texts[4]; /* templates of options: name, value, ... */
    const char *input;
    size_t size; /* 0: up to the NUL */
    const char *expected;
};

/* Returns the transcript of the file in pieces of this many bytes; the first piece has `first`.
 * To be freed. */
char *jobs_transcript(const struct jobs_case *c, size_t first, size_t piece);
/* Reads a file of `begin`, `size` bytes c and `end`, and returns as gpq_jobs_end. */
int jobs_read_long(const struct gpq_jobs_how *how, const char *begin, char c, size_t size,
                   const char *end, gpq_job_fn fn, void *user, struct gpq_error *e);
/* Checks the transcript of each case: read at once, and cut at each byte. */
void jobs_check(const struct jobs_case *cases, size_t n);

#endif
