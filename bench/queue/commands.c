/* SPDX-License-Identifier: MIT */
/* commands.c - short commands, 8 at a time: the queue from one submit to the last end, and programs
 * that do the same.  They take turns. */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../measure.h"
#include "agent.h"
#include "rows.h"

#define COMMANDS 200
#define ROUNDS 7
#define SIDES (1 + BQ_PROGRAMS)

/* The order is that of the rows.  task-spooler has no list: each command is a submit of its own.
 * Its `-w` waits for one command, and the last 8 may end in any order. */
const struct bq_program bq_programs[BQ_PROGRAMS] = {
    { "xargs", "findutils", "seq $N | xargs -P 8 -n 1 true" },
    { "tsp", "task-spooler",
      "export TS_SOCKET=$PWD/tsp TS_MAXFINISHED=$N; tsp -S 8\n"
      "for i in $(seq $N); do id=$(tsp -n true); done\n"
      "for i in $(seq $((id - 7)) $id); do tsp -w $i; done; tsp -K" },
    { "parallel", "parallel", "seq $N | parallel -j 8 true" },
};

static int run_script(const char *directory, const char *script, unsigned n)
{
    char line[1024];

    (void)snprintf(line, sizeof line, "cd '%s' && N=%u && {\n%s\n} >/dev/null", directory, n,
                   script);
    return system(line); /* NOLINT: the programs of the user's PATH are meant */
}

bool bq_program_installed(const struct bq_program *p)
{
    char script[64];

    (void)snprintf(script, sizeof script, "command -v %s", p->name);
    return run_script("/", script, 0) == 0;
}

static int run_ours(struct bq_agent *a, unsigned n)
{
    char batch[16];

    return bq_agent_commands(a, "true", NULL, n, batch) ? -1 : bq_agent_wait(a, batch);
}

/* Returns the time of one command in us, or -1 after a complaint. */
static double run_side(struct bq_agent *a, unsigned side, unsigned n)
{
    const struct bq_program *p = side ? &bq_programs[side - 1] : NULL;
    const uint64_t begun = b_now();

    if (p ? run_script(a->state, p->script, n) : run_ours(a, n))
        return p ? b_complain("%s: a command failed", p->name) : -1;
    return (double)(b_now() - begun) / 1e3 / n;
}

static void report(double took[SIDES][ROUNDS], unsigned side, size_t rounds, double *figures)
{
    double ratios[ROUNDS];

    for (size_t i = 0; i < rounds; i++)
        ratios[i] = took[0][i] / took[side][i];
    figures[BQ_commands_vs_xargs_ROW + side - 1] = b_median(ratios, rounds);
    figures[BQ_commands_xargs_us_ROW + side - 1] = b_median(took[side], rounds);
}

int bq_commands(const struct bq_set *set, double *figures)
{
    const unsigned n = (unsigned)b_effort(COMMANDS, 16);
    const size_t rounds = b_effort(ROUNDS, 2);
    double took[SIDES][ROUNDS];
    bool here[SIDES] = { true };
    struct bq_agent a;
    int rc = bq_agent_open(&a, &set->disk, "commands", "fake:8", "");

    for (unsigned side = 1; side < SIDES; side++)
        here[side] = bq_program_installed(&bq_programs[side - 1]);
    for (size_t i = 0; i < rounds && rc == 0; i++)
        for (unsigned side = 0; side < SIDES && rc == 0; side++)
            if (here[side])
                rc = (took[side][i] = run_side(&a, side, n)) < 0 ? -1 : 0;
    bq_agent_kill(&a, NULL);
    if (rc)
        return rc;
    for (unsigned side = 1; side < SIDES; side++)
        if (here[side])
            report(took, side, rounds, figures);
    figures[BQ_commands_us_ROW] = b_median(took[0], rounds);
    return 0;
}
