/* SPDX-License-Identifier: MIT */
/* change.c - cancel, retry, hold and release. */
#include <stdio.h>
#include <string.h>

#include "queue/client/ids.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"

/* Sends one request per selection, and adds the numbers of their replies. */
static int change(const struct call *call, const char *what, uint64_t *count, uint64_t *running)
{
    struct gpq_session s;
    json_t *list = NULL;
    int status = gpq_session_open(&s, call, GPQ_AGENT_RESUMED);
    if (status == 0)
        status = gpq_selections(&s, &list);
    for (size_t i = 0; status == 0 && i < json_array_size(list); i++) {
        json_t *reply;
        json_t *request = gpq_request_of(what, json_array_get(list, i));
        /* A second retry would begin a second round of a task that has ended in between. */
        status = strcmp(what, "retry") == 0 ? gpq_session_ask(&s, request, &reply)
                                            : gpq_session_insist(&s, request, &reply);
        *count += (uint64_t)(gpq_number_of(reply, "count") + gpq_number_of(reply, "ended"));
        *running += (uint64_t)gpq_number_of(reply, "running");
        if (reply && call->given[OPTION_JSON]) {
            (void)json_dumpf(reply, stdout, JSON_COMPACT);
            putchar('\n');
        }
        json_decref(reply);
    }
    json_decref(list);
    gpq_session_close(&s);
    return status;
}

static const char *tasks(uint64_t n)
{
    return n == 1 ? "task" : "tasks";
}

/* Prints "3 tasks TEXT". */
static int change_and_say(const struct call *call, const char *what, const char *text)
{
    uint64_t count = 0, running = 0;
    char number[32];
    int status = change(call, what, &count, &running);
    if (status == 0 && !call->given[OPTION_JSON])
        printf("%s %s %s\n", gpq_number_text(count, number), tasks(count), text);
    return status;
}

int gpq_verb_cancel(const struct call *call)
{
    uint64_t count = 0, running = 0;
    char number[32];
    int status = change(call, "cancel", &count, &running);
    if (status != 0 || call->given[OPTION_JSON])
        return status;
    if (count > 0 || running == 0)
        printf("%s waiting %s cancelled%s", gpq_number_text(count, number), tasks(count),
               running > 0 ? "; " : "");
    if (running > 0)
        printf("%s running %s %s SIGTERM", gpq_number_text(running, number), tasks(running),
               running == 1 ? "gets" : "get");
    putchar('\n');
    return 0;
}

int gpq_verb_retry(const struct call *call)
{
    return change_and_say(call, "retry", "in a new round");
}

int gpq_verb_hold(const struct call *call)
{
    return change_and_say(call, "hold", "held");
}

int gpq_verb_release(const struct call *call)
{
    return change_and_say(call, "release", "released");
}
