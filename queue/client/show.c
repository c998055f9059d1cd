/* SPDX-License-Identifier: MIT */
/* show.c - all about tasks and batches; why a task waits. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/client/ids.h"
#include "queue/client/reasons.h"
#include "queue/client/results.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"
#include "queue/words.h"
#include "tools/cli/out.h"

static void put_name(const char *name)
{
    printf("  %-14s", name);
}

static void put_line(const char *name, const char *text)
{
    if (!*text)
        return;
    put_name(name);
    put_plain(text);
    putchar('\n');
}

/* A member as JSON: needs, retries. */
static void put_member(const char *name, const json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (text)
        put_line(name, text);
    free(text);
}

static void put_percent(const char *name, const json_t *value)
{
    char text[32];
    snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT "%%", json_integer_value(value));
    put_line(name, value ? text : "");
}

/* "3 timeout, 1 crash" */
static void put_counts(const char *name, const json_t *counts)
{
    char text[200];
    put_line(name, gpq_outcomes_text(counts, text, sizeof(text)));
}

static void put_time(const char *name, int64_t ns)
{
    char text[32];
    if (ns > 0)
        put_line(name, gpq_time_text((uint64_t)ns, text));
}

static void put_duration(const char *name, int64_t ns)
{
    char text[32];
    if (ns > 0)
        put_line(name, gpq_span_text((uint64_t)ns, text));
}

/* ---- A task ---- */

/* "2 GPUs, 40.0 GiB each, on gpu:0, 4 CPU slots": members at their defaults are left out. */
static char *needs_text(const json_t *needs, char *ret, size_t size)
{
    char bytes[24], host[24];
    int64_t gpus = gpq_number_of(needs, "gpus"), share = gpq_number_of(needs, "share"),
            memory = gpq_number_of(needs, "memory"), cpus = gpq_number_of(needs, "cpus"),
            host_memory = gpq_number_of(needs, "host_memory"),
            compute = gpq_number_of(needs, "compute");
    const char *on = gpq_text_of(needs, "on"), *not_on = gpq_text_of(needs, "not_on");
    FILE *f = fmemopen(ret, size, "w");
    ret[0] = '\0';
    if (!f)
        return ret;
    if (share > 0 && share < 10000)
        fprintf(f, "%g of a GPU", (double)share / 10000);
    else
        fprintf(f, "%" PRIi64 " %s", gpus, gpus == 1 ? "GPU" : "GPUs");
    if (memory > 0)
        fprintf(f, ", %s each", bytes_text((uint64_t)memory, bytes));
    if (compute > 0)
        fprintf(f, ", compute %" PRIi64 ".%" PRIi64, compute / 100, compute % 100);
    fprintf(f, "%s%s%s%s", *on ? ", on " : "", on, *not_on ? ", not on " : "", not_on);
    if (cpus != 1)
        fprintf(f, ", %" PRIi64 " CPU slots", cpus);
    if (host_memory > 0)
        fprintf(f, ", %s of the machine", bytes_text((uint64_t)host_memory, host));
    fclose(f);
    return ret;
}

static void print_needs(const json_t *needs)
{
    char text[512];
    const json_t * or = json_object_get(needs, "or");
    put_line("needs", needs_text(needs, text, sizeof(text)));
    for (size_t i = 0; i < json_array_size(or); i++)
        put_line("  or", needs_text(json_array_get(or, i), text, sizeof(text)));
}

/* The user is the row of the task. */
static int print_attempt(json_t *a, void *user)
{
    char from[32], span[32];
    const char *outcome = gpq_text_of(a, "outcome"), *returned = gpq_text_of(a, "returned");
    int64_t started = gpq_number_of(a, "started"),
            ended = gpq_number_of(a, *returned ? "returned_at" : "ended");
    const char *text = gpq_text_of(a, "text");
    bool drained = strcmp(text, GPQ_DRAINED) == 0; /* no fault of the device */
    put_name("attempt");
    printf("%" PRIi64 ": %s", gpq_number_of(a, "attempt"),
           *outcome    ? outcome
           : drained   ? text
           : *returned ? returned
                       : "runs");
    if (*outcome && gpq_number_of(a, "status") > 0) /* the text has a signal */
        printf(" %" PRIi64, gpq_number_of(a, "status"));
    if (started == 0 && !*outcome && !*returned)
        started = gpq_number_of(user, "started");
    if (started > 0)
        printf(", started %s", gpq_time_text((uint64_t)started, from));
    if (started > 0 && ended > started)
        printf(", for %s", gpq_span_text((uint64_t)(ended - started), span));
    if (!*outcome && *returned)
        printf(", back at its place");
    if (*text && !drained) {
        fputs(": ", stdout);
        put_plain(text);
    }
    putchar('\n');
    put_line("  said", gpq_text_of(a, "said"));
    put_line("  devices", gpq_text_of(json_object_get(a, "devices"), "names"));
    return 0;
}

