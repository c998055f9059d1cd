/* SPDX-License-Identifier: MIT */
/* change.c - cancel, retry, hold, release and set. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/client/ids.h"
#include "queue/client/spec.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"

struct change {
    const char *what;
    json_t *members; /* what set changes; its sums are printed at the end */
    uint64_t count, running;
};

/* Sends a request for the selection, and adds the numbers of its reply. */
static int change_selection(struct gpq_session *s, json_t *selection, void *user)
{
    struct change *c = user;
    json_t *reply, *request = gpq_request_of(c->what, selection);
    if (c->members)
        (void)json_object_update(request, c->members);
    /* A second retry would begin a second round of a task that has ended in between. */
    int status = strcmp(c->what, "retry") == 0 ? gpq_session_ask(s, request, &reply)
                                               : gpq_session_insist(s, request, &reply);
    c->count += (uint64_t)(gpq_number_of(reply, "count") + gpq_number_of(reply, "ended"));
    c->running += (uint64_t)gpq_number_of(reply, "running");
    if (reply && s->call->given[OPTION_JSON] && !c->members)
        gpq_print_json(reply);
    json_decref(reply);
    return status;
}

/* Prints "3 tasks TEXT". */
static int change(const struct call *call, const char *what, const char *text)
{
    struct change c = { .what = what };
    char number[32];
    int status = gpq_each_selection(call, change_selection, &c);
    if (status == 0 && !call->given[OPTION_JSON])
        printf("%s %s %s\n", gpq_number_text(c.count, number), gpq_tasks(c.count), text);
    return status;
}

int gpq_verb_retry(const struct call *call)
{
    return change(call, "retry", "in a new round");
}

int gpq_verb_hold(const struct call *call)
{
    return change(call, "hold", "held");
}

int gpq_verb_release(const struct call *call)
{
    return change(call, "release", "released");
}

int gpq_verb_cancel(const struct call *call)
{
    struct change c = { .what = "cancel" };
    char number[32];
    int status = gpq_each_selection(call, change_selection, &c);
    if (status != 0 || call->given[OPTION_JSON])
        return status;
    if (c.count > 0 || c.running == 0)
        printf("%s waiting %s cancelled%s", gpq_number_text(c.count, number), gpq_tasks(c.count),
               c.running > 0 ? "; " : "");
    if (c.running > 0)
        printf("%s running %s %s SIGTERM", gpq_number_text(c.running, number), gpq_tasks(c.running),
               c.running == 1 ? "gets" : "get");
    putchar('\n');
    return 0;
}

/* ---- set ---- */

/* The members that the options change. */
static int read_changes(const struct call *call, json_t *changes)
{
    struct gpq_error e = { 0 };
    struct gpq_config config;
    int code = gpq_config_read(call->value[OPTION_CONFIG], &config, &e);
    if (code < 0)
        return gpq_say_config(code, &e);
    struct gpq_members m = { &config, gpq_now_wall(), changes, NULL };
    code = gpq_members_of_call(&m, call, &e);
    gpq_config_free(&config);
    if (code == 0 && call->given[OPTION_FIRST] &&
        json_object_set_new(changes, "front", json_true()) != 0)
        code = gpq_fail(&e, GPQ_ENOMEM, "no memory");
    if (code == 0 && json_object_size(changes) == 0)
        return usage(call->verb, "set: expected what to change, such as --priority 10 or --first");
    if (code == 0 && call->given[OPTION_ALLOW_WAIT] &&
        json_object_set_new(changes, "allow_wait", json_true()) != 0)
        code = gpq_fail(&e, GPQ_ENOMEM, "no memory");
    return code < 0 ? usage(call->verb, "set: %s", e.text) : 0;
}

int gpq_verb_set(const struct call *call)
{
    json_t *changes = json_object();
    struct change c = { .what = "set", .members = changes };
    char number[32];
    int status = read_changes(call, changes);
    if (status == 0)
        status = gpq_each_selection(call, change_selection, &c);
    if (status == 0 && call->given[OPTION_JSON])
        printf("{\"count\":%" PRIu64 ",\"running\":%" PRIu64 "}\n", c.count, c.running);
    else if (status == 0 && c.count > 0)
        printf("%s waiting %s changed\n", gpq_number_text(c.count, number), gpq_tasks(c.count));
    if (status == 0 && c.running > 0)
        status = gpq_say(EXIT_REFUSED, "%" PRIu64 " running %s left alone", c.running,
                         c.running == 1 ? "task was" : "tasks were");
    else if (status == 0 && c.count == 0)
        status = gpq_say(EXIT_REFUSED, "nothing was changed: none of these tasks waits");
    json_decref(changes);
    return status;
}
