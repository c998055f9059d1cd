/* SPDX-License-Identifier: MIT */
/* reader.c - what the formats have in common: jobs out, and the faults of lines. */
#include "queue/jobs/reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "queue/utf8.h"

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
