/* SPDX-License-Identifier: MIT */
/* follow.c - the output of a task as it comes. */
#include "queue/client/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "queue/client/ids.h"
#include "queue/client/interrupts.h"
#include "queue/client/log.h"
#include "queue/client/option.h"
#include "queue/client/reasons.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"
#include "tools/cli/out.h"

/* How often a log is looked at where the kernel does not tell. */
enum { STEP_MS = 500 };
/* How long a task may wait without a word about it. */
#define NOTICE UINT64_C(2000000000)

int gpq_task_row(struct gpq_session *s, const char *task, json_t **ret)
{
    json_t *reply;
    int status = gpq_session_insist(s, json_pack("{s:s, s:s}", "do", "task", "task", task), &reply);
    *ret = status == 0 ? json_incref(json_object_get(reply, "task")) : NULL;
    json_decref(reply);
    return status;
}

json_t *gpq_last_attempt(struct gpq_session *s, const json_t *row)
{
    json_t *reply, *ret = NULL;
    int64_t attempt = gpq_number_of(row, "attempt");
    if (attempt == 0)
        return NULL;
    json_t *request =
        json_pack("{s:s, s:s, s:i}", "do", "attempts", "task", gpq_text_of(row, "task"), "most", 1);
    if (attempt > 1)
        (void)json_object_set_new(request, "after", json_integer(attempt - 1));
    if (gpq_session_insist(s, request, &reply) == 0)
        ret = json_incref(json_array_get(json_object_get(reply, "attempts"), 0));
    json_decref(reply);
    return ret;
}

/* ---- One task ---- */

/* What is followed: the log of the present attempt, and a connection on which the end is told. */
struct followed {
    struct gpq_session *s, end;
    const char *task;
    struct gpq_log log;
    int64_t attempt; /* of the log; 0 = none */
    int notify;
    bool for_reader;
    uint64_t notice; /* when the reason is printed why it waits; 0: no more */
};

static int begin(struct followed *f)
{
    char path[GPQ_PATH];
    f->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (f->notify >= 0 && (gpq_path(path, "%s/logs", f->s->state) < 0 ||
                           inotify_add_watch(f->notify, path, IN_CREATE | IN_MODIFY) < 0)) {
        close(f->notify);
        f->notify = -1;
    }
    return gpq_session_open(&f->end, f->s->call, GPQ_AGENT_RESUMED);
}

/* Asks for the end.  After a loss of the connection, on a new one. */
static int await_end(struct followed *f)
{
    int status = EXIT_NONE;
    for (int i = 0; status == EXIT_NONE && i < 2; i++) {
        status = i > 0 ? gpq_session_again(&f->end) : 0;
        if (status == 0)
            status = gpq_session_send(
                &f->end, json_pack("{s:s, s:[s], s:i}", "do", "wait", "tasks", f->task, "id", 1));
    }
    return status;
}

static void close_log(struct followed *f)
{
    if (f->attempt != 0)
        gpq_log_close(&f->log);
    f->attempt = 0;
}

/* Prints what there is of the attempts so far, the present one last. */
static void print_attempts(struct followed *f, const json_t *row)
{
    int64_t present = gpq_number_of(row, "attempt");
    while (f->attempt < present) {
        int64_t next = f->attempt + 1;
        if (f->attempt != 0) {
            (void)gpq_log_print(&f->log);
            gpq_log_close(&f->log);
            fflush(stdout);
            fprintf(stderr, "gpudispatch: attempt %d of %s\n", (int)next, f->task);
        } else {
            next = present; /* those that were over before are not shown */
        }
        gpq_log_open(&f->log, f->s->state, f->task, next);
        f->attempt = next;
    }
    if (f->attempt != 0)
        (void)gpq_log_print(&f->log);
}

static void read_notes(int fd)
{
    char notes[4096];
    while (fd >= 0 && read(fd, notes, sizeof(notes)) > 0)
        continue;
}

/* Until something may have changed.  0; EXIT_TIMEOUT; -1: interrupted. */
static int await_news(struct followed *f)
{
    int ms = gpq_ms_until(f->s->deadline);
    if (gpq_interrupted()) /* in a wait before this one, such as that of hear_end */
        return -1;
    if ((f->notify < 0 || f->notice != 0) && (ms < 0 || ms > STEP_MS))
        ms = STEP_MS;
    struct pollfd p[3] = { { .fd = f->end.fd, .events = POLLIN },
                           { .fd = f->notify, .events = POLLIN },
                           { .fd = f->for_reader ? STDOUT_FILENO : -1 } };
    int n = gpq_poll(p, 3, ms);
    if (n < 0 && gpq_interrupted())
        return -1;
    read_notes(f->notify);
    return n == 0 && gpq_ms_until(f->s->deadline) == 0 ? EXIT_TIMEOUT : 0;
}

