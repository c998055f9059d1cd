/* SPDX-License-Identifier: MIT */
/* jobs.c - a reader of jobs: bytes in, and the format that takes them. */
#include "queue/jobs/jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "queue/jobs/reader.h"
#include "queue/utf8.h"

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

uint64_t gpq_jobs_unended(const struct gpq_jobs *r)
{
    if (r->how.format == GPQ_JOBS_CSV)
        return r->csv.bytes > 0 ? r->csv.row_line : 0;
    return r->skips || gpq_texts_open(&r->rest) != 0 ? r->line : 0;
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
