/* SPDX-License-Identifier: MIT */
/* wait.c - waits for the end of tasks, and says how they ended. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/client/follow.h"
#include "queue/client/ids.h"
#include "queue/client/interrupts.h"
#include "queue/client/log.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"
#include "tools/cli/out.h"

#define STEP UINT64_C(500000000) /* between two lines of progress */
enum { FAILURES_SHOWN = 10, COMMAND_SHOWN = 63 };
/* Requests of a connection that wait, and ids of one of them: docs/reference/queue-protocol.md. */
enum { WAITS = 64, TASKS = 50000 };

/* ---- Until the end ---- */

/* Requests that wait.  The id of each is its index; null once it has its reply. */
struct waits {
    json_t *requests;
    size_t next;   /* to be sent */
    size_t flying; /* sent, and without a reply */
    size_t left;   /* without a reply */
};

static int add_request(struct waits *w, const char *member, json_t *value)
{
    json_t *one = json_pack("{s:s, s:I, s:O}", "do", "wait", "id",
                            (json_int_t)json_array_size(w->requests), member, value);
    w->left++;
    return json_array_append_new(w->requests, one) == 0 ? 0 : gpq_say(EXIT_FAILED, "no memory");
}

static int add_tasks(struct waits *w, json_t **tasks)
{
    int status = json_array_size(*tasks) == 0 ? 0 : add_request(w, "tasks", *tasks);
    json_decref(*tasks);
    *tasks = NULL;
    return status;
}

struct listed {
    struct waits *waits;
    json_t *tasks; /* of the next request */
};

static int one_id(json_t *row, void *user)
{
    struct listed *l = user;
    if (!l->tasks)
        l->tasks = json_array();
    if (json_array_append(l->tasks, json_object_get(row, "task")) != 0)
        return gpq_say(EXIT_FAILED, "no memory");
    return json_array_size(l->tasks) < TASKS ? 0 : add_tasks(l->waits, &l->tasks);
}

/* The tasks of a range are listed. */
static int add_wait(struct gpq_session *s, json_t *selection, struct waits *w)
{
    json_t *batch = json_object_get(selection, "batch"),
           *tasks = json_object_get(selection, "tasks");
    struct listed l = { w, NULL };
    if (tasks)
        return add_request(w, "tasks", tasks);
    if (!json_object_get(selection, "first"))
        return add_request(w, "batch", batch);
    int status = gpq_rows(s, gpq_request_of("tasks", selection), "tasks", one_id, &l);
    if (status == 0)
        return add_tasks(w, &l.tasks);
    json_decref(l.tasks);
    return status;
}

/* Sends as many as a connection may have.  A closed connection is noticed by the next read. */
static int send_waits(struct gpq_session *s, struct waits *w)
{
    int status = 0;
    while (status == 0 && w->next < json_array_size(w->requests) && w->flying < WAITS) {
        json_t *one = json_array_get(w->requests, w->next++);
        if (json_is_null(one))
            continue;
        status = gpq_session_send(s, json_incref(one));
        w->flying++;
    }
    return status == EXIT_NONE ? 0 : status;
}

static int take_reply(struct gpq_session *s, struct waits *w, const json_t *reply)
{
    int status = gpq_session_judge(reply);
    size_t i = (size_t)gpq_number_of(reply, "id");
    if (status != 0)
        return status;
    if (i >= w->next || json_array_set_new(w->requests, i, json_null()) != 0)
        return gpq_say(EXIT_FAILED, "the agent sent a reply to no request");
    w->flying--;
    w->left--;
    return send_waits(s, w);
}

/* On a new connection: what has ended is not waited for again. */
static int wait_again(struct gpq_session *s, struct waits *w)
{
    int status = gpq_session_again(s);
    w->next = w->flying = 0;
    return status ? status : send_waits(s, w);
}

/* On a terminal: one line that is written anew. */
struct progress {
    struct gpq_session s; /* the first connection only waits */
    const char *batch;    /* NULL: nothing is shown */
    bool shown;
};

