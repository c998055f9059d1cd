/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <gpudispatch/gpudispatch.h>

#include "place.h"

#ifndef BENCH_NAME
#define BENCH_NAME "gpudispatch-bench"
#endif

#define KEY_X(name, unit, judge, goal, text) { #name, unit, judge, goal, text },
static const struct b_key_info keys[] = { B_KEY_MAP(KEY_X) };
#undef KEY_X

static int report_fd = -1;
static const char *asked_for;

const struct b_key_info *b_key_info(unsigned key)
{
    return &keys[key];
}

void b_want(const char *wanted)
{
    asked_for = wanted;
}

int b_is_wanted(unsigned key)
{
    return !asked_for || asked_for[key];
}

void b_report_open(int fd)
{
    report_fd = fd;
}

void b_report_figure(const struct b_figure *f)
{
    if (write(report_fd, f, sizeof(*f)) != (ssize_t)sizeof(*f))
        (void)b_complain("%s: the figure could not be handed over", keys[f->key].name);
}

void b_report(unsigned key, double value, double raw, double ours)
{
    struct b_figure f = { .key = key, .value = value, .raw = raw, .ours = ours };

    b_report_figure(&f);
}

void b_report_skipped(unsigned key, const char *why)
{
    struct b_figure f = { .key = key, .value = NAN, .raw = NAN, .ours = NAN };

    (void)snprintf(f.skipped, sizeof(f.skipped), "%s", why);
    b_report_figure(&f);
}

int b_complain(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)fputs(BENCH_NAME ": ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    return -1;
}

static const char *verdict(const struct b_key_info *k, double value)
{
    if (!isfinite(value))
        return "-";
    if (k->judge == B_AT_MOST)
        return value <= k->goal ? "yes" : "no";
    if (k->judge == B_AT_LEAST)
        return value >= k->goal ? "yes" : "no";
    if (k->judge == B_NEAR_ONE)
        return fabs(value - 1) <= k->goal ? "yes" : "no";
    return "";
}

/* Prints `,\n  "prefix_key": number`; null for what is not a number. */
static void print_number(FILE *out, const char *prefix, const char *key, double value)
{
    if (isfinite(value))
        (void)fprintf(out, ",\n  \"%s%s\": %.5g", prefix, key, value);
    else
        (void)fprintf(out, ",\n  \"%s%s\": null", prefix, key);
}

/* The quartiles of a figure, and what the machine was like. */
static void print_spread(FILE *out, const struct b_figure *f)
{
    if (f->ratio.high > 0) {
        print_number(out, "q1_", keys[f->key].name, f->ratio.low);
        print_number(out, "q3_", keys[f->key].name, f->ratio.high);
    }
    if (f->line.high > 0) {
        print_number(out, "line_ns_", keys[f->key].name, f->line.middle);
        print_number(out, "loop_us_", keys[f->key].name, f->loop.middle);
    }
}

static int is_missed(const struct b_figure *f)
{
    return strcmp(verdict(&keys[f->key], f->value), "no") == 0;
}

static int is_changed(const struct b_figure *f)
{
    return f->changed;
}

static int is_shared(const struct b_figure *f)
{
    return f->shared;
}

/* Prints `,\n  "name": [keys]`: those of which `holds` is true. */
static void print_list(FILE *out, const char *name, const struct b_figure *figures,
                       const char *wanted, int (*holds)(const struct b_figure *f))
{
    const char *comma = "";
    unsigned i;

    (void)fprintf(out, ",\n  \"%s\": [", name);
    for (i = 0; i < B_KEY_COUNT; i++) {
        if (!wanted[i] || !holds(&figures[i]))
            continue;
        (void)fprintf(out, "%s\"%s\"", comma, keys[i].name);
        comma = ", ";
    }
    (void)fprintf(out, "]");
}

void b_print_json(FILE *out, const struct b_figure *figures, const char *wanted, double seconds)
{
    const char *comma = "";
    unsigned i;

    (void)fprintf(out, "{\n  \"version\": \"%s\",\n  \"cpus\": %u", gpud_version(), b_cpu_count());
    print_number(out, "", "seconds", seconds);
    for (i = 0; i < B_KEY_COUNT; i++) {
        if (!wanted[i])
            continue;
        print_number(out, "", keys[i].name, figures[i].value);
        if (isfinite(figures[i].raw))
            print_number(out, "raw_", keys[i].name, figures[i].raw);
        if (isfinite(figures[i].ours))
            print_number(out, "ours_", keys[i].name, figures[i].ours);
        print_spread(out, &figures[i]);
    }
    (void)fprintf(out, ",\n  \"units\": {");
    for (i = 0; i < B_KEY_COUNT; i++) {
        if (!wanted[i])
            continue;
        (void)fprintf(out, "%s\n    \"%s\": \"%s\"", comma, keys[i].name, keys[i].unit);
        comma = ",";
    }
    (void)fprintf(out, "\n  }");
    print_list(out, "missed", figures, wanted, is_missed);
    print_list(out, "changed", figures, wanted, is_changed);
    print_list(out, "shared", figures, wanted, is_shared);
    (void)fprintf(out, ",\n  \"quick\": %s\n}\n", b_effort(0, 1) ? "true" : "false");
}

static void print_cell(FILE *out, double value, int width)
{
    if (isfinite(value))
        (void)fprintf(out, " %*.4g", width, value);
    else
        (void)fprintf(out, " %*s", width, "-");
}

/* Prints the times of machine.h, and words when they changed or other programs ran. */
static void print_state(FILE *out, const struct b_figure *f)
{
    char text[40] = "";

    if (f->line.high > 0)
        (void)snprintf(text, sizeof(text), "%3.0f ns %5.2f us%s%s", f->line.middle, f->loop.middle,
                       f->changed ? " changed" : "", f->shared ? " shared" : "");
    (void)fprintf(out, "  %-30s", text);
}

static void print_row(FILE *out, const struct b_figure *f)
{
    const struct b_key_info *k = &keys[f->key];
    static const char *const signs[] = { "", "<= ", ">= ", "1 +- " };
    char goal[24] = "", quartiles[32] = "";

    if (k->judge != B_ANY)
        (void)snprintf(goal, sizeof(goal), "%s%.4g", signs[k->judge], k->goal);
    if (f->ratio.high > 0)
        (void)snprintf(quartiles, sizeof(quartiles), "%.2f-%.2f", f->ratio.low, f->ratio.high);
    (void)fprintf(out, "%-29s", k->name);
    print_cell(out, f->value, 9);
    (void)fprintf(out, " %-11s %8s %-6s", quartiles, goal, verdict(k, f->value));
    print_cell(out, f->raw, 9);
    print_cell(out, f->ours, 9);
    (void)fprintf(out, " %-8s", k->unit);
    print_state(out, f);
    (void)fprintf(out, "  %s\n", f->skipped[0] ? f->skipped : k->text);
}

void b_print_table(FILE *out, const struct b_figure *figures, const char *wanted, double seconds)
{
    unsigned i;

    (void)fprintf(out, "gpudispatch %s on %u CPUs, %.1f s%s\n\n", gpud_version(), b_cpu_count(),
                  seconds, b_effort(0, 1) ? ", --quick: a look, no figures to keep" : "");
    (void)fprintf(out, "%-29s %9s %-11s %8s %-6s %9s %9s %-8s  %-30s  %s\n", "key", "value",
                  "quartiles", "goal", "met", "raw", "ours", "unit", "line, loop", "what");
    for (i = 0; i < B_KEY_COUNT; i++)
        if (wanted[i])
            print_row(out, &figures[i]);
}
