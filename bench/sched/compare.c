/* SPDX-License-Identifier: MIT */
/* compare.c - each workload with each value of `passing`. */
#include "compare.h"

#include <math.h>
#include <stdlib.h>

#include "../report.h"
#include "bound.h"
#include "rows.h"

enum { STRICT, APART, PROMISE, LEARNED, NAIVE };

static const struct b_way ways[B_WAYS] = {
    { "strict", GPI_MODE_STRICT, GPI_PASS_APART },
    { "apart", GPI_MODE_BACKFILL, GPI_PASS_APART },
    { "promise", GPI_MODE_BACKFILL, GPI_PASS_PROMISE },
    { "learned", GPI_MODE_BACKFILL, GPI_PASS_LEARNED },
    { "naive", GPI_MODE_BACKFILL, GPI_PASS_NAIVE },
};

static int make_workload(struct b_comparison *c, unsigned number)
{
    const struct b_workload *w = b_workload(number);
    struct b_job *job = b_jobs_draw(w, c->jobs, c->load);
    int rc = 0;

    if (job)
        c->bound[number] = b_bound(w, job, c->jobs, job[c->jobs - 1].at);
    if (!job || c->bound[number] < 0)
        rc = b_complain("no memory for %u jobs", c->jobs);
    for (unsigned i = 0; i < B_WAYS && rc == 0; i++)
        rc = b_day_run(&c->day[number][i], w, job, c->jobs, &ways[i]);
    free(job);
    return rc;
}

int b_comparison_make(struct b_comparison *c, uint32_t jobs, double load)
{
    int rc = 0;

    *c = (struct b_comparison){ .jobs = jobs, .load = load };
    for (unsigned i = 0; i < B_WORKLOADS; i++)
        rc |= make_workload(c, i);
    return rc;
}

void b_comparison_free(struct b_comparison *c)
{
    for (unsigned i = 0; i < B_WORKLOADS; i++)
        for (unsigned k = 0; k < B_WAYS; k++)
            b_day_free(&c->day[i][k]);
}

/* ---- figures ---- */

static double all(const struct b_day *d)
{
    return B_DEVICES * d->seconds;
}

static double mean(const struct b_waits *waits)
{
    double sum = 0;

    for (size_t i = 0; i < waits->n; i++)
        sum += waits->s[i];
    return waits->n ? sum / (double)waits->n : NAN;
}

/* Returns the share of heads that began more than a millisecond later. */
static double delayed(const struct b_waits *delay)
{
    size_t n = 0;

    for (size_t i = 0; i < delay->n; i++)
        n += delay->s[i] > 0.001;
    return delay->n ? (double)n / (double)delay->n : NAN;
}

void b_comparison_rows(const struct b_comparison *c, double *figures)
{
    double late = 0, delay = 0;

    for (unsigned i = 0; i < B_WORKLOADS; i++) {
        const struct b_day *learned = &c->day[i][LEARNED];
        figures[B_SCHED_utilisation_vs_bound_flow + i] = learned->busy / c->bound[i];
        figures[B_SCHED_held_for_head_flow + i] = learned->held / all(learned);
        delay = fmax(delay, b_waits_percentile(&c->day[i][APART].delay, 1));
        for (unsigned k = 0; k < B_WAYS; k++) /* naive skip keeps no promise */
            late += k == NAIVE ? 0 : (double)c->day[i][k].late;
    }
    figures[B_SCHED_late_heads] = late;
    figures[B_SCHED_apart_delay_s] = delay;
}

/* ---- for people ---- */

static void print_waits(FILE *out, const struct b_waits *waits)
{
    (void)fprintf(out, " %8.0f %8.0f %9.0f", b_waits_percentile(waits, 0.5),
                  b_waits_percentile(waits, 0.99), b_waits_percentile(waits, 1));
}

