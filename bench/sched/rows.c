/* SPDX-License-Identifier: MIT */
/* rows.c - prints the figures of --sched beside their goals. */
#include "rows.h"

#include <math.h>
#include <string.h>

#define ROW_X(name, unit, judge, goal, text) { #name, unit, judge, goal, text },
static const struct b_key_info rows[] = { B_SCHED_ROWS(ROW_X) };
#undef ROW_X

const struct b_key_info *b_sched_row(unsigned row)
{
    return &rows[row];
}

static const char *verdict(const struct b_key_info *row, double value)
{
    if (row->judge == B_ANY)
        return "";
    if (!isfinite(value))
        return "-";
    return (row->judge == B_AT_MOST ? value <= row->goal : value >= row->goal) ? "yes" : "no";
}

static void print_row(FILE *out, const struct b_key_info *row, double value)
{
    char goal[24] = "", text[24] = "-";

    if (row->judge != B_ANY)
        (void)snprintf(goal, sizeof goal, "%s %.5g",
                       row->judge == B_AT_MOST ? "<=" : ">=", row->goal);
    if (isfinite(value))
        (void)snprintf(text, sizeof text, "%.4g", value);
    (void)fprintf(out, "%-33s %9s %-7s %9s %-4s %s\n", row->name, text, row->unit, goal,
                  verdict(row, value), row->text);
}

void b_sched_print_table(FILE *out, const double *figures)
{
    (void)fprintf(out, "%-33s %9s %-7s %9s %-4s %s\n", "key", "value", "unit", "goal", "met",
                  "what");
    for (unsigned i = 0; i < B_SCHED_ROW_COUNT; i++)
        print_row(out, &rows[i], figures[i]);
}

void b_sched_print_number(FILE *out, int indent, const char *key, double value)
{
    if (isfinite(value))
        (void)fprintf(out, ",\n%*s\"%s\": %.6g", indent, "", key, value);
    else
        (void)fprintf(out, ",\n%*s\"%s\": null", indent, "", key);
}

/* Prints `,\n  "name": {KEY: text, ...}` with a unit or a goal of each row. */
static void print_units(FILE *out)
{
    (void)fprintf(out, ",\n  \"units\": {");
    for (unsigned i = 0; i < B_SCHED_ROW_COUNT; i++)
        (void)fprintf(out, "%s\n    \"%s\": \"%s\"", i ? "," : "", rows[i].name, rows[i].unit);
    (void)fprintf(out, "\n  }");
}

static void print_goals(FILE *out)
{
    const char *comma = "";

    (void)fprintf(out, ",\n  \"goals\": {");
    for (unsigned i = 0; i < B_SCHED_ROW_COUNT; i++) {
        if (rows[i].judge == B_ANY)
            continue;
        (void)fprintf(out, "%s\n    \"%s\": \"%s %.6g\"", comma, rows[i].name,
                      rows[i].judge == B_AT_MOST ? "<=" : ">=", rows[i].goal);
        comma = ",";
    }
    (void)fprintf(out, "\n  }");
}

static void print_missed(FILE *out, const double *figures)
{
    const char *comma = "";

    (void)fprintf(out, ",\n  \"missed\": [");
    for (unsigned i = 0; i < B_SCHED_ROW_COUNT; i++) {
        if (strcmp(verdict(&rows[i], figures[i]), "no") != 0)
            continue;
        (void)fprintf(out, "%s\"%s\"", comma, rows[i].name);
        comma = ", ";
    }
    (void)fprintf(out, "]");
}

void b_sched_print_json(FILE *out, const double *figures)
{
    for (unsigned i = 0; i < B_SCHED_ROW_COUNT; i++)
        b_sched_print_number(out, 2, rows[i].name, figures[i]);
    print_units(out);
    print_goals(out);
    print_missed(out, figures);
}