/* The queue as a whole. */
static bool is_paused(struct gpq_session *s)
{
    json_t *reply;
    bool paused = false;
    if (gpq_session_insist(s, json_pack("{s:s}", "do", "status"), &reply) != 0)
        return false;
    const json_t *marks = json_object_get(reply, "marks");
    for (size_t i = 0; i < json_array_size(marks); i++)
        if (strcmp(gpq_text_of(json_array_get(marks, i), "kind"), "pause") == 0 &&
            !*gpq_text_of(json_array_get(marks, i), "subject"))
            paused = true;
    json_decref(reply);
    return paused;
}

static void show_progress(struct progress *p)
{
    json_t *row;
    char left[48], outcomes[160], done[32], total[32], number[32];
    if (!p->batch)
        return;
    if (gpq_batch_row(&p->s, p->batch, &row) != 0) {
        p->batch = NULL;
        return;
    }
    const json_t *ended = json_object_get(row, "outcomes");
    uint64_t running = gpq_count_of(row, "states", "running");
    gpq_outcomes_text(ended, outcomes, sizeof(outcomes));
    printf("\r\033[K%s/%s ended%s%s, %s run", gpq_number_text(gpq_ended(ended), done),
           gpq_number_text((uint64_t)gpq_number_of(row, "total"), total), *outcomes ? ": " : "",
           outcomes, gpq_number_text(running, number));
    if (running == 0 && is_paused(&p->s))
        printf(", paused");
    if (strcmp(gpq_left_text(row, left), "-") != 0)
        printf(", %s left", left);
    fflush(stdout);
    p->shown = true;
    json_decref(row);
}

static void begin_progress(struct progress *p, const struct gpq_session *s, json_t *selections)
{
    const json_t *first = json_array_get(selections, 0);
    *p = (struct progress){ .s.fd = -1 };
    if (!out_terminal() || s->call->given[OPTION_JSON] || json_array_size(selections) != 1)
        return;
    const char *batch = json_string_value(json_object_get(first, "batch"));
    if (batch && !json_object_get(first, "first") &&
        gpq_session_open(&p->s, s->call, GPQ_AGENT_RUNNING) == 0)
        p->batch = batch;
}

static void end_progress(struct progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stdout);
    gpq_session_close(&p->s);
}

/* Hears replies until all have come. */
static int hear_all(struct gpq_session *s, struct waits *w, struct progress *p)
{
    int status = send_waits(s, w);
    while (status == 0 && w->left > 0) {
        json_t *line;
        if (gpq_interrupted()) /* perhaps while the progress was read */
            return -1;
        uint64_t step = p->batch ? gpq_now() + STEP : 0;
        if (s->deadline != 0 && (step == 0 || s->deadline < step))
            step = s->deadline;
        switch (gpq_session_hear(s, step, &line)) {
        case GPQ_LINE:
            status = take_reply(s, w, line);
            break;
        case GPQ_LATE:
            if (gpq_ms_until(s->deadline) == 0)
                status = EXIT_TIMEOUT;
            else
                show_progress(p);
            break;
        case GPQ_INTERRUPTED:
            break;
        case GPQ_CLOSED: /* the agent was replaced, or has ended */
            status = wait_again(s, w);
            break;
        default:
            status = EXIT_FAILED;
        }
        json_decref(line);
    }
    return status;
}

int gpq_wait_for(struct gpq_session *s, json_t *selections)
{
    struct waits w = { .requests = json_array() };
    struct progress p;
    int status = 0;
    for (size_t i = 0; status == 0 && i < json_array_size(selections); i++)
        status = add_wait(s, json_array_get(selections, i), &w);
    begin_progress(&p, s, selections);
    if (status == 0)
        status = hear_all(s, &w, &p);
    end_progress(&p);
    json_decref(w.requests);
    return status;
}

/* ---- How they ended ---- */

struct counted {
    struct gpq_session *s;
    json_t *outcomes;
    json_t *bad;       /* the first rows that failed */
    uint64_t failed;   /* not ok, and neither cancelled nor skipped */
    json_t *skipped;   /* the first one, for its cause */
    uint64_t stopped;  /* cancelled, since the batch had too many failures */
    uint64_t from, to; /* times: made, or begun again; last end */
    int64_t round;     /* the last one */
    char again[32];    /* the first task of it, if it is not round 1 */
    bool retried;
};

