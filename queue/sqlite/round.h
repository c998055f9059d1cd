/* SPDX-License-Identifier: MIT */
/* round.h - how a round of a task begins: its holds and its conditions. */
#ifndef GPQ_SQLITE_ROUND_H
#define GPQ_SQLITE_ROUND_H

#include "queue/sqlite/row.h"

/* The condition of --after that cannot be met, and how many are open. */
struct gpq_verdict {
    uint32_t unmet;
    uint64_t impossible; /* the source; 0 = none */
};

/* Sets holds and state of a task that is new, or whose round was opened; ends it SKIPPED. */
int gpq_round_begin(struct gpq_db *db, struct gpq_row *r, const struct gpq_policy *plan, bool held,
                    const struct gpq_verdict *v, uint64_t now, struct gpq_error *e);
/* Opens a new round of a task that is DONE: HELD, without holds, until gpq_round_place. */
int gpq_round_open(struct gpq_db *db, struct gpq_row *r, const struct gpq_policy *plan,
                   uint64_t now, struct gpq_error *e);
/* Judges its conditions anew, and writes the task. */
int gpq_round_place(struct gpq_db *db, struct gpq_row *r, const struct gpq_policy *plan, bool held,
                    uint64_t now, struct gpq_error *e);

#endif