/* Whether the end has been reported, or must be asked for anew. */
enum heard_end { NO_END, END, LOST_END };

static enum heard_end hear_end(struct followed *f)
{
    json_t *line;
    enum gpq_heard heard = gpq_session_hear(&f->end, gpq_now(), &line);
    json_decref(line);
    return heard == GPQ_LINE                             ? END
           : heard == GPQ_CLOSED || heard == GPQ_STRANGE ? LOST_END
                                                         : NO_END;
}

/* Once, of a task that has not started after a while. */
static void say_waiting(struct followed *f, const json_t *row)
{
    json_t *reply;
    char text[256];
    bool waits = gpq_number_of(row, "attempt") == 0 && !*gpq_text_of(row, "outcome");
    if (f->notice == 0 || (waits && gpq_now() < f->notice))
        return;
    f->notice = 0;
    if (!waits || gpq_session_insist(
                      f->s, json_pack("{s:s, s:s}", "do", "explain", "task", f->task), &reply) != 0)
        return;
    (void)gpq_say(0, "%s waits: %s", f->task, gpq_first_reason(reply, text, sizeof(text)));
    json_decref(reply);
}

/* A task may begin a new round between the report of its end and its row. */
static int follow(struct followed *f, json_t **ret)
{
    int status = await_end(f);
    *ret = NULL;
    while (status == 0) {
        enum heard_end end = hear_end(f);
        if (end == LOST_END && (status = gpq_session_again(&f->end)) != 0)
            break;
        json_decref(*ret);
        if ((status = gpq_task_row(f->s, f->task, ret)) != 0)
            break;
        print_attempts(f, *ret);
        say_waiting(f, *ret);
        if (!strcmp(gpq_text_of(*ret, "state"), "done") || (f->for_reader && out_reader_gone()))
            break;
        status = end == NO_END ? await_news(f) : await_end(f);
    }
    return status;
}

int gpq_follow_task(struct gpq_session *s, const char *task, bool for_reader, json_t **ret)
{
    struct followed f = {
        .s = s, .task = task, .end.fd = -1, .notify = -1, .for_reader = for_reader
    };
    f.notice = for_reader ? 0 : gpq_now() + NOTICE;
    int status = begin(&f);
    *ret = NULL;
    if (status == 0)
        status = follow(&f, ret);
    close_log(&f);
    if (f.notify >= 0)
        close(f.notify);
    gpq_session_close(&f.end);
    return status;
}

/* ---- The verb ---- */

static int no_output(const char *task, const json_t *row)
{
    char state[64];
    return gpq_say(EXIT_OK, "%s has no output%s: it is %s", task,
                   *gpq_text_of(row, "outcome") ? "" : " yet", gpq_state_text_of(row, state));
}

static int print_attempt(struct gpq_session *s, const char *task, int64_t attempt,
                         const json_t *row)
{
    struct gpq_log log;
    gpq_log_open(&log, s->state, task, attempt);
    int code = gpq_log_print(&log);
    gpq_log_close(&log);
    if (code == 0)
        return 0;
    if (code == -ENOENT && !*gpq_text_of(row, "outcome"))
        return no_output(task, row);
    return gpq_say(code == -ENOENT ? EXIT_NONE : EXIT_FAILED, "%s has no output: %s: %s", task,
                   log.path, strerror(-code));
}

static int print_log(struct gpq_session *s, const char *task)
{
    json_t *row;
    uint64_t attempt = 0;
    const char *given = s->call->value[OPTION_ATTEMPT];
    int status = gpq_option_number(s->call, OPTION_ATTEMPT, 1, UINT32_MAX, &attempt);
    if (status != 0 || (status = gpq_task_row(s, task, &row)) != 0)
        return status;
    int64_t last = gpq_number_of(row, "attempt");
    if (given && (int64_t)attempt > last)
        status =
            gpq_say(EXIT_NONE, "%s has no attempt %s; the last one is %d", task, given, (int)last);
    else if (last == 0)
        status = no_output(task, row);
    else
        status = print_attempt(s, task, given ? (int64_t)attempt : last, row);
    json_decref(row);
    return status;
}

int gpq_verb_log(const struct call *call)
{
    struct gpq_session s;
    char task[32];
    json_t *row = NULL;
    if (call->given[OPTION_FOLLOW] && call->given[OPTION_ATTEMPT])
        return usage(call->verb, "log: --follow and --attempt exclude one another");
    int status = gpq_session_open(&s, call, GPQ_AGENT_RESUMED);
    if (status == 0)
        status = gpq_one_task(&s, task);
    if (status == 0 && call->given[OPTION_FOLLOW])
        status = gpq_follow_task(&s, task, true, &row);
    else if (status == 0)
        status = print_log(&s, task);
    json_decref(row);
    gpq_session_close(&s);
    return status;
}