static int count_row(json_t *row, void *user)
{
    struct counted *c = user;
    const char *outcome = gpq_text_of(row, "outcome");
    uint64_t ended = (uint64_t)gpq_number_of(row, "ended");
    if (!*outcome)
        return 0; /* a new round has begun */
    (void)json_object_set_new(c->outcomes, outcome,
                              json_integer(gpq_number_of(c->outcomes, outcome) + 1));
    c->to = ended > c->to ? ended : c->to;
    if (gpq_number_of(row, "round") > c->round) {
        c->round = gpq_number_of(row, "round");
        snprintf(c->again, sizeof(c->again), "%s", gpq_text_of(row, "task"));
    }
    if (strcmp(outcome, "ok") != 0 && strcmp(outcome, "cancelled") != 0 &&
        strcmp(outcome, "skipped") != 0) {
        c->failed++;
        if (json_array_size(c->bad) < FAILURES_SHOWN)
            (void)json_array_append(c->bad, row);
    }
    if (strcmp(outcome, "skipped") == 0 && !c->skipped)
        c->skipped = json_incref(row);
    if (strcmp(outcome, "cancelled") == 0 && *gpq_text_of(row, "cause"))
        c->stopped++;
    if (c->s->call->given[OPTION_JSON])
        gpq_print_json(row);
    return 0;
}

/* Cuts a text that has more characters than these, between two of them. */
static char *cut(char *text, size_t most)
{
    size_t n = 0;
    for (char *at = text; *at; at++) {
        if (((unsigned char)*at & 0xc0) == 0x80)
            continue;
        if (n == most - 3 && strlen(at) > 3) {
            strcpy(at, "...");
            break;
        }
        n++;
    }
    return text;
}

/* The first attempt of the last round. */
static int see_attempt(json_t *row, void *user)
{
    struct counted *c = user;
    uint64_t claimed = (uint64_t)gpq_number_of(row, "claimed");
    if (gpq_number_of(row, "round") != c->round)
        return 0;
    c->round = 0;                   /* the others come later */
    c->retried = claimed > c->from; /* else it was joined, and retried before */
    c->from = c->retried ? claimed : c->from;
    return 0;
}

/* After a retry the time in which nothing ran does not count. */
static int see_round(struct counted *c)
{
    if (!*c->again)
        return 0;
    return gpq_rows(c->s, json_pack("{s:s, s:s}", "do", "attempts", "task", c->again), "attempts",
                    see_attempt, c);
}

/* "12.44  error 1  python a.py --x 44" and the last line of its output. */
static void print_failure(struct gpq_session *s, const json_t *row)
{
    char end[256], what[256], line[128];
    const char *task = gpq_text_of(row, "task");
    json_t *attempt = gpq_last_attempt(s, row);
    printf("  %s  ", task);
    put_plain(gpq_end_text(gpq_text_of(row, "outcome"), attempt, end, sizeof(end)));
    fputs("  ", stdout);
    put_plain(cut(gpq_task_text(row, what, sizeof(what)), COMMAND_SHOWN));
    json_decref(attempt);
    gpq_log_last_line(s->state, task, gpq_number_of(row, "attempt"), line, sizeof(line));
    if (*line) {
        fputs("\n      last line: ", stdout);
        put_plain(line);
    }
    putchar('\n');
}

static void print_counts(const struct counted *c, const json_t *selection, const char *name)
{
    char outcomes[200], span[32];
    const char *batch = gpq_text_of(selection, "batch");
    size_t n = json_array_size(json_object_get(selection, "tasks"));
    if (*batch)
        printf("batch %s", batch);
    else
        printf("%zu %s", n, gpq_tasks(n));
    if (*name) {
        putchar(' ');
        put_plain(name);
    }
    printf(": %s", gpq_outcomes_text(c->outcomes, outcomes, sizeof(outcomes)));
    if (c->to > c->from && c->from != 0)
        printf(c->retried ? ", %s after the retry" : " after %s",
               gpq_span_text(c->to - c->from, span));
    putchar('\n');
}

/* Of a whole batch: its name, and when it was made. */
static json_t *about_batch(struct gpq_session *s, const json_t *selection)
{
    json_t *row = NULL;
    const char *batch = gpq_text_of(selection, "batch");
    if (*batch)
        (void)gpq_batch_row(s, batch, &row);
    return row;
}

