/* SPDX-License-Identifier: MIT */
/*
 * next.h - the commands to type next, for findings.
 *
 * Each command is there once.  Their order: start the agent that tasks wait for; read why tasks
 * failed, at most GPV_NEXT_READS of them; retry the tasks of each batch; look at GPUs that are out
 * of use; ask why a task waits.
 *
 * No text of a night is in a command but the name of a GPU, of letters and digits.
 */
#ifndef GPV_NEXT_H
#define GPV_NEXT_H

#include "view/night/findings.h"

enum gpv_step_kind {
    GPV_STEP_START = 1, /* no agent runs */
    GPV_STEP_READ,      /* the log of a task, or what stands in its way */
    GPV_STEP_RETRY,
    GPV_STEP_GPU,
    GPV_STEP_EXPLAIN
};

struct gpv_step {
    char command[GPV_FINDING_COMMAND]; /* "gpudispatch retry 15 --failed" */
    enum gpv_step_kind kind;
    const struct gpv_finding *finding; /* the first one that it is for */
    uint64_t n;                        /* tasks, or GPUs, that it is for */
};

enum { GPV_NEXT = 12, GPV_NEXT_READS = 4 };
struct gpv_next {
    struct gpv_step step[GPV_NEXT];
    size_t n;
    bool more; /* the list has no room for others, which the findings have */
};

/* The list points into the findings. */
void gpv_next_of(const struct gpv_night *n, const struct gpv_findings *f, struct gpv_next *ret);
/* "why 22 tasks of 15 rec-11 CRASHED signal 11": what a command is for. */
char *gpv_step_text(const struct gpv_night *n, const struct gpv_step *s, char *ret, size_t size);

/* Sets the command to type first for a finding that is complete otherwise; "": there is nothing to
 * do. */
void gpv_finding_command(const struct gpv_night *n, struct gpv_finding *f);

#endif
