/* SPDX-License-Identifier: MIT */
/* batches.h - facts about each batch, and about the night as a whole. */
#ifndef GPV_BATCHES_H
#define GPV_BATCHES_H

#include "view/records.h"

struct gpv_batch_facts {
    uint64_t attempts;        /* with a number, of its own tasks */
    uint64_t ok, bad;         /* tasks, by the counts of its row */
    int64_t started, ended;   /* the first start and the last end of its own tasks; 0 = none */
    int64_t run_p50, run_p95; /* ns, of attempts that ended ok; -1 = none */
    int64_t wait_p50;         /* ns from ready to the first start; -1 = none */
    uint32_t class;           /* of its first attempt; GPV_NONE */
    uint32_t gpus;            /* of a task */
};

/* ret has an entry for each row of n->batches.  0, or -1 without memory. */
int gpv_batch_facts(const struct gpv_night *n, struct gpv_batch_facts *ret);

/* A worker boots in place of one that has ended: the text of the row begins with "restart". */
bool gpv_is_restart(const struct gpv_night *n, const struct gpv_tenancy *t);
/* A worker leaves in favour of another class: the text of the row begins with "evicted". */
bool gpv_is_eviction(const struct gpv_night *n, const struct gpv_tenancy *t);

struct gpv_night_facts {
    uint64_t attempts, tasks; /* with a number; rows of the night that are `last` */
    uint64_t ended_by[GPV_OUTCOMES]; /* rows by outcome: of attempts, and of tasks without one */
    uint64_t tasks_by[GPV_OUTCOMES]; /* tasks by outcome: rows that are `last` */
    uint64_t tasks_bad; /* tasks that have ended otherwise than ok; one that returned goes on */
    uint64_t waiting;   /* tasks that are ready or held, of each batch that has them */
    uint64_t bad;             /* ends that are bad: the sum of `bad` in findings.h */
    uint64_t restarts, evictions;
    int64_t p95;              /* by when 95 % of the ended tasks had ended; 0 = none */
    uint32_t last_batch;      /* index of the batch that ended last; GPV_NONE */
    int64_t ended;            /* the last end; 0 = none */
};

int gpv_night_facts(const struct gpv_night *n, struct gpv_night_facts *ret);

#endif