static void print_stopped(const struct counted *c, const json_t *batch)
{
    char number[32];
    const json_t *percent = json_object_get(batch, "max_fails_percent");
    if (c->stopped == 0)
        return;
    printf("  stopped after %s %s", gpq_number_text(c->failed, number),
           c->failed == 1 ? "failure" : "failures");
    if (percent || json_object_get(batch, "max_fails"))
        printf(" (--max-fails %" PRIi64 "%s)",
               gpq_number_of(batch, percent ? "max_fails_percent" : "max_fails"),
               percent ? "%" : "");
    printf(": %s %s cancelled\n", gpq_number_text(c->stopped, number),
           c->stopped == 1 ? "task was" : "tasks were");
}

static void print_skipped(const struct counted *c)
{
    char cause[96], number[32];
    uint64_t n = (uint64_t)gpq_number_of(c->outcomes, "skipped");
    if (n == 0)
        return;
    printf("  %s", gpq_text_of(c->skipped, "task"));
    if (n > 1)
        printf(" and %s more", gpq_number_text(n - 1, number));
    printf("  skipped: %s\n", gpq_because(c->skipped, cause));
}

/* What to type next: it runs all that is not ok, but tasks that a person has cancelled. */
static void print_again(const struct counted *c, const json_t *selection)
{
    const char *batch = gpq_text_of(selection, "batch");
    uint64_t lost = (uint64_t)gpq_number_of(c->outcomes, "lost"), failed = c->failed - lost,
             others = c->stopped + (uint64_t)gpq_number_of(c->outcomes, "skipped");
    if (*batch && failed + lost > 0)
        printf("  again: gpudispatch retry %s%s%s\n", batch,
               others == 0 && failed > 0 ? " --failed" : "",
               others == 0 && lost > 0 ? " --lost" : "");
}

static int summary_of(struct gpq_session *s, json_t *selection)
{
    json_t *batch = about_batch(s, selection), *request = gpq_request_of("tasks", selection);
    struct counted c = { .s = s,
                         .outcomes = json_object(),
                         .bad = json_array(),
                         .from = (uint64_t)gpq_number_of(batch, "made"),
                         .round = 1 };
    (void)json_object_set_new(request, "whole", json_true());
    int status = gpq_rows(s, request, "tasks", count_row, &c);
    if (status == 0 && c.from != 0)
        status = see_round(&c);
    if (status == 0 && !s->call->given[OPTION_JSON]) {
        print_counts(&c, selection, gpq_text_of(batch, "name"));
        for (size_t i = 0; i < json_array_size(c.bad); i++)
            print_failure(s, json_array_get(c.bad, i));
        if (c.failed > json_array_size(c.bad))
            printf("  and %" PRIu64 " more\n", c.failed - json_array_size(c.bad));
        print_skipped(&c);
        print_stopped(&c, batch);
        print_again(&c, selection);
    }
    if (status == 0 && gpq_bad(c.outcomes) > 0)
        status = EXIT_WRONG;
    json_decref(batch);
    json_decref(c.outcomes);
    json_decref(c.bad);
    json_decref(c.skipped);
    return status;
}

int gpq_summary(struct gpq_session *s, json_t *selections)
{
    int status = 0;
    for (size_t i = 0; i < json_array_size(selections); i++) {
        int one = summary_of(s, json_array_get(selections, i));
        if (one != 0 && one != EXIT_WRONG)
            return one;
        status = one ? one : status;
    }
    return status;
}

int gpq_verb_wait(const struct call *call)
{
    struct gpq_session s;
    json_t *list = NULL;
    int status = gpq_session_open(&s, call, GPQ_AGENT_RESUMED);
    if (status == 0)
        status = gpq_selections(&s, &list);
    if (status == 0)
        status = gpq_wait_for(&s, list);
    if (status == EXIT_TIMEOUT)
        (void)gpq_say(EXIT_TIMEOUT, "the time of --timeout %s is over; the tasks go on",
                      call->value[OPTION_TIMEOUT]);
    if (status == 0)
        status = gpq_summary(&s, list);
    json_decref(list);
    gpq_session_close(&s);
    return status;
}
