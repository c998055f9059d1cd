/* SPDX-License-Identifier: MIT */
/* rows.c - attempts as rows of a spreadsheet, and as the joblog of GNU parallel. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "view/names.h"
#include "view/plain.h"
#include "view/report/formats.h"
#include "view/words.h"

#define NS_PER_MS 1000000
#define NS_PER_SECOND 1000000000

/* ---- Values ---- */

/* "2026-11-13T20:00:05.250Z" */
static void put_time(FILE *f, int64_t ns)
{
    time_t seconds = (time_t)(ns / NS_PER_SECOND);
    struct tm tm;
    char text[40];

    if (ns <= 0 || !gmtime_r(&seconds, &tm))
        return;
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    fprintf(f, "%s.%03dZ", text, (int)(ns % NS_PER_SECOND / NS_PER_MS));
}

/* Seconds, to the ms. */
static void put_seconds(FILE *f, int64_t ns)
{
    fprintf(f, "%" PRId64 ".%03d", ns / NS_PER_SECOND, (int)(ns % NS_PER_SECOND / NS_PER_MS));
}

static int64_t ran(const struct gpv_night *n, const struct gpv_attempt *a)
{
    return gpv_until(n, a->ended) - a->started;
}

/* Whether rows are limited to batches that the reader has named. */
static bool any_asked(const struct gpv_night *n)
{
    for (size_t i = 0; i < n->batches.n; i++)
        if (n->batches.row[i].asked)
            return true;
    return false;
}

static bool is_asked(const struct gpv_night *n, const struct gpv_attempt *a)
{
    uint32_t i = gpv_find_batch(n, GPV_BATCH_OF(a->task));

    return i != GPV_NONE && n->batches.row[i].asked;
}

/* ---- CSV ---- */

/* A cell that begins with one of these is a formula, for a spreadsheet. */
static bool is_formula(const char *text)
{
    return *text && strchr("=+-@", *text) != NULL;
}

static void put_cell(FILE *f, const char *text)
{
    const char *quote = strpbrk(text, "\",") ? "\"" : "";

    fputs(quote, f);
    if (is_formula(text))
        fputc('\'', f);
    gpv_put_plain(f, text, '"');
    fputs(quote, f);
}

/* Names of GPUs with blanks between them. */
static void put_gpus(FILE *f, const struct gpv_night *n, struct gpv_set set)
{
    const char *quote = set.n ? "\"" : "";

    fputs(quote, f);
    for (uint32_t i = 0; i < set.n; i++) {
        const char *name = gpv_gpu_name(n, set.gpu[i]);
        fputs(i ? " " : is_formula(name) ? "'" : "", f);
        gpv_put_plain(f, name, '"');
    }
    fputs(quote, f);
}

/* Exit status and signal, which struct gpv_attempt has in one number. */
static void put_status(FILE *f, const struct gpv_attempt *a)
{
    if (a->number == 0 || a->outcome == GPV_RUNNING)
        fputs(",", f);
    else if (a->status < 0)
        fprintf(f, ",%d", -a->status);
    else
        fprintf(f, "%d,", a->status);
}

static void put_times(FILE *f, const struct gpv_night *n, const struct gpv_attempt *a)
{
    put_time(f, a->ready);
    fputc(',', f);
    if (a->number)
        put_time(f, a->started);
    fputc(',', f);
    put_time(f, a->ended);
    fputc(',', f);
    if (a->number && a->ready && a->started >= a->ready)
        put_seconds(f, a->started - a->ready);
    fputc(',', f);
    if (a->number)
        put_seconds(f, ran(n, a));
}

static void put_attempt(FILE *f, const struct gpv_night *n, const struct gpv_attempt *a)
{
    char id[GPV_WORD];
    uint32_t class = gpv_class_of(n, a);

    fprintf(f, "%s,%" PRIu32 ",", gpv_task_id(a->task, id), a->number);
    put_cell(f, gpv_batch_name(n, GPV_BATCH_OF(a->task)));
    fputc(',', f);
    put_cell(f, gpv_name_of(n, a->task));
    fputc(',', f);
    put_cell(f, gpv_class_name(n, class));
    fprintf(f, ",%s,", gpv_outcome_word(a->outcome));
    put_status(f, a);
    fputc(',', f);
    put_times(f, n, a);
    fputc(',', f);
    put_gpus(f, n, gpv_set(n, a->set));
    fputc(',', f);
    put_cell(f, gpv_text(n, a->text));
    fputc('\n', f);
}

void gpv_report_csv(const struct gpv_night *n, FILE *f)
{
    bool some = any_asked(n);

    fputs("task,attempt,batch,name,class,outcome,status,signal,ready,started,ended,waited_s,ran_s,"
          "gpus,text\n",
          f);
    for (size_t i = 0; i < n->attempts.n; i++)
        if (!some || is_asked(n, &n->attempts.row[i]))
            put_attempt(f, n, &n->attempts.row[i]);
}

/* ---- The joblog ---- */

/* A bad end without a status of its own must not read as success: GNU parallel has -1 for a job
 * that it has killed. */
static int exit_value(const struct gpv_attempt *a)
{
    if (a->status > 0 || a->outcome == GPV_OK)
        return a->status;
    return a->status < 0 ? 0 : -1;
}

void gpv_report_joblog(const struct gpv_night *n, FILE *f)
{
    bool some = any_asked(n);

    fputs("Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n", f);
    for (size_t i = 0; i < n->attempts.n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[i];
        if (!a->last || a->number == 0 || a->outcome == GPV_RUNNING || (some && !is_asked(n, a)))
            continue;
        fprintf(f, "%" PRIu32 "\t", GPV_NUMBER_OF(a->task));
        gpv_put_plain(f, gpv_text(n, n->host), 0);
        fputc('\t', f);
        put_seconds(f, a->started);
        fputc('\t', f);
        put_seconds(f, ran(n, a));
        fprintf(f, "\t0\t0\t%d\t%d\t", exit_value(a), a->status < 0 ? -a->status : 0);
        gpv_put_plain(f, gpv_name_of(n, a->task), 0);
        fputc('\n', f);
    }
}
