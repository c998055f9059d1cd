/* SPDX-License-Identifier: MIT */
/* wait.c - waits for the end of tasks, and says how they ended. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/client/follow.h"
#include "queue/client/ids.h"
#include "queue/client/left.h"
#include "queue/client/log.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"
#include "tools/cli/out.h"

#define STEP UINT64_C(500000000) /* between two lines of progress */
enum { FAILURES_SHOWN = 10, PATIENCE_MS = 10000 };

static int print_json(json_t *row)
{
    (void)json_dumpf(row, stdout, JSON_COMPACT);
    putchar('\n');
    return 0;
}

/* ---- Until the end ---- */

static int one_id(json_t *row, void *user)
{
    return json_array_append_new(user, json_string(gpq_text_of(row, "task"))) == 0 ? 0
                                                                                   : EXIT_FAILED;
}

/* A request that waits for a selection.  The tasks of a range, or of all batches, are listed. */
static int wait_request(struct gpq_session *s, json_t *selection, size_t number, json_t **ret)
{
    json_t *request = json_pack("{s:s, s:I}", "do", "wait", "id", (json_int_t)number);
    json_t *batch = json_object_get(selection, "batch"),
           *tasks = json_object_get(selection, "tasks");
    int status = 0;
    if (tasks || (batch && !json_object_get(selection, "first"))) {
        (void)json_object_set(request, tasks ? "tasks" : "batch", tasks ? tasks : batch);
    } else {
        json_t *list = json_array();
        status = gpq_rows(s, gpq_request_of("tasks", selection), "tasks", one_id, list);
        (void)json_object_set_new(request, "tasks", list);
    }
    *ret = request;
    return status;
}

static int send_waits(struct gpq_session *s, json_t *selections)
{
    int status = 0;
    json_t *requests = json_array();
    for (size_t i = 0; status == 0 && i < json_array_size(selections); i++) {
        json_t *request;
        status = wait_request(s, json_array_get(selections, i), i, &request);
        (void)json_array_append_new(requests, request);
    }
    for (size_t i = 0; status == 0 && i < json_array_size(requests); i++)
        status = gpq_session_send(s, json_incref(json_array_get(requests, i)));
    json_decref(requests);
    return status;
}

/* On a terminal: one line that is written anew. */
struct progress {
    struct gpq_session s; /* the first connection only waits */
    const char *batch;    /* NULL: nothing is shown */
    bool shown;
};

