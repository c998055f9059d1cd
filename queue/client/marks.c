/* SPDX-License-Identifier: MIT */
/* marks.c - pause, resume, drain and undrain. */
#include <stdio.h>

#include "queue/client/session.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"

static bool set_option(json_t *request, const struct call *call, enum option_id id)
{
    return !call->value[id] ||
           json_object_set_new(request, options[id].name, json_string(call->value[id])) == 0;
}

/* Sends a request with the members that were given.  *ret is as gpq_session_once fills it. */
static int mark(const struct call *call, const char *what, json_t **ret)
{
    json_t *request = json_pack("{s:s}", "do", what);
    *ret = NULL;
    if (request && set_option(request, call, OPTION_CLASS) &&
        set_option(request, call, OPTION_REASON) &&
        (call->operands == 0 ||
         json_object_set_new(request, "device", json_string(call->operand[0])) == 0) &&
        (!call->given[OPTION_NOW] || json_object_set_new(request, "now", json_true()) == 0))
        return gpq_session_once(call, GPQ_AGENT_RESUMED, request, ret);
    json_decref(request);
    return gpq_say(EXIT_FAILED, "no memory, or a text that is not UTF-8");
}

int gpq_verb_pause(const struct call *call)
{
    json_t *reply;
    int status = mark(call, "pause", &reply);
    const char *class = call->value[OPTION_CLASS] ? call->value[OPTION_CLASS] : "";
    if (reply)
        printf("paused%s%s; running tasks go on; gpudispatch resume%s%s ends it\n",
               *class ? ": class " : "", class, *class ? " --class " : "", class);
    json_decref(reply);
    return status;
}

int gpq_verb_resume(const struct call *call)
{
    json_t *reply;
    int status = mark(call, "resume", &reply);
    if (reply)
        puts(json_is_true(json_object_get(reply, "was_paused")) ? "resumed" : "nothing was paused");
    json_decref(reply);
    return status;
}

int gpq_verb_drain(const struct call *call)
{
    json_t *reply;
    int status = mark(call, "drain", &reply);
    if (reply)
        printf("GPU %s drained; %s; gpudispatch undrain %s ends it\n", call->operand[0],
               call->given[OPTION_NOW] ? "its tasks return to their places"
                                       : "its running tasks go on",
               call->operand[0]);
    json_decref(reply);
    return status;
}

int gpq_verb_undrain(const struct call *call)
{
    json_t *reply;
    int status = mark(call, "undrain", &reply);
    if (reply)
        printf("GPU %s %s\n", call->operand[0],
               json_is_true(json_object_get(reply, "was_drained")) ? "takes tasks again"
                                                                   : "was not drained");
    json_decref(reply);
    return status;
}
