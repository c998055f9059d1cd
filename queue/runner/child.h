/* SPDX-License-Identifier: MIT */
/* child.h - the command's process, from its fork to its program. */
#ifndef GPQ_RUNNER_CHILD_H
#define GPQ_RUNNER_CHILD_H

#include "queue/runner/plan.h"

/* The process's plan and descriptors; all of these are close-on-exec. */
struct gpq_child {
    const struct gpq_plan *plan;
    char **environment;
    int null;        /* /dev/null, for stdin */
    int output;      /* for stdout and stderr */
    int released;    /* a pipe: one byte releases the command, its end ends the process */
    int not_ours[2]; /* to close at once: the record with its lock, the other end of `released` */
    int failures;    /* a pipe: takes one struct gpq_child_failure; nothing after an exec */
};

struct gpq_child_failure {
    int32_t step; /* enum gpq_run_step */
    int32_t error;
};

/* Makes its own session, waits for the release and executes the program. */
_Noreturn void gpq_child_run(const struct gpq_child *c);

#endif
