/* SPDX-License-Identifier: MIT */
/*
 * plan.h - the command that a runner is to run, from the agent to the runner.
 *
 * Texts that each end with a NUL byte, "key=value", in a fixed order.  The value of a list is the
 * number of its items, which follow.  The agent writes it to a memfd.
 */
#ifndef GPQ_RUNNER_PLAN_H
#define GPQ_RUNNER_PLAN_H

#include <stddef.h>

#include "queue/runner/run.h"

/* The kernel takes 6 MiB of arguments and environment at most (execve(2)). */
#define GPQ_PLAN_MOST ((size_t)16 << 20)
/* Items of `variables`, and of `defaults`. */
enum { GPQ_PLAN_VARIABLES = 256 };

struct gpq_plan {
    struct gpq_run_id id;
    const char *cwd;    /* of the command, absolute */
    const char *out;    /* $GPUDISPATCH_OUT: work/ID.ATTEMPT, absolute (out.h); NULL = none */
    const char *log;    /* absolute, or relative to the state directory */
    const char *key;    /* $GPUDISPATCH_KEY; NULL = none */
    uint64_t log_limit; /* bytes; 0 = no limit */
    uint64_t descriptors; /* soft RLIMIT_NOFILE of the command; 0 = that of the runner */
    uint32_t port;      /* $GPUDISPATCH_PORT; 0 = none */
    /* Each ends with a NULL pointer.  A NULL list is an empty one. */
    char **argv;        /* without a slash in its first item, that is searched in PATH */
    char **environment; /* of the submit, whole */
    char **variables;   /* "NAME=value", in place of those in `environment` */
    char **defaults;    /* "NAME=value", where `environment` and `variables` have none */
    char **words;       /* that may name files, for the stamp (stamp.h) */
    void *memory;       /* of a plan that was read */
};

/* Encodes it; the caller frees *ret_data.  0, -EINVAL, -E2BIG or -ENOMEM. */
int gpq_plan_write(const struct gpq_plan *p, void **ret_data, size_t *ret_size);

/* Decodes any bytes.  -EBADMSG: they are no plan; -EPROTONOSUPPORT: a plan of another version;
 * -ENOMEM. */
int gpq_plan_read(const void *data, size_t size, struct gpq_plan *ret);
void gpq_plan_free(struct gpq_plan *p);

/*
 * Makes the environment of the command: GPUDISPATCH_RUN, _TASK, _ATTEMPT, _KEY, _OUT and _PORT,
 * then `variables`, `environment` and `defaults`.  One block, which the caller frees; it refers to
 * the texts of the plan.  NULL: no memory.
 */
char **gpq_plan_environment(const struct gpq_plan *p);

#endif
