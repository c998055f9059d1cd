/* SPDX-License-Identifier: MIT */
/* decisions.c - what a decision takes: with few and many devices, tasks and shapes. */
#include <math.h>

#include "../measure.h"
#include "crowd.h"
#include "rows.h"
#include "samples.h"

/* Fewer decisions are no mean. */
#define FEW_TASKS 1000u
#define FEW_DECISIONS b_effort(200000, 4000)

struct times {
    struct b_samples samples;
    double submit;
    double scans; /* per start */
};

/* The time of a sample holds one reading of the clock, too. */
static double clock_cost(void)
{
    double took[4096];

    for (size_t i = 0; i < sizeof took / sizeof *took; i++) {
        const uint64_t before = b_now();
        took[i] = (double)(b_now() - before);
    }
    return b_median(took, sizeof took / sizeof *took);
}

/* Decisions count while tasks wait.  In the same plan all tasks are submitted again when none is
 * left, so that classes have learned what they learn.  If none waits for another, there are no
 * decisions to count. */
static void take(struct b_crowd *c, struct times *t, double clock)
{
    struct b_samples *s = &t->samples;

    for (size_t before = s->room; s->n < s->room && s->n != before;) {
        before = s->n;
        t->submit = b_crowd_submit(c);
        (void)b_crowd_decide(c); /* all devices are free: no decision of this kind */
        while (c->waiting && s->n < s->room)
            b_samples_add(s, (double)b_crowd_step(c), clock);
        if (c->waiting || c->set.tasks > FEW_TASKS)
            return;
        while (b_crowd_runs(c))
            (void)b_crowd_step(c);
    }
}

static int measure(const struct b_crowd_set *set, double clock, struct times *t)
{
    struct b_crowd c = { .p = NULL };
    const struct gpi_plan_stats *stats;
    int rc = b_crowd_open(&c, set);

    rc |= b_samples_init(&t->samples, set->tasks > FEW_TASKS ? set->tasks : FEW_DECISIONS);
    if (rc == 0) {
        take(&c, t, clock);
        stats = gpi_plan_stats(c.p);
        t->scans = (double)stats->examined / (double)stats->starts;
    }
    b_crowd_close(&c);
    return rc;
}

/* The rows of one number of devices. */
struct place {
    uint32_t devices;
    enum b_sched_row first; /* mean; then p50, p99, p99.9 */
    enum b_sched_row scans;
    bool is_compared; /* with fewer tasks and more shapes */
    enum b_sched_row few, growth, shapes, shapes_scans;
};

static const struct place places[] = {
    { 8, B_SCHED_ns_per_decision_8, B_SCHED_scans_per_start_8, true, B_SCHED_few_tasks_ns_8,
      B_SCHED_tasks_many_vs_few_8, B_SCHED_shapes_1000_vs_24_8,
      B_SCHED_scans_per_start_8_shapes_1000 },
    { 1000, B_SCHED_ns_per_decision_1000, B_SCHED_scans_per_start_1000, true,
      B_SCHED_few_tasks_ns_1000, B_SCHED_tasks_many_vs_few_1000, B_SCHED_shapes_1000_vs_24_1000,
      B_SCHED_scans_per_start_1000_shapes_1000 },
    { 10000, B_SCHED_ns_per_decision_10000, B_SCHED_scans_per_start_10000, .is_compared = false },
};

static int fill(const struct place *place, const struct b_crowd_set *set, double *figures)
{
    static const double shares[] = { 0.5, 0.99, 0.999 };
    struct times t;
    int rc = measure(set, figures[B_SCHED_clock_ns], &t);

    if (rc == 0) {
        figures[place->first] = b_samples_mean(&t.samples);
        for (unsigned i = 0; i < 3; i++)
            figures[place->first + 1 + i] = b_percentile(t.samples.ns, t.samples.n, shares[i]);
        figures[place->scans] = t.scans;
        figures[B_SCHED_submit_ns] = t.submit;
        figures[B_SCHED_interrupted] += (double)t.samples.interrupted;
    }
    b_samples_fini(&t.samples);
    return rc;
}

static int fill_mean(const struct b_crowd_set *set, double clock, double *ret, double *ret_scans)
{
    struct times t;
    int rc = measure(set, clock, &t);

    *ret = rc == 0 ? b_samples_mean(&t.samples) : NAN;
    *ret_scans = rc == 0 ? t.scans : NAN;
    b_samples_fini(&t.samples);
    return rc;
}

static int compare(const struct place *place, const struct b_crowd_set *set, double *figures)
{
    const double clock = figures[B_SCHED_clock_ns], all = figures[place->first];
    struct b_crowd_set few = *set, shapes = *set;
    double ns, scans;
    int rc;

    few.tasks = FEW_TASKS;
    rc = fill_mean(&few, clock, &figures[place->few], &scans);
    if (set->tasks > FEW_TASKS)
        figures[place->growth] = all / figures[place->few];
    shapes.shapes = 1000;
    rc |= fill_mean(&shapes, clock, &ns, &figures[place->shapes_scans]);
    figures[place->shapes] = ns / all;
    return rc;
}

int b_sched_decisions(const struct b_sched_set *set, double *figures)
{
    int rc = 0;

    figures[B_SCHED_clock_ns] = clock_cost();
    figures[B_SCHED_interrupted] = 0;
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        const struct b_crowd_set crowd = {
            .devices = places[i].devices, .tasks = set->tasks, .shapes = 24, .passing = set->passing
        };
        rc |= fill(&places[i], &crowd, figures);
        if (places[i].is_compared)
            rc |= compare(&places[i], &crowd, figures);
    }
    return rc;
}
