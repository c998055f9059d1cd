/* SPDX-License-Identifier: MIT */
/*
 * jobs.h - reads a jobs file: each of its lines, rows or objects becomes a job.
 *
 * A reader takes the bytes of a file in pieces of any size, and calls a function for each job, in
 * the order of the file.  The jobs do not depend on the pieces, so a file that grows can be read as
 * well.  The reader keeps the bytes of one job; only the header of a CSV file stays.
 *
 * One bad line refuses the file: from it on there are no jobs, and the end of the file fails with
 * `line 44: ...` of the first bad line and the number of further ones.  A caller that wants all or
 * nothing therefore uses the jobs only after the end.  The formats: docs/reference/jobs-files.md.
 */
#ifndef GPQ_JOBS_H
#define GPQ_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/store.h"

/* The longest line, row or object.  A longer one is refused. */
#define GPQ_JOBS_LINE_MOST ((size_t)16 << 20)
/* The longest argument that the kernel takes (execve(2)). */
#define GPQ_JOBS_ARGUMENT_MOST ((size_t)131071)

enum gpq_jobs_format {
    GPQ_JOBS_LINES, /* a shell command per line; comments begin with # */
    GPQ_JOBS_CSV,   /* a header and rows (RFC 4180) */
    GPQ_JOBS_JSONL, /* a JSON object per line */
    GPQ_JOBS_FILES, /* a path per line, without comments */
};

/* Returns the format that the name of a file has: .csv, .jsonl and .ndjson; any other: lines. */
enum gpq_jobs_format gpq_jobs_format_of(const char *path);

/* The value of an option of the command line, without the dashes: gpus, 2. */
struct gpq_job_option {
    const char *name, *value;
};

/* How jobs are made of a file.  All of it is lent until gpq_jobs_close. */
struct gpq_jobs_how {
    enum gpq_jobs_format format;
    const char *shell;                  /* runs shell lines; NULL: /bin/sh */
    const char *const *command;         /* a template of the command, NULL behind the last
                                            argument; NULL: the file has the commands */
    const struct gpq_job_option *texts; /* with a command: templates of options, for each job */
    size_t n_texts;
    const char *const *known; /* names of options that a line may set, NULL behind
                                            the last; NULL: none */
};

/* One job.  Its texts are UTF-8, and lent until the function returns. */
struct gpq_job {
    uint64_t line;           /* its first line in the file, from 1; 0: not from a file */
    const char *const *argv; /* the command, or the path of GPQ_JOBS_FILES; NULL behind the last */
    size_t n_argv;
    const struct gpq_job_option *options; /* those of how->texts, then those that the line sets; a
                                             later one counts */
    size_t n_options;
    bool is_line; /* argv is the shell, "-c", and a line of the file */
    bool replace; /* argv has names of the start, which the agent replaces (template.h); else
                     every byte of it is final */
};

/*
 * Returns 0, or a negative GPQ_E code with *e filled, which makes the line bad: the reader puts the
 * number of the line before the text.
 */
typedef int (*gpq_job_fn)(const struct gpq_job *job, void *user, struct gpq_error *e);

struct gpq_jobs_counts {
    uint64_t jobs;
    uint64_t comments; /* lines that are empty or comments */
    uint64_t bad;      /* lines that are refused, the first one included */
};

struct gpq_jobs;

/* Errors: EINVAL: the template has unknown names or bytes that are not UTF-8; ENOMEM. */
int gpq_jobs_open(const struct gpq_jobs_how *how, gpq_job_fn fn, void *user, struct gpq_jobs **ret,
                  struct gpq_error *e);
/*
 * Takes the next bytes of the file.  The last line waits until its newline has arrived.
 * Returns 0, or the code of the first bad line, then and from then on, with its text in *e.  The
 * caller may go on, so that the end counts all bad lines.
 */
int gpq_jobs_feed(struct gpq_jobs *r, const void *data, size_t size, struct gpq_error *e);
/* The line at which the bytes begin that wait for their newline; 0: there are none. */
uint64_t gpq_jobs_unended(const struct gpq_jobs *r);
/* Ends the file: a last line without newline counts.  Nothing may be fed behind it.  Returns as
 * gpq_jobs_feed.  *ret, which may be NULL, is filled in either case. */
int gpq_jobs_end(struct gpq_jobs *r, struct gpq_jobs_counts *ret, struct gpq_error *e);
void gpq_jobs_close(struct gpq_jobs *r);

/* Reads a whole file, "-": the standard input, with the calls above.  Errors: those of
 * gpq_jobs_end, and EINVAL: the file cannot be read. */
int gpq_jobs_file(const char *path, const struct gpq_jobs_how *how, gpq_job_fn fn, void *user,
                  struct gpq_jobs_counts *ret, struct gpq_error *e);

/* The one job of a command that stands on the command line, with the names of the start; how has
 * nothing but the command.  Errors: EINVAL, ENOMEM, and those of fn. */
int gpq_jobs_command(const char *const *command, gpq_job_fn fn, void *user, struct gpq_error *e);

#endif
