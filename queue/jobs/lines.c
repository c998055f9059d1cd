/* SPDX-License-Identifier: MIT */
/* lines.c - lines of a file, and the jobs of shell lines and of paths. */
#include <string.h>

#include "queue/jobs/reader.h"
#include "queue/utf8.h"

/* ---- Lines ---- */

static void too_long(struct gpq_jobs *r)
{
    gpq_reader_bad(r, r->line, "the line has more than %zu MiB, the maximum",
                   GPQ_JOBS_LINE_MOST >> 20);
}

static bool has_bad_bytes(struct gpq_jobs *r, const char *text, size_t size)
{
    const char *nul = memchr(text, 0, size);
    size_t fault = gpq_utf8_fault(text, size);

    if (nul)
        gpq_reader_bad(r, r->line, "byte %zu is NUL, which no command can have",
                       (size_t)(nul - text) + 1);
    else if (fault != size)
        gpq_reader_bad(r, r->line, "byte %zu is 0x%02x, which is not UTF-8", fault + 1,
                       (unsigned char)text[fault]);
    return nul || fault != size;
}

/* Whether it has no job: an empty line, or a comment. */
static bool is_comment(const struct gpq_jobs *r, const char *text, size_t size)
{
    size_t at = 0;

    if (r->how.format == GPQ_JOBS_FILES)
        return size == 0;
    while (at < size && (text[at] == ' ' || text[at] == '\t'))
        at++;
    return at == size || (text[at] == '#' && r->how.format == GPQ_JOBS_LINES);
}

/* A whole line, without its newline. */
static void take(struct gpq_jobs *r, const char *text, size_t size)
{
    if (size > 0 && text[size - 1] == '\r')
        size--;
    if (size > GPQ_JOBS_LINE_MOST)
        too_long(r);
    else if (has_bad_bytes(r, text, size))
        ; /* it is refused */
    else if (is_comment(r, text, size))
        r->counts.comments++;
    else if (r->how.format == GPQ_JOBS_JSONL)
        gpq_json_line(r, text, size);
    else
        gpq_command_line(r, text, size);
    r->line++;
}

/* Keeps the beginning of a line.  One that is too long is refused at once, and not kept. */
static bool keep(struct gpq_jobs *r, const char *data, size_t size)
{
    struct gpq_error e;

    if (r->skips)
        return false;
    /* One byte more may be a carriage return. */
    if (size > GPQ_JOBS_LINE_MOST + 1 - gpq_texts_open(&r->rest)) {
        too_long(r);
        gpq_texts_undo(&r->rest);
        r->skips = true;
        return false;
    }
    if (gpq_texts_add(&r->rest, data, size))
        return true;
    (void)gpq_fail(&e, GPQ_ENOMEM, "no memory for a line");
    gpq_reader_stop(r, r->line, &e);
    return false;
}

static void end_line(struct gpq_jobs *r, const char *data, size_t size)
{
    if (!r->skips && gpq_texts_open(&r->rest) == 0) {
        take(r, data, size);
    } else if (keep(r, data, size)) {
        take(r, r->rest.data, gpq_texts_open(&r->rest));
        gpq_texts_undo(&r->rest);
    } else if (r->skips) {
        r->skips = false;
        r->line++;
    }
}

void gpq_lines_feed(struct gpq_jobs *r, const char *data, size_t size)
{
    const char *end;

    while (!r->broken && (end = memchr(data, '\n', size))) {
        size_t length = (size_t)(end - data);
        end_line(r, data, length);
        data += length + 1;
        size -= length + 1;
    }
    if (!r->broken && size > 0)
        (void)keep(r, data, size);
}

void gpq_lines_end(struct gpq_jobs *r)
{
    if (gpq_texts_open(&r->rest) != 0)
        end_line(r, "", 0);
}

/* ---- The jobs ---- */

/* In a script of a shell the next line would be a part of this one. */
static bool continues(const char *text, size_t size)
{
    size_t n = 0;

    while (n < size && text[size - 1 - n] == '\\')
        n++;
    return n % 2 == 1;
}

void gpq_command_line(struct gpq_jobs *r, const char *text, size_t size)
{
    struct gpq_make *m = &r->make;
    struct gpq_error e;
    int code;

    gpq_make_clear(m);
    if (r->how.command) {
        code = gpq_make_one(m, text, size, &e);
    } else if (r->how.format == GPQ_JOBS_FILES) {
        code = gpq_make_argument(m, text, size, &e);
    } else {
        code = continues(text, size)
                   ? gpq_fail(&e, GPQ_EINVAL,
                              "a task is one line: the backslash at its end would continue it")
                   : gpq_make_line(m, text, size, &e);
        if (code == 0)
            code = gpq_make_starts(m, &e);
    }
    gpq_reader_job(r, r->line, code, &e);
}
