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

const struct b_key_info *b_key_info(unsigned key)
{
    return &keys[key];
}

void b_report_open(int fd)
{
    report_fd = fd;
}

static void hand_over(const struct b_figure *f)
{
    if (write(report_fd, f, sizeof(*f)) != (ssize_t)sizeof(*f))
        (void)b_complain("%s: the figure could not be handed over", keys[f->key].name);
}

void b_report(unsigned key, double value, double raw, double ours)
{
    struct b_figure f = { .key = key, .value = value, .raw = raw, .ours = ours };

    hand_over(&f);
}

void b_report_skipped(unsigned key, const char *why)
{
    struct b_figure f = { .key = key, .value = NAN, .raw = NAN, .ours = NAN };

    (void)snprintf(f.skipped, sizeof(f.skipped), "%s", why);
    hand_over(&f);
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
    }
    (void)fprintf(out, ",\n  \"units\": {");
    for (i = 0; i < B_KEY_COUNT; i++) {
        if (!wanted[i])
            continue;
        (void)fprintf(out, "%s\n    \"%s\": \"%s\"", comma, keys[i].name, keys[i].unit);
        comma = ",";
    }
    (void)fprintf(out, "\n  },\n  \"missed\": [");
    for (comma = "", i = 0; i < B_KEY_COUNT; i++) {
        if (!wanted[i] || strcmp(verdict(&keys[i], figures[i].value), "no") != 0)
            continue;
        (void)fprintf(out, "%s\"%s\"", comma, keys[i].name);
        comma = ", ";
    }
    (void)fprintf(out, "]\n}\n");
}

static void print_cell(FILE *out, double value, int width)
{
    if (isfinite(value))
        (void)fprintf(out, " %*.4g", width, value);
    else
        (void)fprintf(out, " %*s", width, "-");
}

void b_print_table(FILE *out, const struct b_figure *figures, const char *wanted, double seconds)
{
    unsigned i;

    (void)fprintf(out, "gpudispatch %s on %u CPUs, %.1f s\n\n", gpud_version(), b_cpu_count(), seconds);
    (void)fprintf(out, "%-29s %9s %8s %-6s %9s %9s %-8s  %s\n", "key", "value", "goal", "met", "raw", "ours", "unit",
                  "what");
    for (i = 0; i < B_KEY_COUNT; i++) {
        const struct b_key_info *k = &keys[i];
        char goal[24] = "";

        if (!wanted[i])
            continue;
        if (k->judge != B_ANY)
            (void)snprintf(goal, sizeof(goal), "%s %.4g", k->judge == B_AT_MOST ? "<=" : ">=", k->goal);
        (void)fprintf(out, "%-29s", k->name);
        print_cell(out, figures[i].value, 9);
        (void)fprintf(out, " %8s %-6s", goal, verdict(k, figures[i].value));
        print_cell(out, figures[i].raw, 9);
        print_cell(out, figures[i].ours, 9);
        (void)fprintf(out, " %-8s  %s\n", k->unit, figures[i].skipped[0] ? figures[i].skipped : k->text);
    }
}
