/* SPDX-License-Identifier: MIT */
/* doctor.c - verb doctor: runs the checks and reports what they find. */
#include "doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/out.h"
#include "verbs.h"

#define PATIENCE (10 * SECOND)

static const struct {
    const char *name;
    void (*check)(struct doctor *d);
} group[] = {
    { "system", check_system }, { "limits", check_limits },   { "queue", check_queue },
    { "driver", check_driver }, { "devices", check_devices }, { "environment", check_environment },
    { "tasks", check_tasks },
};

static const char *const verdict_name[VERDICT_COUNT] = { "ok", "note", "PROBLEM" };

/* ---- findings ---- */

static void put_json(const struct doctor *d, enum verdict verdict, const char *name,
                     const char *remedy, uint64_t took, const char *text)
{
    doc_open(NULL, '{');
    doc_text("group", d->group);
    doc_text("name", name);
    doc_text("verdict", verdict_name[verdict]);
    doc_text("text", text);
    doc_text("remedy", remedy);
    if (took == GPUD_NEVER)
        doc_null("seconds");
    else
        doc_decimal("seconds", (double)took / 1e9);
    doc_close('}');
}

static void put_text(enum verdict verdict, const char *name, const char *remedy, const char *text)
{
    printf("  %-8s %-18s ", verdict_name[verdict], name);
    put_plain(text);
    if (remedy) {
        printf("\n%30sdo: ", "");
        put_plain(remedy);
    }
    putchar('\n');
}

static void report(struct doctor *d, enum verdict verdict, const char *name, const char *remedy,
                   uint64_t took, const char *format, va_list args)
{
    char text[640];

    vsnprintf(text, sizeof text, format, args);
    d->counted[verdict]++;
    if (d->json)
        put_json(d, verdict, name, remedy, took, text);
    else
        put_text(verdict, name, remedy, text);
    (void)out_flush(); /* what comes next may take its time */
}

void finding(struct doctor *d, enum verdict verdict, const char *name, const char *remedy,
             const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report(d, verdict, name, remedy, GPUD_NEVER, format, args);
    va_end(args);
}

void finding_timed(struct doctor *d, enum verdict verdict, const char *name, const char *remedy,
                   uint64_t took, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report(d, verdict, name, remedy, took, format, args);
    va_end(args);
}

/* ---- files ---- */

bool file_line(const char *path, char *line, size_t size)
{
    FILE *f = fopen(path, "re");
    bool read = f && fgets(line, (int)size, f);

    if (f)
        fclose(f);
    if (read)
        line[strcspn(line, "\n")] = '\0';
    return read;
}

bool file_number(const char *path, const char *key, uint64_t *ret)
{
    FILE *f = fopen(path, "re");
    bool found = false;
    char line[256], *end;

    while (f && !found && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        *ret = strtoull(line + strlen(key), &end, 10);
        found = end != line + strlen(key);
    }
    if (f)
        fclose(f);
    return found;
}

/* ---- the verb ---- */

static void put_head(const struct doctor *d)
{
    if (!d->json) {
        printf("gpudispatch %s\n", gpud_version());
        return;
    }
    doc_open(NULL, '{');
    doc_text("version", gpud_version());
    doc_open("checks", '[');
}

static const char *plural(unsigned n)
{
    return n == 1 ? "" : "s";
}

static void put_end(const struct doctor *d)
{
    unsigned problems = d->counted[VERDICT_PROBLEM], notes = d->counted[VERDICT_NOTE];

    if (!d->json) {
        printf("\n%u problem%s, %u note%s, %u ok\n", problems, plural(problems), notes,
               plural(notes), d->counted[VERDICT_OK]);
        return;
    }
    doc_close(']');
    if (d->looked) {
        json_driver("driver", &d->look.driver);
        doc_open("devices", '[');
        for (size_t i = 0; i < d->look.n; i++) {
            doc_open(NULL, '{');
            json_device(&d->look.row[i]);
            doc_close('}');
        }
        doc_close(']');
    } else {
        doc_null("driver");
        doc_null("devices");
    }
    doc_number("problems", problems);
    doc_number("notes", notes);
    doc_number("ok", d->counted[VERDICT_OK]);
    doc_close('}');
    doc_end();
}

int doctor_run(const struct call *call)
{
    struct doctor d = {
        .json = call->given[OPTION_JSON],
        .gpu = call->given[OPTION_GPU],
        .quick = call->given[OPTION_QUICK],
        .devices = call->value[OPTION_DEVICES],
        .root = call->given[OPTION_ROOT] ? call->value[OPTION_ROOT] : "",
        .why = GPUD_ERROR_INIT,
    };
    int r = seconds_read(call, OPTION_WAIT, 0, 3600, PATIENCE, &d.wait);

    if (r)
        return r;
    d.fakes = d.devices && !strncmp(d.devices, "fake:", 5);
    d.opened = look_open(&d.look, d.devices, &d.why); /* it looks while the system is checked */
    if (d.opened == GPUD_EDEVICE || d.opened == GPUD_EINVAL)
        return usage(call->verb, "%s", d.why.text);
    put_head(&d);
    for (size_t i = 0; i < sizeof group / sizeof group[0]; i++) {
        d.group = group[i].name;
        if (!d.json)
            printf("\n%s\n", d.group);
        group[i].check(&d);
    }
    put_end(&d);
    if (!d.opened)
        look_close(&d.look);
    return d.counted[VERDICT_PROBLEM] ? EXIT_WRONG : EXIT_OK;
}
