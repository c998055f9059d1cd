/* SPDX-License-Identifier: MIT */
/*
 * plan.c - any bytes as the numbers of a world around a plan, beside the slow model.
 *
 * The world makes only facts that a caller may feed, whatever the bytes are.  No action and no
 * decision may break a rule or a guarantee.  With GPI_FUZZ_PLAN=FILE in the environment an input is
 * written as a script, which gpudispatch-sim reads.
 */
#include "fuzz.h"

#include "sim/plan_script.h"
#include "sim/plan_world.h"

#define FACTS_MOST 2000u

struct state {
    struct gpi_trial trial;
    struct gpi_plan_world world;
    struct gpi_plan_log log;
};

static void note(const struct gpi_plan_action *a, void *user)
{
    struct state *s = user;

    gpi_plan_world_note(&s->world, a);
    if (s->log.out)
        gpi_plan_log_action(&s->log, a);
}

static void step(struct state *s, const struct gpi_fact *f)
{
    if (s->log.out) {
        gpi_plan_log_fact(&s->log, f);
        (void)fflush(s->log.out);
    }
    FUZZ_CHECK(!gpi_trial_refuses(&s->trial, f));
    gpi_trial_feed(&s->trial, f);
    if (s->trial.broken)
        (void)fprintf(stderr, "%s: task %d\n", s->trial.broken, (int)s->trial.culprit);
    FUZZ_CHECK(!s->trial.broken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t none[1];
    const char *path = getenv("GPI_FUZZ_PLAN");
    struct state s = { .trial = { .action = note, .user = &s },
                       .world = { .source = { .data = size ? data : none, .left = size } },
                       .log = { .out = path ? fopen(path, "w") : NULL } };
    struct gpi_fact f;

    gpi_plan_world_begin(&s.world, &s.trial);
    while (s.trial.facts < FACTS_MOST && gpi_plan_world_next(&s.world, &f))
        step(&s, &f);
    gpi_trial_fini(&s.trial);
    if (s.log.out)
        (void)fclose(s.log.out);
    return 0;
}
