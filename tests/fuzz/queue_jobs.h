/* SPDX-License-Identifier: MIT */
/*
 * queue_jobs.h - any bytes as a jobs file, with and without a template of the command.
 *
 * The jobs and the error are the same, however the bytes are cut.  All texts are UTF-8; arguments
 * have names of the start exactly if the job says so.
 */
#ifndef T_FUZZ_QUEUE_JOBS_H
#define T_FUZZ_QUEUE_JOBS_H

#include "fuzz.h"

#include "queue/jobs/jobs.h"
#include "queue/jobs/template.h"
#include "queue/utf8.h"

static const char *const fuzz_known[] = { "gpus", "name", "env", NULL };

static void fuzz_text(const char *text, uint64_t *hash)
{
    FUZZ_CHECK(gpq_utf8_fault(text, strlen(text)) == strlen(text));
    for (; *text; text++)
        *hash = (*hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    *hash = (*hash ^ 0xff) * UINT64_C(0x100000001b3);
}

static int fuzz_job(const struct gpq_job *job, void *user, struct gpq_error *e)
{
    uint64_t *hash = user;
    uint32_t starts = 0;

    (void)e;
    FUZZ_CHECK(job->line > 0 && job->n_argv > 0 && *job->argv[0] && !job->argv[job->n_argv]);
    *hash += job->line;
    for (size_t i = 0; i < job->n_argv; i++) {
        fuzz_text(job->argv[i], hash);
        starts |= gpq_template_starts(job->argv[i]);
    }
    FUZZ_CHECK(!job->replace || starts);
    for (size_t i = 0; i < job->n_options; i++) {
        fuzz_text(job->options[i].name, hash);
        fuzz_text(job->options[i].value, hash);
    }
    return 0;
}

/* Reads the bytes in pieces of 1 to `most`, and adds all of the result to the hash. */
static int fuzz_read(const struct gpq_jobs_how *how, const uint8_t *data, size_t size, size_t most,
                     uint64_t *hash)
{
    struct gpq_error e = { 0 };
    struct gpq_jobs_counts counts;
    struct gpq_jobs *r;

    FUZZ_CHECK(gpq_jobs_open(how, fuzz_job, hash, &r, &e) == 0);
    for (size_t at = 0, n; at < size; at += n) {
        n = 1 + data[at] % most;
        n = n < size - at ? n : size - at;
        uint8_t *piece = malloc(n); /* nothing behind it is read */
        FUZZ_CHECK(piece);
        memcpy(piece, data + at, n);
        (void)gpq_jobs_feed(r, piece, n, &e);
        free(piece);
    }
    int code = gpq_jobs_end(r, &counts, &e);
    FUZZ_CHECK((code == 0) == (counts.bad == 0));
    FUZZ_CHECK(code == 0 || code == GPQ_EINVAL);
    if (code)
        fuzz_text(e.text, hash);
    *hash += counts.jobs + 31 * counts.comments + 1009 * counts.bad;
    gpq_jobs_close(r);
    return code;
}

static void fuzz_jobs(enum gpq_jobs_format format, const char *const *command, const uint8_t *data,
                      size_t size)
{
    const struct gpq_job_option text = { "name", command[1] };
    const struct gpq_jobs_how hows[] = {
        { .format = format, .known = fuzz_known },
        { .format = format, .known = fuzz_known, .command = command },
        { .format = format, .command = command, .texts = &text, .n_texts = 1 },
    };

    for (size_t i = 0; i < sizeof(hows) / sizeof(*hows); i++) {
        uint64_t whole = 1, bytes = 1, pieces = 1;
        int code = fuzz_read(&hows[i], data, size, 251, &whole);
        FUZZ_CHECK(fuzz_read(&hows[i], data, size, 1, &bytes) == code);
        FUZZ_CHECK(fuzz_read(&hows[i], data, size, 7, &pieces) == code);
        FUZZ_CHECK(whole == bytes && whole == pieces);
    }
}

#endif
