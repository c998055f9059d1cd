/* SPDX-License-Identifier: MIT */
#include "goals.h"

#include <math.h>
#include <string.h>

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

void b_goals_print_table(FILE *out, const struct b_goals *list, const double *figures)
{
    (void)fprintf(out, "%-33s %9s %-7s %9s %-4s %s\n", "key", "value", "unit", "goal", "met",
                  "what");
    for (unsigned i = 0; i < list->n; i++)
        print_row(out, &list->rows[i], figures[i]);
}

void b_goals_print_number(FILE *out, int indent, const char *key, double value)
{
    if (isfinite(value))
        (void)fprintf(out, ",\n%*s\"%s\": %.6g", indent, "", key, value);
    else
        (void)fprintf(out, ",\n%*s\"%s\": null", indent, "", key);
}

/* Prints `,\n  "name": {KEY: text, ...}` with a unit or a goal of each row. */
static void print_units(FILE *out, const struct b_goals *list)
{
    (void)fprintf(out, ",\n  \"units\": {");
    for (unsigned i = 0; i < list->n; i++)
        (void)fprintf(out, "%s\n    \"%s\": \"%s\"", i ? "," : "", list->rows[i].name,
                      list->rows[i].unit);
    (void)fprintf(out, "\n  }");
}

static void print_goals(FILE *out, const struct b_goals *list)
{
    const char *comma = "";

    (void)fprintf(out, ",\n  \"goals\": {");
    for (unsigned i = 0; i < list->n; i++) {
        const struct b_key_info *row = &list->rows[i];

        if (row->judge == B_ANY)
            continue;
        (void)fprintf(out, "%s\n    \"%s\": \"%s %.6g\"", comma, row->name,
                      row->judge == B_AT_MOST ? "<=" : ">=", row->goal);
        comma = ",";
    }
    (void)fprintf(out, "\n  }");
}

static void print_missed(FILE *out, const struct b_goals *list, const double *figures)
{
    const char *comma = "";

    (void)fprintf(out, ",\n  \"missed\": [");
    for (unsigned i = 0; i < list->n; i++) {
        if (strcmp(verdict(&list->rows[i], figures[i]), "no") != 0)
            continue;
        (void)fprintf(out, "%s\"%s\"", comma, list->rows[i].name);
        comma = ", ";
    }
    (void)fprintf(out, "]");
}

void b_goals_print_json(FILE *out, const struct b_goals *list, const double *figures)
{
    for (unsigned i = 0; i < list->n; i++)
        b_goals_print_number(out, 2, list->rows[i].name, figures[i]);
    print_units(out, list);
    print_goals(out, list);
    print_missed(out, list, figures);
}
