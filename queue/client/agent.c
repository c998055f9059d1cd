/* SPDX-License-Identifier: MIT */
/* agent.c - starts, stops and shows the agent; fsck, which is a part of its program. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/client/session.h"
#include "queue/client/start.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"
#include "queue/files/pidfd.h"
#include "tools/cli/out.h"

static void print_start_json(const struct gpq_session *s)
{
    json_t *row =
        json_pack("{s:b, s:I, s:I, s:s}", "started", (int)s->started, "pid", (json_int_t)s->pid,
                  "devices", (json_int_t)s->devices, "state", s->state);
    gpq_print_json(row);
    json_decref(row);
}

/* The options of an agent that runs already are those of this call. */
static int compare(struct gpq_session *s)
{
    json_t *reply = NULL;
    int status = gpq_session_ask(s, json_pack("{s:s}", "do", "status"), &reply);
    if (status == 0)
        status = gpq_agent_compare(s->call, reply);
    json_decref(reply);
    return status;
}

static void print_start(const struct gpq_session *s)
{
    char *chosen = s->started && !gpq_agent_chooses(s->call) ? gpq_agent_chosen(s->state) : NULL;
    printf("agent %s (%" PRIu32 " GPUs, pid %" PRIi64 ")", s->started ? "started" : "runs already",
           s->devices, s->pid);
    if (chosen) {
        fputs(" with the options of the last start: ", stdout);
        put_plain(chosen);
    }
    printf("; state %s\n", s->state);
    free(chosen);
}

static int start(const struct call *call)
{
    struct gpq_session s;
    int status;
    if (call->given[OPTION_DRAIN] || call->given[OPTION_CANCEL])
        return usage(call->verb, "agent: --drain and --cancel belong to agent stop");
    if (call->given[OPTION_FOREGROUND]) {
        status = gpq_session_place(&s, call, true);
        return status ? status : gpq_agent_become(call, s.state);
    }
    status = gpq_session_open(&s, call, GPQ_AGENT_STARTED);
    if (status == 0 && !s.started && gpq_agent_chooses(call))
        status = compare(&s);
    if (status == 0 && call->given[OPTION_JSON])
        print_start_json(&s);
    else if (status == 0)
        print_start(&s);
    gpq_session_close(&s);
    return status;
}

/* ---- stop ---- */

/* Until the process has ended, also one that waits for its tasks. */
static void await_end(int64_t pid)
{
    struct pollfd p = { .fd = gpq_pidfd_open((pid_t)pid), .events = POLLIN };
    if (p.fd < 0)
        return;
    while (poll(&p, 1, -1) < 0)
        continue;
    close(p.fd);
}

static int stop(const struct call *call)
{
    struct gpq_session s;
    json_t *reply = NULL, *before = NULL;
    const char *how = call->given[OPTION_CANCEL]  ? "cancel"
                      : call->given[OPTION_DRAIN] ? "drain"
                                                  : "leave";
    if (call->given[OPTION_DRAIN] && call->given[OPTION_CANCEL])
        return usage(call->verb, "agent: --drain and --cancel exclude one another");
    int status = gpq_session_open(&s, call, GPQ_AGENT_RUNNING);
    if (status == 0)
        status = gpq_session_ask(&s, json_pack("{s:s}", "do", "status"), &before);
    if (status == 0)
        status = gpq_session_ask(&s, json_pack("{s:s, s:s}", "do", "stop", "how", how), &reply);
    if (status == 0)
        await_end(s.pid);
    if (status == 0 && call->given[OPTION_JSON])
        gpq_print_json(reply);
    else if (status == 0)
        printf("agent stopped%s\n",
               strcmp(how, "leave") == 0 && gpq_number_of(before, "running") > 0
                   ? "; its running commands go on, and the next agent adopts them"
                   : "");
    json_decref(before);
    json_decref(reply);
    gpq_session_close(&s);
    return status;
}

/* ---- status ---- */

static void print_mark(const json_t *mark)
{
    char since[32];
    const char *kind = gpq_text_of(mark, "kind"), *reason = gpq_text_of(mark, "reason");
    const char *device = gpq_text_of(mark, "device");
    if (strcmp(kind, "evict") == 0) /* of drain --now, whose mark is there, too */
        return;
    if (!*device)
        device = gpq_text_of(mark, "subject");
    printf("  %s%s", strcmp(kind, "pause") == 0 ? "paused" : "drained", *device ? " " : "");
    put_plain(device);
    printf(" since %s", gpq_time_text((uint64_t)gpq_number_of(mark, "since"), since));
    if (*reason) {
        fputs(": ", stdout);
        put_plain(reason);
    }
    putchar('\n');
}

static int status_of(const struct call *call)
{
    json_t *reply;
    int status =
        gpq_session_once(call, GPQ_AGENT_RUNNING, json_pack("{s:s}", "do", "status"), &reply);
    if (reply) {
        const json_t *marks = json_object_get(reply, "marks");
        const char *waits = gpq_text_of(reply, "wait_text");
        printf("agent pid %" PRIi64 ", %" PRIi64 " GPUs, %" PRIi64 " %s%s; state %s\n",
               gpq_number_of(reply, "pid"), gpq_number_of(reply, "devices"),
               gpq_number_of(reply, "running"),
               gpq_number_of(reply, "running") == 1 ? "task runs" : "tasks run",
               json_is_true(json_object_get(reply, "stopping")) ? ", it is to end" : "",
               gpq_text_of(reply, "state"));
        if (*waits) {
            fputs("  no task starts: ", stdout);
            put_plain(waits);
            putchar('\n');
        }
        for (size_t i = 0; i < json_array_size(marks); i++)
            print_mark(json_array_get(marks, i));
    }
    json_decref(reply);
    return status;
}

int gpq_verb_agent(const struct call *call)
{
    const char *what = call->operands > 0 ? call->operand[0] : "start";
    if (strcmp(what, "start") == 0)
        return start(call);
    if (strcmp(what, "stop") == 0)
        return stop(call);
    if (strcmp(what, "status") == 0)
        return status_of(call);
    return usage(call->verb, "agent: '%s', expected start, stop or status", what);
}

int gpq_verb_fsck(const struct call *call)
{
    struct gpq_session s;
    int status = gpq_session_place(&s, call, false);
    return status ? status : gpq_agent_check(call, s.state);
}
