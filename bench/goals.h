/* SPDX-License-Identifier: MIT */
/* goals.h - prints plain figures beside their goals, for --sched and --queue. */
#ifndef BENCH_GOALS_H
#define BENCH_GOALS_H

#include <stdio.h>

#include "report.h"

/* A list of n keys, and a figure for each of them: NaN where there is none. */
struct b_goals {
    const struct b_key_info *rows;
    unsigned n;
};

/* Prints the rows as a table. */
void b_goals_print_table(FILE *out, const struct b_goals *list, const double *figures);

/* Prints the rows, their units, their goals and the missed ones as members of a JSON object, with
 * a comma before each. */
void b_goals_print_json(FILE *out, const struct b_goals *list, const double *figures);

/* Prints `,\n  "key": number`; null for NaN.  `indent` counts spaces. */
void b_goals_print_number(FILE *out, int indent, const char *key, double value);

#endif
