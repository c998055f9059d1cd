/* SPDX-License-Identifier: MIT */
/*
 * report.h - owns all output of the program, during the run and at its end.
 *
 *   stdout        one line per file, NAME: TEXT (no lines if JSON goes there)
 *   JSON file     one object per file when the file ends, then one with "summary": true
 *   stderr        notes, progress (one live line on a terminal, else a line now and
 *                 then) and the tables at the end
 *
 * Two threads may use it: the one inside gpud_dispatcher_run and the one of watch.c.
 */
#ifndef TRANSCRIBE_REPORT_H
#define TRANSCRIBE_REPORT_H

#include <gpudispatch/gpudispatch.h>
#include <pthread.h>
#include <stdio.h>

#include "recordings.h"

/* The program reads the statistics of this many slots, and so starts no more workers. */
enum { WORKERS_MAX = 64 };

struct report {
    pthread_mutex_t lock;
    const struct recordings *list;
    FILE *json;          /* NULL: none */
    int text_on_stdout;
    int live;            /* stderr is a terminal */
    int live_shown;      /* the live line is on screen now */
    uint64_t started_at;
    uint64_t progress_at; /* of the last progress line that was not live */
    size_t with_text;    /* SUCCESS with a text that is not empty */
    uint64_t audio_bytes; /* of the files that ended SUCCESS */
};

/* Facts of the summary that the dispatcher's counters do not have. */
struct report_end {
    uint32_t killed;      /* workers that --kill-one killed */
    int interrupted;
};

/* Begins a report.  json may be NULL. */
void report_init(struct report *r, const struct recordings *list, FILE *json, int text_on_stdout);

/* Ends a report.  Frees only its lock. */
void report_fini(struct report *r);

/* Prints the outcome of one file.  The event's tag is the file's number in the list. */
void report_outcome(struct report *r, const struct gpud_event *event);

/* Prints the failed setup of a worker, with the worker's output. */
void report_setup_failure(struct report *r, const struct gpud_event *event);

/* Prints one line on stderr. */
void report_note(struct report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the progress of the run. */
void report_progress(struct report *r, gpud_dispatcher *d);

/*
 * Prints the tables and the last JSON line.
 * Returns: 0 when all files ended SUCCESS, else 1.
 */
int report_summary(struct report *r, gpud_dispatcher *d, const struct report_end *end);

#endif
