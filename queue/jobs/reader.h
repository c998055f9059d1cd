/* SPDX-License-Identifier: MIT */
/* reader.h - the inside of a reader: the bytes of a file, and the faults of its lines. */
#ifndef GPQ_JOBS_READER_H
#define GPQ_JOBS_READER_H

#include "queue/jobs/make.h"

/* Where a CSV file is being read (csv.c). */
struct gpq_csv {
    int state;
    bool quoted;         /* the field that is being read */
    uint64_t quote_line; /* the line of its quote */
    uint64_t row_line;   /* the line at which the row begins */
    size_t fields;       /* of this row, those that are not kept included */
    size_t bytes;        /* of this row */
    struct gpq_texts row;
    struct gpq_texts header;   /* without columns: not read yet */
    size_t *columns;           /* the column of each slot; SIZE_MAX: none */
    size_t *options;           /* the columns that are options */
    const char **option_names; /* and their names */
    size_t n_options;
    size_t command; /* the column with the command */
};

struct gpq_jobs {
    struct gpq_jobs_how how;
    gpq_job_fn fn;
    void *user;
    struct gpq_make make;
    struct gpq_jobs_counts counts;
    struct gpq_error first; /* the first fault; code 0: none */
    bool broken;            /* nothing is read any more */
    size_t mark;            /* bytes of a byte order mark that have been read; 3: it is over */
    uint64_t line;          /* that is being read, from 1 */
    struct gpq_texts rest;  /* of lines: the beginning of one */
    bool skips;             /* of lines: this one is too long */
    struct gpq_csv csv;
};

/* Refuses the line.  The text of *e gets its number, if it is the first one. */
void gpq_reader_refuse(struct gpq_jobs *r, uint64_t line, const struct gpq_error *e);
/* The same, with a text. */
void gpq_reader_bad(struct gpq_jobs *r, uint64_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Refuses the line, and all bytes behind it. */
void gpq_reader_stop(struct gpq_jobs *r, uint64_t line, const struct gpq_error *e);
/* Ends the job in the making, and hands it over; with a code, refuses its line. */
void gpq_reader_job(struct gpq_jobs *r, uint64_t line, int code, struct gpq_error *e);
/* Writes names with commas between them, as many as there is room for. */
void gpq_reader_list(char *ret, size_t size, const char *const *names, size_t n);

/* Lines, and what the formats make of one: text without its newline. */
void gpq_lines_feed(struct gpq_jobs *r, const char *data, size_t size);
void gpq_lines_end(struct gpq_jobs *r);
void gpq_command_line(struct gpq_jobs *r, const char *text, size_t size);
void gpq_json_line(struct gpq_jobs *r, const char *text, size_t size);

void gpq_csv_feed(struct gpq_jobs *r, const char *data, size_t size);
void gpq_csv_end(struct gpq_jobs *r);
void gpq_csv_free(struct gpq_csv *csv);

#endif