static void print_way(FILE *out, const struct b_way *way, const struct b_day *d, double bound)
{
    (void)fprintf(out, "%-8s %6.3f %6.3f %6.3f %6.3f", way->name, d->busy / all(d), d->busy / bound,
                  d->held / all(d), d->missed / all(d));
    print_waits(out, &d->narrow);
    print_waits(out, &d->wide);
    (void)fprintf(out, " %7llu %7llu %6llu %7zu %7.3f %7.1f %9.1f\n", (unsigned long long)d->passed,
                  (unsigned long long)d->renewed, (unsigned long long)d->late, d->delay.n,
                  delayed(&d->delay), mean(&d->delay), b_waits_percentile(&d->delay, 1));
}

void b_comparison_print_table(FILE *out, const struct b_comparison *c)
{
    char load[24] = "0.85 to 0.95";

    if (c->load > 0)
        (void)snprintf(load, sizeof load, "%.2f", c->load);
    for (unsigned i = 0; i < B_WORKLOADS; i++) {
        const struct b_workload *w = b_workload(i);
        (void)fprintf(out, "\n%s: %s\n%u jobs, load %s, bound %.3f of the devices; times in s\n",
                      w->name, w->text, c->jobs, load, c->bound[i] / all(&c->day[i][LEARNED]));
        (void)fprintf(
            out, "%-8s %6s %6s %6s %6s %8s %8s %9s %8s %8s %9s %7s %7s %6s %7s %7s %7s %9s\n",
            "passing", "util", "/bound", "held", "missed", "narrow50", "p99", "max", "wide50",
            "p99", "max", "passed", "renewed", "late", "heads", "delayed", "mean", "max");
        for (unsigned k = 0; k < B_WAYS; k++)
            print_way(out, &ways[k], &c->day[i][k], c->bound[i]);
    }
}

/* ---- for programs ---- */

static void print_json_waits(FILE *out, const char *name, const struct b_waits *waits)
{
    (void)fprintf(out, ",\n      \"%s\": {\"n\": %zu", name, waits->n);
    if (waits->n)
        (void)fprintf(out, ", \"mean\": %.6g, \"p50\": %.6g, \"p99\": %.6g, \"max\": %.6g",
                      mean(waits), b_waits_percentile(waits, 0.5), b_waits_percentile(waits, 0.99),
                      b_waits_percentile(waits, 1));
    (void)fprintf(out, "}");
}

static void print_json_way(FILE *out, const struct b_way *way, const struct b_day *d, double bound)
{
    const unsigned long long counts[] = { d->passed, d->promises, d->renewed,
                                          d->late,   d->boots,    d->unloads };
    static const char *const names[] = {
        "passed", "promises", "renewed", "late", "boots", "unloads"
    };

    (void)fprintf(out, ",\n     \"%s\": {\n      \"utilisation\": %.6g", way->name,
                  d->busy / all(d));
    b_goals_print_number(out, 6, "utilisation_vs_bound", d->busy / bound);
    b_goals_print_number(out, 6, "held_for_head", d->held / all(d));
    b_goals_print_number(out, 6, "missed", d->missed / all(d));
    print_json_waits(out, "wait_narrow_s", &d->narrow);
    print_json_waits(out, "wait_wide_s", &d->wide);
    print_json_waits(out, "delay_of_heads_s", &d->delay);
    b_goals_print_number(out, 6, "delayed_heads", delayed(&d->delay));
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++)
        (void)fprintf(out, ",\n      \"%s\": %llu", names[i], counts[i]);
    (void)fprintf(out, "}");
}

void b_comparison_print_json(FILE *out, const struct b_comparison *c)
{
    b_goals_print_number(out, 2, "load", c->load > 0 ? c->load : NAN);
    (void)fprintf(out, ",\n  \"workloads\": {");
    for (unsigned i = 0; i < B_WORKLOADS; i++) {
        const double devices = all(&c->day[i][LEARNED]);
        (void)fprintf(out, "%s\n    \"%s\": {\"jobs\": %u", i ? "," : "", b_workload(i)->name,
                      c->jobs);
        b_goals_print_number(out, 5, "bound", c->bound[i] / devices);
        for (unsigned k = 0; k < B_WAYS; k++)
            print_json_way(out, &ways[k], &c->day[i][k], c->bound[i]);
        (void)fprintf(out, "}");
    }
    (void)fprintf(out, "\n  }");
}
