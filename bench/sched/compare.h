/* SPDX-License-Identifier: MIT */
/* compare.h - each workload with each value of `passing`, in one table. */
#ifndef BENCH_SCHED_COMPARE_H
#define BENCH_SCHED_COMPARE_H

#include <stdio.h>

#include "day.h"

#define B_WAYS 5u

struct b_comparison {
    uint32_t jobs;             /* of each workload */
    double load;               /* 0: 0.85 to 0.95 */
    double bound[B_WORKLOADS]; /* device-seconds */
    struct b_day day[B_WORKLOADS][B_WAYS];
};

/* Returns: 0, or -1 after a complaint.  free: in either case. */
int b_comparison_make(struct b_comparison *c, uint32_t jobs, double load);
void b_comparison_free(struct b_comparison *c);

/* Writes the rows about workloads. */
void b_comparison_rows(const struct b_comparison *c, double *figures);

/* Prints a table for each workload; or a member "workloads" of a JSON object, with a comma before
 * it. */
void b_comparison_print_table(FILE *out, const struct b_comparison *c);
void b_comparison_print_json(FILE *out, const struct b_comparison *c);

#endif