static int each_attempt(struct gpq_session *s, const json_t *task,
                        int (*fn)(json_t *row, void *user), void *user)
{
    return gpq_rows(s, json_pack("{s:s, s:s}", "do", "attempts", "task", gpq_text_of(task, "task")),
                    "attempts", fn, user);
}

static void print_conditions(const json_t *row)
{
    const json_t *after = json_object_get(row, "after");
    for (size_t i = 0; i < json_array_size(after); i++) {
        const json_t *one = json_array_get(after, i);
        put_name("after");
        printf("%s is %s%s\n", gpq_text_of(one, "id"), gpq_text_of(one, "when"),
               json_is_true(json_object_get(one, "met")) ? " (it is)" : "");
    }
}

static void print_environment(const json_t *spec)
{
    const json_t *list = json_object_get(spec, "environment");
    for (size_t i = 0; i < json_array_size(list); i++)
        put_line(i == 0 ? "environment" : "", json_string_value(json_array_get(list, i)));
}

static void print_task(struct gpq_session *s, const json_t *row)
{
    char state[64], what[4096], path[GPQ_PATH], cause[96];
    const json_t *spec = json_object_get(row, "spec");
    printf("task %s: %s\n", gpq_text_of(row, "task"), gpq_state_text_of(row, state));
    put_line("name", gpq_text_of(row, "name"));
    if (json_object_get(row, "argv"))
        put_line("command", gpq_command_text(json_object_get(row, "argv"), what, sizeof(what)));
    put_line("payload", gpq_text_of(row, "payload"));
    put_line("key", gpq_text_of(row, "key"));
    put_line("class", gpq_text_of(spec, "class"));
    put_line("directory", gpq_text_of(spec, "cwd"));
    print_needs(json_object_get(spec, "needs"));
    put_member("priority", json_object_get(row, "priority"));
    put_duration("limit", gpq_number_of(spec, "limit"));
    put_time("not before", gpq_number_of(row, "not_before"));
    put_time("expires", gpq_number_of(row, "expires"));
    put_counts("retries", json_object_get(spec, "retries"));
    put_line("cause", gpq_because(row, cause));
    print_conditions(row);
    (void)each_attempt(s, row, print_attempt, (void *)(uintptr_t)row);
    if (gpq_number_of(row, "attempt") > 0 && json_object_get(row, "argv") &&
        gpq_path(path, "%s/logs/%s.%" PRIi64, s->state, gpq_text_of(row, "task"),
                 gpq_number_of(row, "attempt")) == 0)
        put_line("log", path);
    if (gpq_has_outputs(s, row, path))
        put_line("outputs", path);
    print_environment(spec);
}

static int add_attempt(json_t *row, void *user)
{
    return json_array_append(user, row) == 0 ? 0 : gpq_say(EXIT_FAILED, "no memory");
}

/* The row with its attempts. */
static int print_task_json(struct gpq_session *s, json_t *row)
{
    char path[GPQ_PATH];
    json_t *attempts = json_array();
    if (gpq_has_outputs(s, row, path))
        (void)json_object_set_new(row, "out", json_string(path));
    int status = each_attempt(s, row, add_attempt, attempts);
    (void)json_object_set_new(row, "attempts", attempts);
    if (status == 0)
        gpq_print_json(row);
    return status;
}

static int show_task(struct gpq_session *s, const char *task)
{
    json_t *reply;
    bool environment = s->call->given[OPTION_SHOW_ENV];
    int status = gpq_session_insist(
        s,
        json_pack("{s:s, s:s, s:b}", "do", "task", "task", task, "environment", (int)environment),
        &reply);
    json_t *row = json_object_get(reply, "task");
    if (status == 0 && s->call->given[OPTION_JSON])
        status = print_task_json(s, row);
    else if (status == 0)
        print_task(s, row);
    json_decref(reply);
    return status;
}

/* ---- A batch ---- */

