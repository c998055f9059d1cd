/* SPDX-License-Identifier: MIT */
/* set.c - changes waiting tasks. */
#include <stdio.h>

#include "queue/client/ids.h"
#include "queue/client/spec.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"

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
    struct gpq_session s;
    json_t *changes = json_object(), *list = NULL;
    char number[32];
    uint64_t count = 0, running = 0;
    int status = read_changes(call, changes);
    if (status != 0) {
        json_decref(changes);
        return status;
    }
    status = gpq_session_open(&s, call, GPQ_AGENT_RESUMED);
    if (status == 0)
        status = gpq_selections(&s, &list);
    for (size_t i = 0; status == 0 && i < json_array_size(list); i++) {
        json_t *reply, *request = gpq_request_of("set", json_array_get(list, i));
        (void)json_object_update(request, changes);
        status = gpq_session_insist(&s, request, &reply);
        count += (uint64_t)gpq_number_of(reply, "count");
        running += (uint64_t)gpq_number_of(reply, "running");
        json_decref(reply);
    }
    if (status == 0 && call->given[OPTION_JSON])
        printf("{\"count\":%llu,\"running\":%llu}\n", (unsigned long long)count,
               (unsigned long long)running);
    else if (status == 0)
        printf("%s waiting %s changed\n", gpq_number_text(count, number),
               count == 1 ? "task" : "tasks");
    if (status == 0 && running > 0)
        status = gpq_say(EXIT_REFUSED, "%llu running %s left alone", (unsigned long long)running,
                         running == 1 ? "task was" : "tasks were");
    json_decref(changes);
    json_decref(list);
    gpq_session_close(&s);
    return status;
}
