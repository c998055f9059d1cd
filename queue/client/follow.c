/* SPDX-License-Identifier: MIT */
/* follow.c - the output of a task as it comes. */
#include "queue/client/follow.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "queue/client/ids.h"
#include "queue/client/log.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"
#include "queue/config/values.h"

/* How often a log is looked at where the kernel does not tell. */
enum { STEP_MS = 500 };

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

bool gpq_interrupted(void)
{
    return interrupted != 0;
}

void gpq_interrupts_catch(void)
{
    struct sigaction action = { .sa_handler = interrupt };
    interrupted = 0;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int gpq_deadline(const struct call *call, uint64_t *ret)
{
    struct gpq_error e = { 0 };
    uint64_t patience;
    *ret = 0;
    if (!call->value[OPTION_TIMEOUT])
        return 0;
    if (gpq_value_duration(call->value[OPTION_TIMEOUT], &patience, &e) < 0)
        return usage(call->verb, "%s: --timeout: %s", call->verb->name, e.text);
    *ret = gpq_now() + patience;
    return 0;
}

int gpq_task_row(struct gpq_session *s, const char *task, json_t **ret)
{
    json_t *reply;
    int status = gpq_session_ask(s, json_pack("{s:s, s:s}", "do", "task", "task", task), &reply);
    *ret = status == 0 ? json_incref(json_object_get(reply, "task")) : NULL;
    json_decref(reply);
    return status;
}

/* ---- One task ---- */

/* What is followed: the log of the present attempt, and a connection on which the end is told. */
struct followed {
    struct gpq_session *s, end;
    const char *task;
    struct gpq_log log;
    int64_t attempt; /* of the log; 0 = none */
    int notify;
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
    int status = gpq_session_open(&f->end, f->s->call, GPQ_AGENT_RUNNING);
    if (status == 0)
        status = gpq_session_send(
            &f->end, json_pack("{s:s, s:[s], s:i}", "do", "wait", "tasks", f->task, "id", 1));
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

static int until(uint64_t deadline, int otherwise)
{
    uint64_t now = gpq_now();
    if (deadline == 0)
        return otherwise;
    uint64_t ms = deadline > now ? (deadline - now) / 1000000 + 1 : 0;
    return otherwise >= 0 && (uint64_t)otherwise < ms ? otherwise
           : ms > INT32_MAX                           ? INT32_MAX
                                                      : (int)ms;
}

/* Until something may have changed.  0; EXIT_TIMEOUT; -1: interrupted. */
static int await_news(struct followed *f, uint64_t deadline)
{
    struct pollfd p[2] = { { .fd = f->end.fd, .events = POLLIN },
                           { .fd = f->notify, .events = POLLIN } };
    int n = poll(p, 2, until(deadline, f->notify < 0 ? STEP_MS : -1));
    if (n < 0 && errno == EINTR)
        return gpq_interrupted() ? -1 : 0;
    read_notes(f->notify);
    if (n == 0 && deadline != 0 && gpq_now() >= deadline)
        return EXIT_TIMEOUT;
    return 0;
}

/* The connection on which the end is told has news.  1: the task has ended; 0: it has not. */
static int hear_end(struct followed *f)
{
    json_t *line = NULL;
    enum gpq_heard heard = gpq_session_hear(&f->end, gpq_now(), &line);
    bool ended = heard == GPQ_LINE && json_is_true(json_object_get(line, "ok"));
    json_decref(line);
    return ended ? 1 : heard == GPQ_CLOSED ? -1 : 0;
}

/* The agent was replaced: both connections are made anew. */
static int come_back(struct followed *f)
{
    int status = gpq_session_again(f->s, 10000);
    if (status == 0)
        status = gpq_session_again(&f->end, 10000);
    if (status == 0)
        status = gpq_session_send(
            &f->end, json_pack("{s:s, s:[s], s:i}", "do", "wait", "tasks", f->task, "id", 1));
    return status;
}

static int follow(struct followed *f, uint64_t deadline, json_t **ret)
{
    int status = 0, ended = 0;
    *ret = NULL;
    while (status == 0) {
        json_decref(*ret);
        *ret = NULL;
        ended = hear_end(f);
        if (ended < 0 && (status = come_back(f)) != 0)
            break;
        if ((status = gpq_task_row(f->s, f->task, ret)) != 0)
            break;
        print_attempts(f, *ret);
        if (!strcmp(gpq_text_of(*ret, "state"), "done"))
            break;
        status = await_news(f, deadline);
    }
    return status;
}

int gpq_follow_task(struct gpq_session *s, const char *task, uint64_t deadline, json_t **ret)
{
    struct followed f = { .s = s, .task = task, .end.fd = -1 };
    int status = begin(&f);
    *ret = NULL;
    if (status == 0)
        status = follow(&f, deadline, ret);
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
    return gpq_say(EXIT_OK, "%s has no output yet: it is %s", task, gpq_state_text_of(row, state));
}

static int print_log(struct gpq_session *s, const char *task)
{
    struct gpq_error e = { 0 };
    struct gpq_log log;
    json_t *row;
    uint64_t attempt = 0;
    const char *given = s->call->value[OPTION_ATTEMPT];
    if (given && gpq_value_number(given, 1, UINT32_MAX, &attempt, &e) < 0)
        return usage(s->call->verb, "log: --attempt: %s", e.text);
    int status = gpq_task_row(s, task, &row);
    if (status != 0)
        return status;
    int64_t last = gpq_number_of(row, "attempt");
    if (given && (int64_t)attempt > last)
        status =
            gpq_say(EXIT_NONE, "%s has no attempt %s; the last one is %d", task, given, (int)last);
    else if (last == 0)
        status = no_output(task, row);
    if (status == 0 && last != 0) {
        gpq_log_open(&log, s->state, task, given ? (int64_t)attempt : last);
        (void)gpq_log_print(&log);
        gpq_log_close(&log);
    }
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
        status = gpq_follow_task(&s, task, 0, &row);
    else if (status == 0)
        status = print_log(&s, task);
    json_decref(row);
    gpq_session_close(&s);
    return status;
}
