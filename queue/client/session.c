/* SPDX-License-Identifier: MIT */
/* session.c - connects to the agent, sends requests and hears lines. */
#include "queue/client/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "queue/client/interrupts.h"
#include "queue/client/option.h"
#include "queue/client/place.h"
#include "queue/client/start.h"
#include "queue/client/words.h"
#include "queue/files/socket.h"
#include "queue/files/statedir.h"
#include "queue/files/stopped.h"
#include "queue/proto/hello.h"

#define MS UINT64_C(1000000)
enum { READ = 65536, HELLO_MS = 30000, PATIENCE_MS = 15000, STEP_MS = 20 };

/* ---- Lines ---- */

int gpq_session_send(struct gpq_session *s, json_t *request)
{
    char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    if (!text)
        return gpq_say(EXIT_FAILED, "no memory for the request, or an argument is not UTF-8");
    size_t size = strlen(text), sent = 0;
    if (size > GPQ_LINE_MOST) {
        free(text);
        return gpq_say(EXIT_REFUSED, "the request has %zu MiB, at most %zu: submit it in parts",
                       size >> 20, GPQ_LINE_MOST >> 20);
    }
    text[size++] = '\n'; /* in place of the NUL byte */
    while (sent < size) {
        ssize_t n = send(s->fd, text + sent, size - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        sent += (size_t)n;
    }
    free(text);
    return sent == size ? 0 : EXIT_NONE;
}

static enum gpq_heard read_more(struct gpq_session *s, uint64_t deadline)
{
    struct pollfd p = { .fd = s->fd, .events = POLLIN };
    int n = gpq_poll(&p, 1, gpq_ms_until(deadline));
    if (n < 0)
        return errno == EINTR ? GPQ_INTERRUPTED : GPQ_CLOSED;
    if (n == 0)
        return GPQ_LATE;
    char *room = gpq_buffer_room(&s->in, READ);
    ssize_t got = room ? read(s->fd, room, READ) : -1;
    if (got < 0 && errno == EINTR)
        return GPQ_INTERRUPTED;
    if (got <= 0)
        return GPQ_CLOSED;
    s->in.used += (size_t)got;
    return GPQ_LINE;
}

enum gpq_heard gpq_session_hear(struct gpq_session *s, uint64_t deadline, json_t **ret)
{
    const char *line = NULL;
    size_t size;
    int found;
    *ret = NULL;
    while ((found = gpq_buffer_line(&s->in, &line, &size)) == 0) {
        enum gpq_heard heard = read_more(s, deadline);
        if (heard != GPQ_LINE)
            return heard;
    }
    if (found > 0 && (*ret = json_loadb(line, size, 0, NULL)) && json_is_object(*ret))
        return GPQ_LINE;
    json_decref(*ret);
    *ret = NULL;
    (void)gpq_say(EXIT_FAILED,
                  "the process that listens for %s sent an unexpected line: is it a "
                  "gpudispatch agent?",
                  s->state);
    return GPQ_STRANGE;
}

int gpq_session_status(const json_t *reply)
{
    json_int_t status = json_integer_value(json_object_get(reply, "status"));
    return status > 0 && status < 126 ? (int)status : EXIT_FAILED;
}

int gpq_session_judge(const json_t *reply)
{
    if (json_is_true(json_object_get(reply, "ok")))
        return 0;
    const char *text = json_string_value(json_object_get(reply, "error"));
    char room[1024];
    return gpq_say(gpq_session_status(reply), "%s",
                   text ? gpq_options_text(text, room, sizeof(room))
                        : "the agent has sent no reply");
}

/* Borrows the request.  EXIT_NONE without a reply: the connection is closed, which is not said; -1:
 * interrupted, and closed, too. */
static int exchange(struct gpq_session *s, json_t *request, json_t **ret)
{
    json_t *reply = NULL;
    int status = gpq_session_send(s, json_incref(request));
    *ret = NULL;
    if (status != 0)
        return status;
    enum gpq_heard heard;
    while ((heard = gpq_session_hear(s, 0, &reply)) == GPQ_INTERRUPTED)
        if (gpq_interrupted()) {
            gpq_session_close(s);
            return -1;
        }
    *ret = reply;
    return heard == GPQ_LINE ? 0 : heard == GPQ_CLOSED ? EXIT_NONE : EXIT_FAILED;
}

static int hear_reply(struct gpq_session *s, json_t *request, bool again, json_t **ret)
{
    int status = exchange(s, request, ret);
    if (status == EXIT_NONE && again && (status = gpq_session_again(s)) == 0)
        status = exchange(s, request, ret);
    json_decref(request);
    return status == EXIT_NONE
               ? gpq_say(status, "the agent has closed the connection before its reply")
               : status;
}

static int judged(int status, json_t **reply)
{
    if (status == 0 && (status = gpq_session_judge(*reply)) == 0)
        return 0;
    json_decref(*reply);
    *reply = NULL;
    return status;
}

int gpq_session_ask(struct gpq_session *s, json_t *request, json_t **ret)
{
    return judged(hear_reply(s, request, false, ret), ret);
}

int gpq_session_insist(struct gpq_session *s, json_t *request, json_t **ret)
{
    return judged(hear_reply(s, request, true, ret), ret);
}

int gpq_session_hear_reply(struct gpq_session *s, json_t *request, json_t **ret)
{
    return hear_reply(s, request, true, ret);
}

/* ---- Connection ---- */

static int judge_hello(struct gpq_session *s, const json_t *hello)
{
    const char *name = json_string_value(json_object_get(hello, "hello"));
    json_int_t version = json_integer_value(json_object_get(hello, "version"));
    if (!name)
        return gpq_session_judge(hello);
    if (strcmp(name, GPQ_PROTOCOL) != 0 || version != GPQ_PROTOCOL_VERSION)
        return gpq_say(EXIT_UNUSABLE,
                       "the agent of %s has version %" JSON_INTEGER_FORMAT
                       " of the protocol, this program has %d: use the program of its version, or "
                       "stop it (kill its process) and start one of this version",
                       s->state, version, GPQ_PROTOCOL_VERSION);
    s->pid = json_integer_value(json_object_get(hello, "pid"));
    s->devices = (uint32_t)json_integer_value(json_object_get(hello, "devices"));
    return 0;
}

/* The first lines of both sides.  EXIT_NONE: it ends just now. */
static int greet(struct gpq_session *s)
{
    json_t *hello = NULL;
    uint64_t deadline = gpq_now() + HELLO_MS * MS;
    enum gpq_heard heard;
    int status = gpq_session_send(
        s, json_pack("{s:s, s:i}", "hello", GPQ_PROTOCOL, "version", GPQ_PROTOCOL_VERSION));
    if (status != 0)
        return status;
    while ((heard = gpq_session_hear(s, deadline, &hello)) == GPQ_INTERRUPTED)
        if (gpq_interrupted())
            return -1;
    if (heard == GPQ_LINE)
        status = judge_hello(s, hello);
    else if (heard == GPQ_LATE)
        status = gpq_say(EXIT_FAILED, "the agent of %s does not answer within %d s", s->state,
                         HELLO_MS / 1000);
    else
        status = heard == GPQ_CLOSED ? EXIT_NONE : EXIT_FAILED;
    json_decref(hello);
    return status;
}

/* 0; GPQ_ENOTFOUND: no agent listens, and nothing was said; or an exit status. */
static int connect_now(struct gpq_session *s)
{
    struct gpq_places places;
    struct gpq_error e = { 0 };
    gpq_places_read(s->call->value[OPTION_STATE_DIR], &places);
    gpq_session_close(s);
    int code = gpq_socket_connect(&places, s->state, &s->fd, &e);
    if (code == 0)
        return greet(s);
    s->fd = -1;
    return code == GPQ_ENOTFOUND ? code : gpq_say(gpq_error_status(code), "%s", e.text);
}

/* Until one answers.  EXIT_NONE: none did, which is not said, as EXIT_TIMEOUT is not; -1:
 * interrupted. */
static int await_agent(struct gpq_session *s, int patience_ms)
{
    uint64_t deadline = gpq_now() + (uint64_t)patience_ms * MS;
    for (;;) {
        int status = connect_now(s);
        if (status != GPQ_ENOTFOUND && status != EXIT_NONE)
            return status;
        if (gpq_ms_until(s->deadline) == 0)
            return EXIT_TIMEOUT;
        if (gpq_now() >= deadline)
            return EXIT_NONE;
        if (gpq_poll(NULL, 0, STEP_MS) < 0 && gpq_interrupted())
            return -1;
    }
}

int gpq_session_place(struct gpq_session *s, const struct call *call, bool make)
{
    struct gpq_error e = { 0 };
    char path[GPQ_PATH];
    uint64_t patience = 0;
    *s = (struct gpq_session){ .call = call, .fd = -1 };
    int status = gpq_option_duration(call, OPTION_TIMEOUT, &patience);
    if (status != 0)
        return status;
    s->deadline = call->value[OPTION_TIMEOUT] ? gpq_now() + patience : 0;
    int code = gpq_place_find(call->value[OPTION_STATE_DIR], call->value[OPTION_CONFIG], path, &e);
    if (code < 0)
        return gpq_say_config(code, &e);
    code = make ? gpq_statedir_make(path, call->given[OPTION_ALLOW_NETWORK_FS], s->state, &e)
                : gpq_statedir_check(path, s->state, &e);
    if (code == GPQ_ENOTFOUND)
        return gpq_say(EXIT_NONE, "there is no queue in %s: a submit makes one", path);
    return code < 0 ? gpq_say(gpq_error_status(code), "%s", e.text) : 0;
}

bool gpq_session_try(struct gpq_session *s, const struct call *call)
{
    struct gpq_error e = { 0 };
    char path[GPQ_PATH];
    *s = (struct gpq_session){ .call = call, .fd = -1 };
    return gpq_place_find(call->value[OPTION_STATE_DIR], call->value[OPTION_CONFIG], path, &e) ==
               0 &&
           gpq_statedir_check(path, s->state, &e) == 0 && connect_now(s) == 0;
}

/* Whether a verb that looks starts an agent: its tasks go on after a crash or a reboot, but not
 * after `agent stop`. */
static bool resumes(const struct gpq_session *s)
{
    char path[GPQ_PATH];
    struct stat st;
    return gpq_path(path, "%s/queue.db", s->state) == 0 && stat(path, &st) == 0 &&
           !gpq_stopped(s->state);
}

static int start(struct gpq_session *s)
{
    int status = gpq_agent_start(s->call, s->state);
    if (status == 0)
        status = await_agent(s, HELLO_MS);
    if (status == EXIT_NONE)
        return gpq_say(EXIT_NONE, "no agent answers for %s; see %s/agent.log", s->state, s->state);
    s->started = status == 0;
    return status;
}

int gpq_session_again(struct gpq_session *s)
{
    int status = await_agent(s, PATIENCE_MS);
    if (status == EXIT_NONE && s->wish != GPQ_AGENT_RUNNING && resumes(s))
        return start(s);
    return status == EXIT_NONE || status == EXIT_TIMEOUT
               ? gpq_say(status, "no agent answers for %s", s->state)
               : status;
}

int gpq_session_open(struct gpq_session *s, const struct call *call, enum gpq_agent_wish wish)
{
    int status = gpq_session_place(s, call, wish == GPQ_AGENT_STARTED);
    if (status != 0)
        return status;
    s->wish = wish;
    status = connect_now(s);
    if (status != GPQ_ENOTFOUND && status != EXIT_NONE)
        return status;
    if (wish == GPQ_AGENT_RUNNING || (wish == GPQ_AGENT_RESUMED && !resumes(s)))
        return gpq_say(EXIT_NONE, "no agent runs for %s: gpudispatch agent starts it", s->state);
    return start(s);
}

void gpq_session_close(struct gpq_session *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    gpq_buffer_free(&s->in);
}

int gpq_session_once(const struct call *call, enum gpq_agent_wish wish, json_t *request,
                     json_t **ret)
{
    struct gpq_session s;
    int status = gpq_session_open(&s, call, wish);
    *ret = NULL;
    if (status != 0)
        json_decref(request);
    else if (wish == GPQ_AGENT_RUNNING)
        status = gpq_session_ask(&s, request, ret);
    else
        status = gpq_session_insist(&s, request, ret);
    gpq_session_close(&s);
    if (*ret && call->given[OPTION_JSON]) {
        gpq_print_json(*ret);
        json_decref(*ret);
        *ret = NULL;
    }
    return status;
}
