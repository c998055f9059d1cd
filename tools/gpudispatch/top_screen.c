/* SPDX-License-Identifier: MIT */
/* top_screen.c - the screen of top on a terminal: its loop, and the verbs that it runs. */
#include "top.h"

#ifdef TOP_TERMINAL

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "night.h"
#include "view/top/terminal.h"
#include "view/words.h"

#define NS_PER_S INT64_C(1000000000)

enum { PANE_MOST = 262144, BLOCK = 4096, SEARCH_S = 2 };

struct top {
    const struct call *call;
    struct source *source;
    struct gpv_top_state t;
    struct gpv_snapshot newest, shown; /* shown: while it is paused, an earlier one */
    bool ended, failed;                /* the source has ended; no memory */
    pid_t child; /* `explain` or `log`, whose output the pane shows; 0: none */
    int output;  /* of it; -1: none */
    bool cut;    /* the pane lacks the beginning of it */
};

static const struct gpv_snapshot *shown(const struct top *p)
{
    return p->shown.time ? &p->shown : &p->newest;
}

/* ---- A verb in the pane ---- */

static void end_child(struct top *p)
{
    if (p->output >= 0)
        (void)close(p->output);
    p->output = -1;
    if (p->child > 0) {
        (void)kill(p->child, SIGTERM);
        while (waitpid(p->child, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    p->child = 0;
}

/* In the child. */
static _Noreturn void run_verb(const struct top *p, const char *verb, const char *task, int output)
{
    static const enum option_id passed[] = { OPTION_STATE_DIR, OPTION_CONFIG };
    char option[2][32];
    const char *argv[8] = { p->call->argv[0], verb, task };
    sigset_t none;
    size_t n = 3;

    for (size_t i = 0; i < 2; i++)
        if (p->call->given[passed[i]]) {
            snprintf(option[i], sizeof option[i], "--%s", options[passed[i]].name);
            argv[n++] = option[i];
            argv[n++] = p->call->value[passed[i]];
        }
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0); /* its output is no terminal, and ^C is for this program */
    int input = open("/dev/null", O_RDONLY);
    if (input < 0 || dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
        dup2(output, STDERR_FILENO) < 0)
        _exit(EXIT_FAILED);
    (void)execv("/proc/self/exe", (char **)argv);
    _exit(EXIT_FAILED);
}

static void open_pane(struct top *p, const char *verb, uint64_t task)
{
    struct gpv_pane *pane = &p->t.pane;
    char id[GPV_WORD];
    int ends[2];

    end_child(p);
    if (pipe2(ends, O_CLOEXEC))
        return;
    (void)gpv_task_id(task, id);
    p->child = fork();
    if (p->child == 0)
        run_verb(p, verb, id, ends[1]);
    (void)close(ends[1]);
    p->output = ends[0];
    p->cut = false;
    free(pane->text);
    *pane = (struct gpv_pane){ .open = true };
    snprintf(pane->title, sizeof pane->title, "gpudispatch %s %s", verb, id);
    if (p->child < 0)
        end_child(p);
}

/* The newest part of a long output is kept. */
static void read_child(struct top *p)
{
    struct gpv_pane *pane = &p->t.pane;
    char block[BLOCK];
    ssize_t n = read(p->output, block, sizeof block);
    char *text = n > 0 ? realloc(pane->text, pane->size + (size_t)n + 1) : NULL;

    if (n < 0 && errno == EINTR)
        return;
    if (!text) {
        end_child(p);
        return;
    }
    memcpy(text + pane->size, block, (size_t)n);
    pane->text = text;
    pane->size += (size_t)n;
    text[pane->size] = 0;
    if (pane->size > PANE_MOST) {
        size_t rest = PANE_MOST / 2;
        memmove(text, text + pane->size - rest, rest + 1);
        pane->size = rest;
        snprintf(p->t.notice, sizeof p->t.notice,
                 "the beginning is left out: gpudispatch log has all of it");
    }
}

static void wish(struct top *p, enum gpv_wish wish, uint64_t task)
{
    if (wish != GPV_WISH_EXPLAIN && wish != GPV_WISH_LOG)
        return;
    if (p->source->still)
        snprintf(p->t.notice, sizeof p->t.notice, "a recording has no %s: only a queue has",
                 wish == GPV_WISH_LOG ? "output of tasks" : "explain");
    else
        open_pane(p, wish == GPV_WISH_LOG ? "log" : "explain", task);
}

/* ---- Snapshots ---- */

static void take(struct top *p, struct gpv_snapshot *next)
{
    gpv_now_carry(&p->newest, next);
    if (p->t.paused && !p->shown.time)
        p->shown = p->newest;
    else
        gpv_snapshot_free(&p->newest);
    p->newest = *next;
}

static void read_source(struct top *p)
{
    bool was_lost = p->source->lost;
    struct gpv_snapshot next;
    char clock[GPV_WORD];
    int got;

    while ((got = p->source->next(p->source, false, &next)) > 0)
        take(p, &next);
    if (got < 0) {
        p->ended = true;
        snprintf(p->t.notice, sizeof p->t.notice, "%.90s", p->source->end);
    } else if (p->source->lost) {
        snprintf(p->t.notice, sizeof p->t.notice, "no agent runs: shown is %s",
                 gpv_clock_seconds(p->newest.time, clock));
    } else if (was_lost) {
        p->t.notice[0] = 0;
    }
}

static void go_on(struct top *p)
{
    if (p->t.paused)
        return;
    gpv_snapshot_free(&p->shown);
    p->shown = (struct gpv_snapshot){ 0 };
}

/* ---- The loop ---- */

static void draw(struct top *p)
{
    struct gpv_screen screen;

    gpv_terminal_size(&p->t.columns, &p->t.lines);
    if (!p->t.paused && !p->source->lost)
        p->t.now = top_now(p->source, shown(p));
    if (gpv_top_draw(&p->t, shown(p), &screen)) {
        p->failed = true;
        return;
    }
    gpv_terminal_show(&screen);
    gpv_screen_free(&screen);
}

/* Until the screen differs: a second, or a minute while nothing runs.  [V1] */
static int64_t until_next(const struct top *p)
{
    int64_t step = gpv_top_ticks(shown(p)) ? NS_PER_S : 60 * NS_PER_S;

    if (p->source->lost)
        return SEARCH_S * NS_PER_S;
    if (p->source->still || p->ended || p->t.paused)
        return -1;
    return step - top_now(p->source, shown(p)) % step;
}

/* False: it ends. */
static bool read_keys(struct top *p)
{
    uint32_t key;

    while ((key = gpv_terminal_key()) != 0) {
        uint64_t task;
        enum gpv_wish w = gpv_top_key(&p->t, shown(p), key, &task);
        if (w == GPV_WISH_QUIT)
            return false;
        wish(p, w, task);
        go_on(p);
    }
    if (!p->t.pane.open)
        end_child(p);
    return true;
}

static void loop(struct top *p)
{
    for (;;) {
        struct pollfd fds[2] = { { .fd = p->ended ? -1 : p->source->fd, .events = POLLIN },
                                 { .fd = p->output, .events = POLLIN } };
        draw(p);
        if (p->failed || gpv_terminal_wait(fds, 2, until_next(p)) < 0)
            return;
        if (fds[0].revents || p->source->lost)
            read_source(p);
        if (fds[1].revents)
            read_child(p);
        if (!read_keys(p))
            return;
    }
}

/* What is said of a connection would stand in the middle of the screen, which says it, too.
 * Returns the descriptor of before, or -1. */
static int silence(void)
{
    int before = isatty(STDERR_FILENO) ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
    int nowhere = before >= 0 ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;

    if (nowhere >= 0) {
        (void)dup2(nowhere, STDERR_FILENO);
        (void)close(nowhere);
    }
    return before;
}

static void speak(int before)
{
    if (before < 0)
        return;
    (void)dup2(before, STDERR_FILENO);
    (void)close(before);
}

static int run(struct top *p, bool ascii)
{
    int number, standard_error;

    if (gpv_terminal_open()) {
        fprintf(stderr, "gpudispatch: top: the terminal cannot be set: %s\n", strerror(errno));
        return EXIT_FAILED;
    }
    standard_error = silence();
    p->source->seeks = true;
    gpv_terminal_size(&p->t.columns, &p->t.lines);
    gpv_top_init(&p->t, p->t.columns, p->t.lines, ascii);
    p->t.live = true;
    loop(p);
    gpv_terminal_close();
    speak(standard_error);
    end_child(p);
    free(p->t.pane.text);
    number = gpv_terminal_signal();
    if (number) {
        (void)signal(number, SIG_DFL);
        (void)raise(number);
    }
    return p->failed ? night_no_memory(p->call) : EXIT_OK;
}

int top_screen(const struct call *call, struct source *source, bool ascii)
{
    struct top p = { .call = call, .source = source, .output = -1 };
    int status;

    if (!gpv_terminal_is_known()) {
        const char *term = getenv("TERM");
        fprintf(stderr,
                "gpudispatch: top: no entry for the terminal '%s' (TERM): a screen every 5 s\n",
                term ? term : "");
        return -1;
    }
    if (source->next(source, true, &p.newest) < 0) {
        fprintf(stderr, "gpudispatch: top: %s\n", source->end);
        return EXIT_NONE;
    }
    status = run(&p, ascii);
    gpv_snapshot_free(&p.newest);
    gpv_snapshot_free(&p.shown);
    return status;
}

#else

int top_screen(const struct call *call, struct source *source, bool ascii)
{
    (void)source;
    (void)ascii;
    fprintf(stderr, "gpudispatch: %s: built without top (-Dtop=enabled); --once and --json work\n",
            call->verb->name);
    return EXIT_FAILED;
}

#endif
