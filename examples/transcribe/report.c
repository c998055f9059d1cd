/* SPDX-License-Identifier: MIT */
/*
 * report.c - owns the texts of lines and tables, and the lock that keeps lines whole.
 */
#include "report.h"

#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "json.h"
#include "sound.h"

#define NS_PER_SECOND 1000000000ull

/* Between two progress lines if stderr is not a terminal: a log should have few of them. */
static const uint64_t progress_pause = 2 * NS_PER_SECOND;

/* For the live line, if the terminal does not report its width. */
enum { COLUMNS_GUESS = 80, LINE_BYTES = 512 };

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

static double seconds(uint64_t ns)
{
    return (double)ns / (double)NS_PER_SECOND;
}

static double audio_seconds(uint64_t bytes)
{
    return (double)bytes / G722_BYTES_PER_SECOND;
}

static uint64_t span(uint64_t from, uint64_t to)
{
    return from != 0 && to > from ? to - from : 0;
}

void report_init(struct report *r, const struct recordings *list, FILE *json, int text_on_stdout)
{
    *r = (struct report){ .list = list, .json = json, .text_on_stdout = text_on_stdout };
    pthread_mutex_init(&r->lock, NULL);
    r->live = isatty(STDERR_FILENO);
    r->started_at = r->progress_at = now();
}

void report_fini(struct report *r)
{
    pthread_mutex_destroy(&r->lock);
}

/* Takes the lock and erases the live line, so that another line can be printed. */
static void begin(struct report *r)
{
    pthread_mutex_lock(&r->lock);
    if (r->live_shown)
        fputs("\r\033[K", stderr);
    r->live_shown = 0;
}

static void end(struct report *r)
{
    fflush(stderr);
    pthread_mutex_unlock(&r->lock);
}

/* ---- one file ---- */

/* Writes the reason why a file has no text. */
static void describe(char *line, size_t size, const struct gpud_event *e)
{
    if (e->outcome == GPUD_OUTCOME_CRASHED && e->exit_kind == GPUD_EXIT_SIGNAL)
        snprintf(line, size, "its worker died of signal %d", (int)e->exit_status);
    else if (e->outcome == GPUD_OUTCOME_CRASHED && e->exit_kind == GPUD_EXIT_CODE)
        snprintf(line, size, "its worker exited with %d", (int)e->exit_status);
    else if (e->outcome == GPUD_OUTCOME_TIMEOUT)
        snprintf(line, size, "took longer than its limit, stopped after %.1f s",
                 seconds(span(e->started_at, e->ended_at)));
    else if (e->text != NULL && e->text[0] != '\0')
        snprintf(line, size, "%s", e->text);
    else if (e->code != 0)
        snprintf(line, size, "%s", gpud_error_text(e->code));
    else
        snprintf(line, size, "while %s", gpud_phase_name(e->phase));
}

static void json_outcome(FILE *f, const struct recording *rec, const struct gpud_event *e)
{
    char why[LINE_BYTES];
    fputs("{\"file\": ", f);
    json_string(f, rec->name, strlen(rec->name));
    json_field(f, "outcome", gpud_outcome_name(e->outcome));
    if (e->outcome == GPUD_OUTCOME_SUCCESS) {
        fputs(", \"text\": ", f);
        json_string(f, e->result, (size_t)e->result_size);
    } else {
        describe(why, sizeof why, e);
        json_field(f, "error", why);
        json_field(f, "phase", gpud_phase_name(e->phase));
    }
    fprintf(f, ", \"attempt\": %u", (unsigned)e->attempt);
    if (e->slot != GPUD_NO_SLOT)
        fprintf(f, ", \"slot\": %u", (unsigned)e->slot);
    fprintf(f, ", \"audio_s\": %.3f, \"wait_s\": %.3f, \"run_s\": %.3f}\n",
            audio_seconds(rec->bytes), seconds(span(e->queued_at, e->started_at)),
            seconds(span(e->started_at, e->ended_at)));
    fflush(f);
}

static void text_success(const struct recording *rec, const struct gpud_event *e)
{
    const char *text = e->result_size > 0 ? e->result : "";
    printf("%s: %.*s\n", rec->name, (int)e->result_size, text);
    fflush(stdout);
}

