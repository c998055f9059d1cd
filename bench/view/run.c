/* SPDX-License-Identifier: MIT */
/* run.c - gpudispatch-bench --view: its options, and its cells one after the other. */
#include "run.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <gpudispatch/gpudispatch.h>

#include "../measure.h"
#include "rows.h"

#define ROW_X(name, unit, judge, goal, text) { #name, unit, judge, goal, text },
static const struct b_key_info rows[] = { BV_ROWS(ROW_X) };
#undef ROW_X

static int usage(FILE *out, int code)
{
    (void)fputs(
        "usage: gpudispatch-bench --view [--json] [--quick]\n"
        "Measures the views of a night: the verbs report and trace with a made-up recording,\n"
        "and the present moment.\n"
        "Exit status: 0 measured, 1 a cell failed, 2 wrong usage.\n",
        out);
    return code;
}

static void print(bool json, const double *figures, double seconds)
{
    const struct b_goals goals = { rows, BV_ROW_COUNT };

    if (json) {
        (void)printf("{\n  \"version\": \"%s\",\n  \"few\": %u,\n  \"many\": %u", gpud_version(),
                     bv_few(), bv_many());
        b_goals_print_number(stdout, 2, "seconds", seconds);
        b_goals_print_json(stdout, &goals, figures);
        (void)printf(",\n  \"quick\": %s\n}\n", b_effort(0, 1) ? "true" : "false");
        return;
    }
    (void)printf("gpudispatch %s, views of nights of %u and %u attempts, %.1f s%s\n\n",
                 gpud_version(), bv_few(), bv_many(), seconds,
                 b_effort(0, 1) ? ", --quick: smaller nights, no figures to keep" : "");
    b_goals_print_table(stdout, &goals, figures);
}

int bv_run(int argc, char **argv)
{
    const uint64_t begun = b_now();
    double figures[BV_ROW_COUNT];
    struct b_scratch files;
    bool json = false;
    int rc;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return usage(stdout, 0);
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            b_effort_quick();
        else if (strcmp(argv[i], "--view") != 0)
            return usage(stderr, 2);
    }
    for (unsigned i = 0; i < BV_ROW_COUNT; i++)
        figures[i] = NAN;
    if (b_scratch_open(&files))
        return 1;
    rc = bv_verbs(&files, figures) | bv_present(figures);
    print(json, figures, (double)(b_now() - begun) / 1e9);
    b_scratch_close(&files);
    return rc ? 1 : 0;
}
