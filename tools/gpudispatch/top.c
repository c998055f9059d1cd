/* SPDX-License-Identifier: MIT */
/* top.c - what runs now, as one screen, as lines of JSON, or on a terminal. */
#include "top.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "given.h"
#include "night.h"
#include "tools/cli/out.h"

#define NS_PER_S INT64_C(1000000000)

enum { PIPE_COLUMNS = 80, PAUSE_S = 5, MOST = 1000 };

int64_t top_now(const struct source *source, const struct gpv_snapshot *s)
{
    struct timespec t;
    int64_t now;

    if (source->still || clock_gettime(CLOCK_REALTIME, &t))
        return s->time;
    now = (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
    return now > s->time ? now : s->time;
}

/* ---- One screen ---- */

/* As curses reads them; 0: the environment has none. */
static int number_of(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    long n = text ? strtol(text, &end, 10) : 0;

    return text && *text && !*end && n > 0 && n <= MOST ? (int)n : 0;
}

/* Standard output is a terminal, or a pipe, which has as many lines as there are rows.  -1: no
 * memory. */
static int set_size(struct gpv_top_state *t, const struct gpv_snapshot *s)
{
    struct winsize size = { 0 };
    int columns = number_of("COLUMNS"), lines = number_of("LINES");

    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        columns = columns ? columns : size.ws_col;
        lines = lines ? lines : size.ws_row - 1; /* the prompt has the last one */
    }
    t->columns = columns > 0 && columns <= MOST ? columns : PIPE_COLUMNS;
    t->lines = lines > 0 && lines <= MOST ? lines : gpv_top_lines(t, s);
    return t->lines;
}

static int put_screen(const struct call *call, const struct source *source,
                      const struct gpv_snapshot *s, bool ascii)
{
    struct gpv_top_state t;
    struct gpv_screen screen;

    gpv_top_init(&t, PIPE_COLUMNS, 0, ascii);
    if (set_size(&t, s) < 0)
        return night_no_memory(call);
    gpv_top_init(&t, t.columns, t.lines, ascii);
    t.now = top_now(source, s);
    if (gpv_top_draw(&t, s, &screen))
        return night_no_memory(call);
    gpv_screen_print(&screen, stdout);
    gpv_screen_free(&screen);
    return out_flush();
}

/* ---- The other ways ---- */

static int end_of(const struct call *call, const struct source *source)
{
    if (source->still)
        return EXIT_OK;
    fprintf(stderr, "gpudispatch: %s: %s\n", call->verb->name, source->end);
    return EXIT_NONE;
}

static int once(const struct call *call, struct source *source, bool ascii)
{
    struct gpv_snapshot s;
    int status;

    if (source->next(source, true, &s) < 0)
        return end_of(call, source);
    if (call->given[OPTION_JSON]) {
        gpv_snapshot_write(&s, stdout);
        putchar('\n');
        status = out_flush();
    } else {
        status = put_screen(call, source, &s, ascii);
    }
    gpv_snapshot_free(&s);
    return status;
}

static int all_as_json(const struct call *call, struct source *source)
{
    struct gpv_snapshot s;
    int status = EXIT_OK;

    while (status == EXIT_OK && !out_reader_gone()) {
        if (source->next(source, true, &s) < 0)
            return end_of(call, source);
        gpv_snapshot_write(&s, stdout);
        putchar('\n');
        status = out_flush();
        gpv_snapshot_free(&s);
    }
    return status;
}

/* A terminal of an unknown kind gets screens one below the other. */
static int again_and_again(const struct call *call, struct source *source, bool ascii)
{
    static const struct timespec pause = { .tv_sec = PAUSE_S };
    struct gpv_snapshot s = { 0 };
    int status = source->next(source, true, &s) < 0 ? end_of(call, source) : EXIT_OK;

    while (status == EXIT_OK && s.time) {
        struct gpv_snapshot next;
        int got;
        status = put_screen(call, source, &s, ascii);
        if (status || source->still)
            break;
        putchar('\n');
        (void)nanosleep(&pause, NULL);
        while ((got = source->next(source, false, &next)) > 0) {
            gpv_now_carry(&s, &next);
            gpv_snapshot_free(&s);
            s = next;
        }
        if (got < 0)
            status = end_of(call, source);
    }
    gpv_snapshot_free(&s);
    return status;
}

/* ---- The verb ---- */

static int show(const struct call *call, struct source *source)
{
    bool ascii = call->given[OPTION_ASCII] || strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    int status;

    if (call->given[OPTION_ONCE])
        return once(call, source, ascii);
    if (call->given[OPTION_JSON])
        return all_as_json(call, source);
    if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
        return once(call, source, ascii);
    status = top_screen(call, source, ascii);
    return status < 0 ? again_and_again(call, source, ascii) : status;
}

/* As the agent has it: 250 ms to an hour. */
static int read_every(const struct call *call, uint64_t *ret)
{
    int status = gpq_option_duration(call, OPTION_AT_MOST_EVERY, ret);
    if (status == EXIT_OK && (*ret < NS_PER_S / 4 || *ret > 3600 * NS_PER_S))
        return usage(call->verb, "top: --at-most-every is '%s', expected 250ms to 1h",
                     call->value[OPTION_AT_MOST_EVERY]);
    return status;
}

int top_run(const struct call *call)
{
    uint64_t every = NS_PER_S;
    struct source source;
    int status;

    (void)setlocale(LC_CTYPE, ""); /* for the widths of characters */
    status = read_every(call, &every);
    if (status != EXIT_OK)
        return status;
    status = source_open(&source, call, NULL, every);
    if (status == EXIT_OK)
        status = show(call, &source);
    source.close(&source);
    return status;
}
