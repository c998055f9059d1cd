/* SPDX-License-Identifier: MIT */
/* jobs_rig.c - files of jobs as tables. */
#include "harness.h"

#include "jobs_rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const known[] = { "gpus", "memory", "name", "env", "limit", NULL };
enum { ARGUMENTS = 16, TEXTS = 2 };

static int note(const struct gpq_job *job, void *user, struct gpq_error *e)
{
    FILE *out = user;

    (void)e;
    (void)fprintf(out, "%" PRIu64, job->line);
    for (size_t i = 0; i < job->n_argv; i++)
        (void)fprintf(out, " | %s", job->argv[i]);
    T_CHECK(!job->argv[job->n_argv]);
    (void)fprintf(out, "%s", job->n_options || job->replace ? " |" : "");
    for (size_t i = 0; i < job->n_options; i++)
        (void)fprintf(out, " %s=%s", job->options[i].name, job->options[i].value);
    (void)fprintf(out, "%s\n", job->replace ? " replace" : "");
    return 0;
}

char *jobs_transcript(const struct jobs_case *c, size_t first, size_t piece)
{
    size_t size = c->size ? c->size : strlen(c->input), n = 0, transcript_size;
    struct gpq_job_option texts[TEXTS];
    struct gpq_jobs_how how = { .format = c->format, .known = known, .texts = texts };
    const char *command[ARGUMENTS + 1] = { 0 };
    char *copy = c->command ? strdup(c->command) : NULL, *rest = NULL, *transcript;
    FILE *out = open_memstream(&transcript, &transcript_size);
    struct gpq_jobs_counts counts = { 0 };
    struct gpq_jobs *r;
    struct gpq_error e;

    for (char *at = copy ? strtok_r(copy, "|", &rest) : NULL; at; at = strtok_r(NULL, "|", &rest))
        command[n++] = at;
    for (; how.n_texts < TEXTS && c->texts[2 * how.n_texts]; how.n_texts++)
        texts[how.n_texts] =
            (struct gpq_job_option){ c->texts[2 * how.n_texts], c->texts[2 * how.n_texts + 1] };
    how.command = copy ? command : NULL;
    int code = gpq_jobs_open(&how, note, out, &r, &e);
    if (code == 0) {
        for (size_t at = 0, length = first; at < size; at += length, length = piece) {
            length = length < size - at ? length : size - at;
            char *exact = malloc(length ? length : 1); /* nothing behind it is read */
            T_CHECK(exact);
            memcpy(exact, c->input + at, length);
            (void)gpq_jobs_feed(r, exact, length, &e);
            free(exact);
        }
        code = gpq_jobs_end(r, &counts, &e);
        gpq_jobs_close(r);
    }
    if (code == 0)
        (void)fprintf(out, "%" PRIu64 " jobs, %" PRIu64 " comments\n", counts.jobs,
                      counts.comments);
    else
        (void)fprintf(out, "%s: %s\n", gpq_error_name(code), e.text);
    (void)fclose(out);
    free(copy);
    return transcript;
}

int jobs_read_long(const struct gpq_jobs_how *how, const char *begin, char c, size_t size,
                   const char *end, gpq_job_fn fn, void *user, struct gpq_error *e)
{
    char piece[65536];
    struct gpq_jobs *r;

    memset(piece, c, sizeof(piece));
    T_EQ(gpq_jobs_open(how, fn, user, &r, e), 0);
    (void)gpq_jobs_feed(r, begin, strlen(begin), e);
    for (size_t n; size > 0; size -= n) {
        n = size < sizeof(piece) ? size : sizeof(piece);
        (void)gpq_jobs_feed(r, piece, n, e);
    }
    (void)gpq_jobs_feed(r, end, strlen(end), e);
    int code = gpq_jobs_end(r, NULL, e);
    gpq_jobs_close(r);
    return code;
}

void jobs_check(const struct jobs_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t size = cases[i].size ? cases[i].size : strlen(cases[i].input);
        char *whole = jobs_transcript(&cases[i], size, 1);
        if (strcmp(whole, cases[i].expected) != 0)
            T_FAIL("case %zu:\n%sinstead of\n%s", i, whole, cases[i].expected);
        for (size_t first = 0; first <= size; first++) {
            char *cut = jobs_transcript(&cases[i], first, first % 2 ? size + 1 : 1);
            if (strcmp(cut, whole) != 0)
                T_FAIL("case %zu, cut at %zu:\n%sinstead of\n%s", i, first, cut, whole);
            free(cut);
        }
        free(whole);
    }
}