/* Prints one line.  CANCELLED and NO_WORKER have one reason for many files, printed before. */
static void note_failure(const struct recording *rec, const struct gpud_event *e)
{
    char why[LINE_BYTES];
    if (e->outcome == GPUD_OUTCOME_CANCELLED || e->outcome == GPUD_OUTCOME_NO_WORKER)
        return;
    describe(why, sizeof why, e);
    fprintf(stderr, "transcribe: %s: %s: %s\n", rec->name, gpud_outcome_name(e->outcome), why);
}

void report_outcome(struct report *r, const struct gpud_event *e)
{
    const struct recording *rec = &r->list->items[e->tag];
    int success = e->outcome == GPUD_OUTCOME_SUCCESS;
    begin(r);
    if (success) {
        r->with_text += e->result_size > 0;
        r->audio_bytes += rec->bytes;
    }
    if (r->json != NULL)
        json_outcome(r->json, rec, e);
    if (success && r->text_on_stdout)
        text_success(rec, e);
    if (!success)
        note_failure(rec, e);
    else if (e->attempt > 1)
        fprintf(stderr, "transcribe: %s: SUCCESS at attempt %u, its first worker died\n", rec->name,
                (unsigned)e->attempt);
    end(r);
}

void report_setup_failure(struct report *r, const struct gpud_event *e)
{
    begin(r);
    fprintf(stderr, "transcribe: worker %u does not start: %s\n", (unsigned)e->slot,
            e->text != NULL && e->text[0] != '\0' ? e->text : gpud_error_text(e->code));
    if (e->output_size > 0)
        fprintf(stderr, "%.*s", (int)e->output_size, e->output);
    if (e->output_size > 0 && e->output[e->output_size - 1] != '\n')
        fputc('\n', stderr);
    end(r);
}

void report_note(struct report *r, const char *format, ...)
{
    va_list args;
    begin(r);
    fputs("transcribe: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    end(r);
}

/* ---- progress ---- */

/* Appends to a line, which is cut at its size. */
static void append(char *line, size_t size, const char *format, ...)
{
    size_t used = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, size - used, format, args);
    va_end(args);
}

static void append_eta(char *line, size_t size, const struct gpud_stats *s)
{
    if (s->eta_low == GPUD_NEVER || s->eta_high == GPUD_NEVER)
        return;
    double low = seconds(s->eta_low), high = seconds(s->eta_high);
    if (high - low < 1)
        append(line, size, ", %.0f s left", high);
    else
        append(line, size, ", %.0f to %.0f s left", low, high);
}

/* Appends the names of the running files.  Returns their number. */
static int append_running(char *line, size_t size, gpud_dispatcher *d)
{
    struct gpud_slot_stats rows[WORKERS_MAX] = { { .struct_size = sizeof rows[0] } };
    int slots = gpud_dispatcher_slots(d, rows, WORKERS_MAX), running = 0;
    for (int i = 0; i < slots && i < WORKERS_MAX; i++) {
        if (rows[i].task_id != 0)
            append(line, size, "%s%s", running++ == 0 ? ": " : ", ", rows[i].label);
    }
    return running;
}

static void compose(char *line, size_t size, const struct report *r, gpud_dispatcher *d)
{
    struct gpud_stats s = GPUD_STATS_INIT;
    char names[LINE_BYTES] = "";
    if (gpud_dispatcher_stats(d, &s) != 0)
        return;
    int running = append_running(names, sizeof names, d);
    append(line, size, "%llu/%zu files", (unsigned long long)s.delivered, r->list->n);
    if (s.first_start == 0) {
        append(line, size, ", loading the speech engine");
        return;
    }
    append(line, size, ", %.1f/s", s.throughput);
    append_eta(line, size, &s);
    append(line, size, ", %d running%s", running, names);
}

static size_t columns(void)
{
    struct winsize w;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1)
        return w.ws_col;
    return COLUMNS_GUESS;
}

void report_progress(struct report *r, gpud_dispatcher *d)
{
    char line[LINE_BYTES] = "";
    uint64_t at = now();
    if (!r->live && at - r->progress_at < progress_pause)
        return;
    r->progress_at = at;
    compose(line, sizeof line, r, d);
    begin(r);
    if (r->live)
        fprintf(stderr, "\r%.*s", (int)(columns() - 1), line);
    else
        fprintf(stderr, "transcribe: %s\n", line);
    r->live_shown = r->live;
    end(r);
}

