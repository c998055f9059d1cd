/* SPDX-License-Identifier: MIT */
/*
 * work.h - random transactions of a store, of which the ledger keeps the results.
 *
 * The same seed does the same work, as long as the store returns the same.
 */
#ifndef T_WORK_H
#define T_WORK_H

#include "ledger.h"
#include "text.h"

enum { WORK_OPERATIONS = 16, WORK_KEPT = 60 /* ticks that ended tasks are kept */ };

struct work {
    struct gpq_store *store;
    const struct gpq_files *files;
    const char *results; /* the directory of result files */
    struct ledger *ledger;
    uint64_t seed, now, sent; /* sent: number of the last request */
    bool start_early;         /* starts commands before the commit of their claims (a control) */
    bool show;                /* dumps the state before each commit */
    struct text shown;        /* the view after the commit that was begun last */
    uint64_t done[WORK_OPERATIONS], refused[WORK_OPERATIONS];
};

/* Does one transaction of 1 to 8 operations.  Returns 0 if it was acknowledged, 1 if it was rolled
 * back, or the GPQ_E code with which the store failed. */
int work_transaction(struct work *w, struct gpq_error *e);
/* Sends the last acknowledged submit again and rolls back.  Returns 1 if the store knows it. */
int work_send_again(struct work *w, struct gpq_error *e);
/* Adds a task, claims it and completes it, with a commit after each. */
int work_one_task(struct work *w, struct gpq_error *e);
const char *work_name(unsigned operation);

#endif
