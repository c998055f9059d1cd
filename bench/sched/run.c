/* SPDX-License-Identifier: MIT */
/* run.c - gpudispatch-bench --sched: its options, and its cells one after the other. */
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gpudispatch/gpudispatch.h>

#include "../measure.h"
#include "compare.h"
#include "rows.h"

#define MOST_TASKS 10000000u
#define MOST_PERCENT 1000u
#define JOBS 20000u

static const char *const passings[] = { [GPI_PASS_LEARNED] = "learned",
                                        [GPI_PASS_APART] = "apart",
                                        [GPI_PASS_PROMISE] = "promise",
                                        [GPI_PASS_NAIVE] = "naive" };
#ifdef NDEBUG
static const bool asserts = false;
#else
static const bool asserts = true;
#endif
#define PASSINGS (sizeof passings / sizeof *passings)

static int usage(FILE *out, int code)
{
    (void)fputs("usage: gpudispatch-bench --sched [--json] [--quick] [--tasks N] [--passing NAME]\n"
                "                                  [--load PERCENT]\n"
                "Measures the scheduler's decisions, without devices and workers.\n"
                "  --tasks N       tasks that wait at first (1000000; 20000 with --quick)\n"
                "  --passing NAME  learned (default), apart, promise or naive\n"
                "  --load PERCENT  of the devices, in the workloads (a third each: 85, 90, 95)\n"
                "Exit status: 0 measured, 1 a cell failed, 2 wrong usage.\n",
                out);
    return code;
}

/* Returns false if it is no number from 1 to `most`. */
static bool read_number(const char *text, uint32_t most, uint32_t *ret)
{
    char *end;
    const unsigned long n = strtoul(text, &end, 10);

    *ret = (uint32_t)n;
    return text[0] >= '0' && text[0] <= '9' && !*end && n >= 1 && n <= most;
}

static bool read_passing(const char *text, enum gpi_passing *ret)
{
    for (unsigned i = 0; i < PASSINGS; i++)
        if (strcmp(text, passings[i]) == 0) {
            *ret = (enum gpi_passing)i;
            return true;
        }
    return false;
}

/* Returns: 0, 1 for --help, or -1. */
static int read_options(int argc, char **argv, struct b_sched_set *set)
{
    uint32_t percent = 0;
    bool good = true;

    *set = (struct b_sched_set){ .passing = GPI_PASS_LEARNED };
    for (int i = 1; i < argc && good; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return 1;
        if (strcmp(argv[i], "--json") == 0)
            set->json = 1;
        else if (strcmp(argv[i], "--quick") == 0)
            b_effort_quick();
        else if (strcmp(argv[i], "--tasks") == 0 && i + 1 < argc)
            good = read_number(argv[++i], MOST_TASKS, &set->tasks);
        else if (strcmp(argv[i], "--passing") == 0 && i + 1 < argc)
            good = read_passing(argv[++i], &set->passing);
        else if (strcmp(argv[i], "--load") == 0 && i + 1 < argc)
            good = read_number(argv[++i], MOST_PERCENT, &percent);
        else
            good = strcmp(argv[i], "--sched") == 0;
    }
    set->load = percent / 100.0;
    if (!set->tasks)
        set->tasks = (uint32_t)b_effort(1000000, 20000);
    return good ? 0 : -1;
}

static void print(const struct b_sched_set *set, const double *figures,
                  const struct b_comparison *c, double seconds)
{
    const char *passing = passings[set->passing];

    if (set->json) {
        (void)printf("{\n  \"version\": \"%s\",\n  \"tasks\": %u,\n  \"passing\": \"%s\"",
                     gpud_version(), set->tasks, passing);
        b_goals_print_number(stdout, 2, "seconds", seconds);
        b_goals_print_json(stdout, &b_sched_rows, figures);
        b_comparison_print_json(stdout, c);
        (void)printf(",\n  \"assertions\": %s,\n  \"quick\": %s\n}\n", asserts ? "true" : "false",
                     b_effort(0, 1) ? "true" : "false");
        return;
    }
    (void)printf("gpudispatch %s, decisions of the scheduler: %u tasks, passing %s, %.1f s%s%s\n\n",
                 gpud_version(), set->tasks, passing, seconds,
                 b_effort(0, 1) ? ", --quick: a look, no figures to keep" : "",
                 asserts ? ", with assertions: measure a release build" : "");
    b_goals_print_table(stdout, &b_sched_rows, figures);
    b_comparison_print_table(stdout, c);
}

int b_sched_run(int argc, char **argv)
{
    double figures[B_SCHED_ROW_COUNT];
    struct b_sched_set set;
    struct b_comparison comparison;
    const int asked = read_options(argc, argv, &set);
    const uint64_t begun = b_now();
    int rc = 0;

    if (asked)
        return asked > 0 ? usage(stdout, 0) : usage(stderr, 2);
    for (unsigned i = 0; i < B_SCHED_ROW_COUNT; i++)
        figures[i] = NAN;
    rc |= b_sched_bytes(&set, figures);
    rc |= b_sched_decisions(&set, figures);
    rc |= b_sched_promises(&set, figures);
    rc |= b_sched_blocked(&set, figures);
    rc |= b_comparison_make(&comparison, (uint32_t)b_effort(JOBS, 1000), set.load);
    b_comparison_rows(&comparison, figures);
    print(&set, figures, &comparison, (double)(b_now() - begun) / 1e9);
    b_comparison_free(&comparison);
    return rc ? 1 : 0;
}