static void show_progress(struct progress *p)
{
    json_t *reply = NULL;
    char before[16], left[48], outcomes[160], done[32], total[32];
    if (!p->batch)
        return;
    snprintf(before, sizeof(before), "%u", gpq_id_read(p->batch).batch - 1);
    json_t *request = json_pack("{s:s, s:i}", "do", "batches", "most", 1);
    if (strcmp(before, "0") != 0)
        (void)json_object_set_new(request, "after", json_string(before));
    if (gpq_session_ask(&p->s, request, &reply) != 0) {
        p->batch = NULL;
        return;
    }
    const json_t *row = json_array_get(json_object_get(reply, "batches"), 0);
    const json_t *ended = json_object_get(row, "outcomes");
    printf("\r\033[K%s/%s  %s, %" PRIu64 " run", gpq_number_text(gpq_ended(ended), done),
           gpq_number_text((uint64_t)gpq_number_of(row, "total"), total),
           gpq_outcomes_text(ended, outcomes, sizeof(outcomes)),
           gpq_count_of(row, "states", "running"));
    if (strcmp(gpq_left_of_batch(&p->s, row, left), "-") != 0)
        printf(", %s left", left);
    fflush(stdout);
    p->shown = true;
    json_decref(reply);
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
static int hear_all(struct gpq_session *s, json_t *selections, struct progress *p,
                    uint64_t deadline)
{
    size_t pending = json_array_size(selections);
    int status = 0;
    while (status == 0 && pending > 0) {
        json_t *line = NULL;
        uint64_t step = p->batch ? gpq_now() + STEP : 0;
        if (deadline != 0 && (step == 0 || deadline < step))
            step = deadline;
        switch (gpq_session_hear(s, step, &line)) {
        case GPQ_LINE:
            status = gpq_session_judge(line);
            pending--;
            break;
        case GPQ_LATE:
            if (deadline != 0 && gpq_now() >= deadline)
                status = EXIT_TIMEOUT;
            else
                show_progress(p);
            break;
        case GPQ_INTERRUPTED:
            status = gpq_interrupted() ? -1 : 0;
            break;
        default: /* the agent was replaced, or has ended */
            pending = json_array_size(selections);
            p->batch = NULL;
            status = gpq_session_again(s, PATIENCE_MS);
            if (status == 0)
                status = send_waits(s, selections);
        }
        json_decref(line);
    }
    return status;
}

int gpq_wait_for(struct gpq_session *s, json_t *selections, uint64_t deadline)
{
    struct progress p;
    int status = send_waits(s, selections);
    begin_progress(&p, s, selections);
    if (status == 0)
        status = hear_all(s, selections, &p, deadline);
    end_progress(&p);
    return status;
}

/* ---- How they ended ---- */

struct counted {
    struct gpq_session *s;
    json_t *outcomes;
    json_t *bad;       /* the first rows that are not ok */
    uint64_t from, to; /* times: made, last end */
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
    if (strcmp(outcome, "ok") != 0 && json_array_size(c->bad) < FAILURES_SHOWN)
        (void)json_array_append(c->bad, row);
    if (c->s->call->given[OPTION_JSON])
        print_json(row);
    return 0;
}

/* "12.44  error 1  python a.py --x 44" and the last line of its output. */
static void print_failure(struct gpq_session *s, const json_t *row)
{
    char state[64], what[64], line[128], status[32] = "";
    json_t *reply = NULL;
    const char *task = gpq_text_of(row, "task");
    int64_t attempt = gpq_number_of(row, "attempt");
    if (attempt > 0 &&
        gpq_session_ask(s, json_pack("{s:s, s:s}", "do", "attempts", "task", task), &reply) == 0) {
        const json_t *list = json_object_get(reply, "attempts");
        const json_t *last = json_array_get(list, json_array_size(list) - 1);
        if (gpq_number_of(last, "status") != 0)
            snprintf(status, sizeof(status), " %d", (int)gpq_number_of(last, "status"));
    }
    json_decref(reply);
    printf("  %s  %s%s  ", task, gpq_state_text_of(row, state), status);
    put_plain(gpq_task_text(row, what, sizeof(what)));
    gpq_log_last_line(s->state, task, attempt, line, sizeof(line));
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
    if (*batch)
        printf("batch %s", batch);
    else
        printf("%zu tasks", json_array_size(json_object_get(selection, "tasks")));
    if (*name) {
        putchar(' ');
        put_plain(name);
    }
    printf(": %s", gpq_outcomes_text(c->outcomes, outcomes, sizeof(outcomes)));
    if (c->to > c->from && c->from != 0)
        printf(" after %s", gpq_span_text(c->to - c->from, span));
    putchar('\n');
}

static int batch_row(json_t *row, void *user)
{
    *(json_t **)user = json_incref(row);
    return -1;
}

/* Of a whole batch: its name, and when it was made. */
static json_t *about_batch(struct gpq_session *s, const json_t *selection)
{
    char before[16];
    json_t *found = NULL;
    const char *batch = gpq_text_of(selection, "batch");
    if (!*batch)
        return NULL;
    json_t *request = json_pack("{s:s, s:i}", "do", "batches", "most", 1);
    snprintf(before, sizeof(before), "%u", gpq_id_read(batch).batch - 1);
    if (strcmp(before, "0") != 0)
        (void)json_object_set_new(request, "after", json_string(before));
    (void)gpq_rows(s, request, "batches", batch_row, &found);
    return found;
}

/* What to type next. */
static void print_again(const json_t *selection, const json_t *outcomes)
{
    const char *batch = gpq_text_of(selection, "batch");
    uint64_t failed =
        (uint64_t)(gpq_number_of(outcomes, "error") + gpq_number_of(outcomes, "timeout") +
                   gpq_number_of(outcomes, "crashed") + gpq_number_of(outcomes, "no worker"));
    if (*batch && failed > 0)
        printf("  again: gpudispatch retry %s --failed\n", batch);
}

static int summary_of(struct gpq_session *s, json_t *selection)
{
    json_t *batch = about_batch(s, selection), *request = gpq_request_of("tasks", selection);
    struct counted c = { s, json_object(), json_array(), (uint64_t)gpq_number_of(batch, "made"),
                         0 };
    (void)json_object_set_new(request, "whole", json_true());
    int status = gpq_rows(s, request, "tasks", count_row, &c);
    if (status == 0 && !s->call->given[OPTION_JSON]) {
        print_counts(&c, selection, gpq_text_of(batch, "name"));
        for (size_t i = 0; i < json_array_size(c.bad); i++)
            print_failure(s, json_array_get(c.bad, i));
        if (gpq_bad(c.outcomes) > json_array_size(c.bad))
            printf("  and %" PRIu64 " more\n", gpq_bad(c.outcomes) - json_array_size(c.bad));
        print_again(selection, c.outcomes);
    }
    if (status == 0 && gpq_bad(c.outcomes) > 0)
        status = EXIT_WRONG;
    json_decref(batch);
    json_decref(c.outcomes);
    json_decref(c.bad);
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
    uint64_t deadline;
    int status = gpq_deadline(call, &deadline);
    if (status != 0)
        return status;
    status = gpq_session_open(&s, call, GPQ_AGENT_RESUMED);
    if (status == 0)
        status = gpq_selections(&s, &list);
    if (status == 0)
        status = gpq_wait_for(&s, list, deadline);
    if (status == EXIT_TIMEOUT)
        (void)gpq_say(EXIT_TIMEOUT, "tasks go on after %s", call->value[OPTION_TIMEOUT]);
    if (status == 0)
        status = gpq_summary(&s, list);
    json_decref(list);
    gpq_session_close(&s);
    return status;
}
