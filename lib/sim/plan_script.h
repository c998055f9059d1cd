/* SPDX-License-Identifier: MIT */
/*
 * plan_script.h - feeds the facts of a script to a plan and to the slow model.  It compares the
 * plan's actions with those in the script, or rewrites the script.
 *
 * A plan script, NAME.plan, has a fact per line (fact.h).  The line ---- separates a fact from its
 * actions, and a blank line ends them.  Several facts may form one group: the actions of all facts
 * follow the last one.  # begins a comment, on a line of its own.
 */
#ifndef GPI_SIM_PLAN_SCRIPT_H
#define GPI_SIM_PLAN_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/fact_read.h"
#include "sim/trial.h"

#define GPI_PLAN_SHOWN_SIZE 256u /* more than the longest action has */

struct gpi_plan_script {
    /* Set by the caller. */
    FILE *rewritten; /* receives the text with the current actions, or NULL */
    bool alone;      /* without the slow model */
    bool any;        /* only the slow model judges: the actions may differ */
    /* Set by the replay. */
    uint32_t line; /* from 1: the line that the replay reads; at the end, that of the result */
    uint64_t facts;
    char wanted[GPI_PLAN_SHOWN_SIZE], got[GPI_PLAN_SHOWN_SIZE]; /* DIFFERS: one may be "nothing" */
    char error[GPI_FACT_ERROR_SIZE];                            /* BAD, BROKEN */
};

enum gpi_plan_script_result {
    GPI_PLAN_SCRIPT_EQUAL,
    GPI_PLAN_SCRIPT_DIFFERS, /* the first difference; a rewrite continues after it */
    GPI_PLAN_SCRIPT_BAD,     /* no plan script, or a fact that no caller may feed */
    GPI_PLAN_SCRIPT_BROKEN   /* the slow model objects */
};

enum gpi_plan_script_result gpi_plan_script(struct gpi_plan_script *s, const char *text,
                                            size_t size);

/* Writes the fact and, behind it, the actions that the caller adds. */
struct gpi_plan_log {
    FILE *out;
    bool ruled; /* the last fact has an action */
};
void gpi_plan_log_fact(struct gpi_plan_log *l, const struct gpi_fact *f);
void gpi_plan_log_action(struct gpi_plan_log *l, const struct gpi_plan_action *a);

#endif
