/* SPDX-License-Identifier: MIT */
/* desk.c - an agent without commands, for the tests of its requests and of its socket. */
#include "desk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct gpq_agent t_desk;
uint64_t t_desk_time;
int t_desk_fault;

/* ---- What the agent has for its server ---- */

int gpq_watch(struct gpq_agent *a, struct gpq_watched *w, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = w };
    if (epoll_ctl(a->epoll, EPOLL_CTL_ADD, w->fd, &event) != 0)
        T_EQ(epoll_ctl(a->epoll, EPOLL_CTL_MOD, w->fd, &event), 0);
    return 0;
}

void gpq_unwatch(struct gpq_agent *a, struct gpq_watched *w)
{
    T_EQ(epoll_ctl(a->epoll, EPOLL_CTL_DEL, w->fd, NULL), 0);
}

void gpq_log(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vprintf(format, list);
    va_end(list);
    (void)putchar('\n');
}

int gpq_work_explain(struct gpq_agent *a, const struct gpq_task *task, json_t *array)
{
    (void)a;
    (void)task;
    return json_array_append_new(
               array, json_pack("{s:s, s:s}", "reason", "SHARE", "text", "SHARE on gpu:0")) == 0
               ? 0
               : GPQ_ENOMEM;
}

void gpq_work_describe(struct gpq_agent *a, const struct gpq_task *task, json_t *row)
{
    (void)a;
    if (task->state == GPQ_RUNNING)
        (void)json_object_set_new(row, "devices", json_string("gpu:0"));
}

/* ---- Open and close ---- */

void t_desk_open(void)
{
    struct gpq_error e = { 0 };
    t_desk = (struct gpq_agent){ .epoll = -1, .devices = 8 };
    t_desk_time = 1000;
    t_desk_fault = 0;
    T_CHECK(getcwd(t_desk.state, sizeof(t_desk.state)));
    if (gpq_sqlite_open(&(struct gpq_options){ .directory = "." }, &t_desk.store, &e))
        T_FAIL("%s", e.text);
}

void t_desk_serve(void)
{
    struct gpq_error e = { 0 };
    t_desk_open();
    T_EQ(unsetenv("XDG_RUNTIME_DIR"), 0);
    t_desk.epoll = epoll_create1(EPOLL_CLOEXEC);
    T_CMP(t_desk.epoll, >=, 0);
    if (gpq_server_open(&t_desk, &e) != 0)
        T_FAIL("%s", e.text);
}

void t_desk_close(void)
{
    gpq_server_close(&t_desk);
    if (t_desk.epoll >= 0)
        T_EQ(close(t_desk.epoll), 0);
    t_desk.store->engine->close(t_desk.store);
}

/* ---- Requests ---- */

json_t *t_json(const char *text)
{
    char *copy = strdup(text);
    json_error_t why;
    T_CHECK(copy);
    for (char *c = copy; *c; c++)
        if (*c == '\'')
            *c = '"';
    json_t *json = json_loads(copy, 0, &why);
    if (!json)
        T_FAIL("%s in %s", why.text, copy);
    free(copy);
    return json;
}

json_t *t_ask(const char *request)
{
    const struct gpq_engine *engine = t_desk.store->engine;
    struct gpq_error e = { 0 };
    struct gpq_wish wish = { 0 };
    json_t *json = t_json(request);
    T_EQ(engine->begin(t_desk.store, &e), 0);
    json_t *reply = gpq_request(&t_desk, t_desk_time++, json, &wish);
    T_EQ(engine->commit(t_desk.store, &e), 0);
    T_CHECK(reply);
    gpq_wish_free(&wish);
    json_decref(json);
    return reply;
}

json_t *t_ask_ok(const char *request)
{
    json_t *reply = t_ask(request);
    if (!json_is_true(json_object_get(reply, "ok")))
        T_FAIL("%s: %s", request, t_text_of(reply));
    return reply;
}

void t_ask_refused(const char *request, const char *code, const char *part)
{
    size_t before;
    json_t *reply = t_ask(request);
    const char *text = json_string_value(json_object_get(reply, "error"));
    T_CHECK(json_is_false(json_object_get(reply, "ok")));
    T_TEXT(json_string_value(json_object_get(reply, "code")), code);
    if (!strstr(text, part))
        T_FAIL("no \"%s\" in: %s", part, text);
    before = strlen(text);
    T_CHECK(before != 0 && text[before - 1] != '.');
    json_decref(reply);
}

const char *t_text_of(const json_t *json)
{
    static char text[4][4096];
    static unsigned next;
    char *to = text[next++ % 4], *all = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    T_CHECK(all);
    (void)snprintf(to, sizeof(text[0]), "%s", all);
    free(all);
    for (char *c = to; *c; c++)
        if (*c == '"')
            *c = '\'';
    return to;
}

/* ---- Turns ---- */

int t_desk_turn(int ms)
{
    const struct gpq_engine *engine = t_desk.store->engine;
    struct epoll_event event[64];
    struct gpq_error e = { 0 };
    int n = epoll_wait(t_desk.epoll, event, 64, gpq_server_waits(&t_desk) ? 0 : ms);
    for (int i = 0; i < n; i++)
        gpq_server_ready(&t_desk, event[i].data.ptr, event[i].events);
    if (!gpq_server_waits(&t_desk))
        return n;
    T_EQ(engine->begin(t_desk.store, &e), 0);
    gpq_server_apply(&t_desk, t_desk_time++);
    int code = t_desk_fault;
    t_desk_fault = 0;
    if (code != 0) {
        engine->rollback(t_desk.store);
        gpq_fail(&e, code, "the disk of the test is full");
    } else {
        code = engine->commit(t_desk.store, &e);
        T_EQ(code, 0);
    }
    gpq_server_settle(&t_desk, code, &e);
    return n;
}
