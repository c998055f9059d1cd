/* SPDX-License-Identifier: MIT */
/* reader.c - a reader of jobs: bytes in, jobs out, and the faults of lines. */
#include "queue/jobs/reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "queue/jobs/utf8.h"

static const char byte_order_mark[] = "\xef\xbb\xbf";
enum { MARK_SIZE = 3 };

enum gpq_jobs_format gpq_jobs_format_of(const char *path)
{
    const char *end = strrchr(path, '.');

    if (end && !strcasecmp(end, ".csv"))
        return GPQ_JOBS_CSV;
    if (end && (!strcasecmp(end, ".jsonl") || !strcasecmp(end, ".ndjson")))
        return GPQ_JOBS_JSONL;
    return GPQ_JOBS_LINES;
}

/* ---- Faults ---- */

void gpq_reader_refuse(struct gpq_jobs *r, uint64_t line, const struct gpq_error *e)
{
    r->counts.bad++;
    if (r->first.code != 0)
        return;
    if (line == 0 || e->code == GPQ_ENOMEM)
        r->first = *e;
    else
        (void)gpq_fail(&r->first, e->code, "line %" PRIu64 ": %.420s", line, e->text);
    gpq_utf8_clean(r->first.text);
}

void gpq_reader_bad(struct gpq_jobs *r, uint64_t line, const char *format, ...)
{
    struct gpq_error e = { .code = GPQ_EINVAL };
    va_list list;

    va_start(list, format);
    (void)vsnprintf(e.text, sizeof(e.text), format, list);
    va_end(list);
    gpq_reader_refuse(r, line, &e);
}

void gpq_reader_stop(struct gpq_jobs *r, uint64_t line, const struct gpq_error *e)
{
    gpq_reader_refuse(r, line, e);
    r->broken = true;
}

void gpq_reader_list(char *ret, size_t size, const char *const *names, size_t n)
{
    size_t used = 0;

    *ret = 0;
    for (size_t i = 0; i < n; i++) {
        int more = snprintf(ret + used, size - used, "%s%s", i ? ", " : "", names[i]);
        if (more < 0 || (size_t)more + sizeof(", ...") > size - used) {
            (void)snprintf(ret + used, size - used, "%s", i ? ", ..." : "...");
            return;
        }
        used += (size_t)more;
    }
}

/* ---- Jobs ---- */

void gpq_reader_job(struct gpq_jobs *r, uint64_t line, int code, struct gpq_error *e)
{
    struct gpq_job job;

    if (code == 0)
        code = gpq_make_job(&r->make, &job, e);
    if (code == 0) {
        job.line = line;
        r->counts.jobs++;
        /* Behind a bad line the rest is only counted. */
        code = r->first.code == 0 ? r->fn(&job, r->user, e) : 0;
    }
    e->code = code;
    if (code == GPQ_ENOMEM)
        gpq_reader_stop(r, line, e);
    else if (code)
        gpq_reader_refuse(r, line, e);
}

int gpq_jobs_open(const struct gpq_jobs_how *how, gpq_job_fn fn, void *user, struct gpq_jobs **ret,
                  struct gpq_error *e)
{
    struct gpq_jobs *r = calloc(1, sizeof(*r));

    if (!r)
        return gpq_fail(e, GPQ_ENOMEM, "no memory for a reader");
    *r = (struct gpq_jobs){ .how = *how, .fn = fn, .user = user, .line = 1, .csv.row_line = 1 };
    int code = gpq_make_open(&r->make, &r->how, e);
    if (code == 0 && how->format == GPQ_JOBS_LINES)
        code = gpq_make_has_one(&r->make, "a file of lines", true, e);
    if (code == 0 && how->format == GPQ_JOBS_FILES)
        code = gpq_make_has_one(&r->make, "a file of paths", true, e);
    if (code == 0) {
        *ret = r;
        return 0;
    }
    gpq_utf8_clean(e->text);
    gpq_jobs_close(r);
    return code;
}

static void feed(struct gpq_jobs *r, const char *data, size_t size)
{
    if (r->broken || size == 0)
        return;
    if (r->how.format == GPQ_JOBS_CSV)
        gpq_csv_feed(r, data, size);
    else
        gpq_lines_feed(r, data, size);
}

int gpq_jobs_feed(struct gpq_jobs *r, const void *data, size_t size, struct gpq_error *e)
{
    const char *at = size > 0 ? data : "", *end = at + size;

    while (at < end && r->mark < MARK_SIZE && *at == byte_order_mark[r->mark]) {
        at++;
        r->mark++;
    }
    if (at < end && r->mark < MARK_SIZE) {
        feed(r, byte_order_mark, r->mark); /* it was none */
        r->mark = MARK_SIZE;
    }
    feed(r, at, (size_t)(end - at));
    if (r->first.code)
        *e = r->first;
    return r->first.code;
}

int gpq_jobs_end(struct gpq_jobs *r, struct gpq_jobs_counts *ret, struct gpq_error *e)
{
    if (r->mark < MARK_SIZE)
        feed(r, byte_order_mark, r->mark);
    if (!r->broken && r->how.format == GPQ_JOBS_CSV)
        gpq_csv_end(r);
    else if (!r->broken)
        gpq_lines_end(r);
    if (ret)
        *ret = r->counts;
    if (r->first.code == 0)
        return 0;
    *e = r->first;
    if (r->counts.bad > 1) {
        size_t used = strlen(e->text);
        (void)snprintf(e->text + used, sizeof(e->text) - used,
                       "; %" PRIu64 " further line%s refused", r->counts.bad - 1,
                       r->counts.bad == 2 ? " is" : "s are");
    }
    return e->code;
}

void gpq_jobs_close(struct gpq_jobs *r)
{
    if (!r)
        return;
    gpq_make_free(&r->make);
    gpq_texts_free(&r->rest);
    gpq_csv_free(&r->csv);
    free(r);
}

int gpq_jobs_command(const char *const *command, gpq_job_fn fn, void *user, struct gpq_error *e)
{
    const struct gpq_jobs_how how = { 0 };
    struct gpq_make make;
    struct gpq_job job;
    int code = gpq_make_open(&make, &how, e);

    for (size_t i = 0; code == 0 && command[i]; i++)
        code = gpq_utf8_fault(command[i], strlen(command[i])) == strlen(command[i])
                   ? gpq_make_argument(&make, command[i], strlen(command[i]), e)
                   : gpq_fail(e, GPQ_EINVAL, "argument %zu of the command is not UTF-8", i);
    if (code == 0)
        code = gpq_make_starts(&make, e);
    if (code == 0)
        code = gpq_make_job(&make, &job, e);
    if (code == 0)
        code = fn(&job, user, e);
    gpq_make_free(&make);
    return code;
}