/* ---- the end ---- */

static void table_outcomes(const struct gpud_stats *s, size_t files)
{
    const uint64_t counts[GPUD_OUTCOME_COUNT] = { 0, s->success, s->error, s->timeout,
                                                  s->crashed, s->cancelled, s->no_worker };
    fprintf(stderr, "\n  %-12s %6zu\n", "files", files);
    for (uint32_t o = 1; o < GPUD_OUTCOME_COUNT; o++) {
        if (counts[o] > 0 || o == GPUD_OUTCOME_SUCCESS)
            fprintf(stderr, "  %-12s %6llu\n", gpud_outcome_name(o), (unsigned long long)counts[o]);
    }
    if (s->accepted < files)
        fprintf(stderr, "  %-12s %6llu\n", "not begun", (unsigned long long)(files - s->accepted));
}

static void table_slots(gpud_dispatcher *d)
{
    struct gpud_slot_stats rows[WORKERS_MAX] = { { .struct_size = sizeof rows[0] } };
    int slots = gpud_dispatcher_slots(d, rows, WORKERS_MAX);
    fprintf(stderr, "\n  worker  device      done  setup s   work s   wait s  restarts\n");
    for (int i = 0; i < slots && i < WORKERS_MAX; i++) {
        const struct gpud_slot_stats *row = &rows[i];
        uint64_t done = 0;
        for (uint32_t o = 1; o < GPUD_OUTCOME_COUNT; o++)
            done += row->outcomes[o];
        fprintf(stderr, "  %6u  %-8s %7llu %8.2f %8.2f %8.2f %9u\n", (unsigned)row->slot,
                row->device, (unsigned long long)done, seconds(row->setup_time),
                seconds(row->work_time), seconds(row->wait_time), (unsigned)row->restarts);
    }
}

static void table(const struct report *r, gpud_dispatcher *d, const struct gpud_stats *s,
                  double wall_s)
{
    double audio_s = audio_seconds(r->audio_bytes);
    table_outcomes(s, r->list->n);
    table_slots(d);
    fprintf(stderr, "\n  %.1f s of speech in %.1f s (%.1f times real time), %zu files with text\n",
            audio_s, wall_s, wall_s > 0 ? audio_s / wall_s : 0, r->with_text);
    fprintf(stderr,
            "  one file: median %.2f s, 99th percentile %.2f s; retried %llu, restarts %llu\n",
            seconds(s->run_p50), seconds(s->run_p99), (unsigned long long)s->retried,
            (unsigned long long)s->restarts);
}

static void json_summary(const struct report *r, const struct gpud_stats *s, double wall_s,
                         const struct report_end *e)
{
    struct gpud_stats_info info = { .struct_size = sizeof info };
    fprintf(
        r->json,
        "{\"summary\": true, \"files\": %zu, \"with_text\": %zu, \"workers\": %llu, \"killed\": %u",
        r->list->n, r->with_text, (unsigned long long)s->slots, (unsigned)e->killed);
    fprintf(r->json, ", \"interrupted\": %s, \"wall_s\": %.3f, \"audio_s\": %.3f",
            e->interrupted ? "true" : "false", wall_s, audio_seconds(r->audio_bytes));
    fprintf(r->json, ", \"throughput\": %.3f, \"stats\": {", s->throughput);
    for (size_t i = 0; gpud_stats_info(i, &info) == 0; i++)
        fprintf(r->json, "%s\"%s\": %llu", i == 0 ? "" : ", ", info.name,
                (unsigned long long)gpud_stats_value(s, i));
    fputs("}}\n", r->json);
}

int report_summary(struct report *r, gpud_dispatcher *d, const struct report_end *e)
{
    struct gpud_stats s = GPUD_STATS_INIT;
    double wall_s = seconds(now() - r->started_at);
    (void)gpud_dispatcher_stats(d, &s); /* cannot fail: d is a dispatcher of this process */
    begin(r);
    table(r, d, &s, wall_s);
    if (r->json != NULL)
        json_summary(r, &s, wall_s, e);
    end(r);
    return s.success == r->list->n ? 0 : 1;
}