static int show_batch(struct gpq_session *s, const char *batch)
{
    char number[32];
    json_t *row;
    int status = gpq_batch_row(s, batch, &row);
    if (status == 0 && s->call->given[OPTION_JSON]) {
        gpq_print_json(row);
    } else if (status == 0) {
        uint64_t total = (uint64_t)gpq_number_of(row, "total");
        printf("batch %s: %s %s\n", batch, gpq_number_text(total, number), gpq_tasks(total));
        put_line("name", gpq_text_of(row, "name"));
        put_time("made", gpq_number_of(row, "made"));
        put_time("ended", gpq_number_of(row, "ended"));
        put_counts("states", json_object_get(row, "states"));
        put_counts("outcomes", json_object_get(row, "outcomes"));
        put_member("at once", json_object_get(row, "at_once"));
        put_member("max fails", json_object_get(row, "max_fails"));
        put_percent("max fails", json_object_get(row, "max_fails_percent"));
        put_line("notify", gpq_text_of(row, "notify"));
    }
    json_decref(row);
    return status;
}

static int show_row(json_t *row, void *user)
{
    return show_task(user, gpq_text_of(row, "task"));
}

static int show_selection(struct gpq_session *s, json_t *selection, void *user)
{
    (void)user;
    const json_t *tasks = json_object_get(selection, "tasks");
    int status = 0;
    if (json_object_get(selection, "first"))
        return gpq_rows(s, gpq_request_of("tasks", selection), "tasks", show_row, s);
    if (!tasks)
        return show_batch(s, gpq_text_of(selection, "batch"));
    for (size_t i = 0; status == 0 && i < json_array_size(tasks); i++)
        status = show_task(s, json_string_value(json_array_get(tasks, i)));
    return status;
}

int gpq_verb_show(const struct call *call)
{
    return gpq_each_selection(call, show_selection, NULL);
}

/* ---- explain ---- */

static void explain_conditions(const json_t *after)
{
    for (size_t i = 0; i < json_array_size(after); i++) {
        const json_t *one = json_array_get(after, i);
        const char *when = gpq_text_of(one, "when");
        printf("  %s is not %s yet\n", gpq_text_of(one, "id"),
               strcmp(when, "ok") == 0 ? "ok" : when);
    }
}

static void explain_pauses(const json_t *pauses)
{
    char since[32];
    for (size_t i = 0; i < json_array_size(pauses); i++) {
        const json_t *one = json_array_get(pauses, i);
        const char *class = gpq_text_of(one, "class"), *reason = gpq_text_of(one, "reason");
        printf("  paused%s%s since %s%s", *class ? ": class " : "", class,
               gpq_time_text((uint64_t)gpq_number_of(one, "since"), since), *reason ? ": " : "");
        put_plain(reason);
        putchar('\n');
    }
}

static void put_reason(const char *text, void *user)
{
    (void)user;
    fputs("  ", stdout);
    put_plain(text);
    putchar('\n');
}

static void explain(const json_t *reply)
{
    char state[64], what[80], until[32], cause[96];
    const json_t *row = json_object_get(reply, "task"),
                 *reasons = json_object_get(reply, "reasons");
    int64_t place = gpq_number_of(reply, "place"), at_once = gpq_number_of(reply, "at_once");
    printf("%s ", gpq_text_of(row, "task"));
    put_plain(gpq_task_text(row, what, sizeof(what)));
    printf(": %s", gpq_state_text_of(row, state));
    if (place > 0)
        printf(", place %" PRIi64 " of %" PRIi64 " with the same needs", place,
               gpq_number_of(reply, "ready"));
    putchar('\n');
    if (gpq_number_of(row, "not_before") > 0 && !strcmp(gpq_text_of(row, "state"), "held"))
        printf("  not before %s\n",
               gpq_time_text((uint64_t)gpq_number_of(row, "not_before"), until));
    gpq_because(row, cause);
    if (*cause)
        printf("  %s\n", cause);
    if (at_once > 0)
        printf("  the batch has its %" PRIi64 " task%s at once (--at-once %" PRIi64 ")\n", at_once,
               at_once == 1 ? "" : "s", at_once);
    explain_conditions(json_object_get(reply, "after"));
    explain_pauses(json_object_get(reply, "pauses"));
    gpq_reasons(reasons, put_reason, NULL);
}

int gpq_verb_explain(const struct call *call)
{
    struct gpq_session s;
    char task[32];
    json_t *reply = NULL;
    int status = gpq_session_open(&s, call, GPQ_AGENT_RESUMED);
    if (status == 0)
        status = gpq_one_task(&s, task);
    if (status == 0)
        status =
            gpq_session_insist(&s, json_pack("{s:s, s:s}", "do", "explain", "task", task), &reply);
    if (status == 0 && call->given[OPTION_JSON])
        gpq_print_json(reply);
    else if (status == 0)
        explain(reply);
    json_decref(reply);
    gpq_session_close(&s);
    return status;
}
