/* SPDX-License-Identifier: MIT */
/* client.c - one client: its connection, the lines that it sent, and those for it. */
#include "queue/agent/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "queue/agent/fields.h"
#include "queue/agent/requests.h"

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)
#define VERSION VERSION_TEXT(GPUD_VERSION_MAJOR, GPUD_VERSION_MINOR, GPUD_VERSION_PATCH)
#define PIECE ((size_t)64 << 10)

/* ---- Its life ---- */

struct gpq_client *gpq_client_new(struct gpq_agent *a, int fd)
{
    struct gpq_client *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->watched = (struct gpq_watched){ GPQ_SOURCE_CLIENT, fd, c };
    c->events = EPOLLIN;
    if (gpq_watch(a, &c->watched, c->events) != 0) {
        free(c);
        return NULL;
    }
    return c;
}

void gpq_client_gone(struct gpq_agent *a, struct gpq_client *c)
{
    if (c->gone)
        return;
    gpq_unwatch(a, &c->watched);
    (void)close(c->watched.fd);
    c->watched.fd = -1;
    c->gone = true;
    c->eof = true;
    gpq_buffer_free(&c->out);
}

bool gpq_client_is_over(struct gpq_client *c)
{
    return c->gone && c->waiting == 0 && (c->closing || !gpq_buffer_has_line(&c->in));
}

void gpq_client_free(struct gpq_client *c)
{
    gpq_buffer_free(&c->in);
    gpq_buffer_free(&c->out);
    free(c);
}

bool gpq_client_has_room(const struct gpq_client *c)
{
    return gpq_buffer_left(&c->out) <= GPQ_CLIENT_PAUSE;
}

/* Closes it if nothing is to come, and tells the epoll set what to wait for. */
static void arrange(struct gpq_agent *a, struct gpq_client *c)
{
    bool quiet = c->waiting == 0 && c->watchers == 0 && !gpq_buffer_has_line(&c->in);
    size_t left = gpq_buffer_left(&c->out);
    uint32_t events = 0;
    if (c->gone)
        return;
    if (left == 0 && ((c->closing && c->waiting == 0) || (c->eof && quiet))) {
        gpq_client_gone(a, c);
        return;
    }
    if (left != 0)
        events |= EPOLLOUT;
    if (!c->eof && !c->closing && gpq_client_has_room(c) && c->waiting < GPQ_CLIENT_REQUESTS &&
        !gpq_buffer_has_line(&c->in))
        events |= EPOLLIN;
    if (events == c->events)
        return;
    c->events = events;
    if (gpq_watch(a, &c->watched, events) != 0)
        gpq_client_gone(a, c);
}

/* ---- Output ---- */

void gpq_client_send_text(struct gpq_agent *a, struct gpq_client *c, const char *text, size_t size)
{
    if (c->gone)
        return;
    if (!gpq_buffer_add(&c->out, text, size) || !gpq_buffer_add(&c->out, "\n", 1))
        gpq_client_gone(a, c); /* half a line would be worse */
}

void gpq_client_send(struct gpq_agent *a, struct gpq_client *c, json_t *line)
{
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    if (text)
        gpq_client_send_text(a, c, text, strlen(text));
    else
        gpq_client_gone(a, c);
    free(text);
}

void gpq_client_write(struct gpq_agent *a, struct gpq_client *c)
{
    while (!c->gone && gpq_buffer_left(&c->out) != 0) {
        ssize_t n = send(c->watched.fd, c->out.data + c->out.taken, gpq_buffer_left(&c->out),
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM))
            break;
        if (n < 0) { /* nobody will read what is left, nor the rest of what it sent */
            gpq_client_gone(a, c);
            gpq_buffer_free(&c->in);
            break;
        }
        gpq_buffer_take(&c->out, (size_t)n);
    }
}

/* The connection takes no more requests: the error is sent, and replies to earlier ones follow. */
static void refuse(struct gpq_agent *a, struct gpq_client *c, const struct gpq_error *e)
{
    json_t *line = gpq_error_json(NULL, e);
    gpq_client_send(a, c, line);
    json_decref(line);
    c->closing = true;
    gpq_buffer_free(&c->in);
}

/* ---- Input ---- */

struct hello {
    const char *protocol;
    uint32_t version;
};

static const struct gpq_field hello_fields[] = {
    { "hello", GPQ_FIELD_TEXT, offsetof(struct hello, protocol), 1, 64 },
    GPQ_MEMBER(hello, version, U32, 0, UINT32_MAX),
    { 0 },
};

/* The first line.  A later version may have more members in it: the number decides first. */
static int check_hello(json_t *line, struct gpq_error *e)
{
    const struct gpq_at at = { NULL, "the first line", GPQ_NO_INDEX };
    struct hello h = { 0 };
    json_int_t version = json_integer_value(json_object_get(line, "version"));
    const char *protocol = json_string_value(json_object_get(line, "hello"));
    if (!protocol || strcmp(protocol, GPQ_PROTOCOL) != 0)
        return gpq_at_fail(&at, e, GPQ_EINVAL,
                           "is no greeting, expected {\"hello\":\"%s\","
                           "\"version\":%d}",
                           GPQ_PROTOCOL, GPQ_PROTOCOL_VERSION);
    if (version != GPQ_PROTOCOL_VERSION)
        return gpq_fail(e, GPQ_EVERSION,
                        "the client has version %lld of the protocol, and this agent (%s) has %d: "
                        "use a client and an agent of one release",
                        (long long)version, VERSION, GPQ_PROTOCOL_VERSION);
    return gpq_fields_read(line, &at, hello_fields, &h, e);
}

static void greet(struct gpq_agent *a, struct gpq_client *c, json_t *line)
{
    struct gpq_error e = { 0 };
    if (check_hello(line, &e) < 0) {
        refuse(a, c, &e);
        return;
    }
    json_t *answer = json_pack("{s:s, s:i, s:s, s:i, s:i}", "hello", GPQ_PROTOCOL, "version",
                               GPQ_PROTOCOL_VERSION, "agent", VERSION, "pid", (int)getpid(),
                               "devices", (int)a->devices);
    gpq_client_send(a, c, answer);
    json_decref(answer);
    c->greeted = true;
}

static void take_line(struct gpq_agent *a, struct gpq_client *c, const char *text, size_t size,
                      gpq_line_fn fn)
{
    json_error_t why;
    struct gpq_error e = { 0 };
    json_t *line = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    c->lines++;
    if (!line || !json_is_object(line)) {
        gpq_fail(&e, GPQ_EINVAL, "line %llu is no JSON object%s%.200s",
                 (unsigned long long)c->lines, line ? "" : ": ", line ? "" : why.text);
        refuse(a, c, &e);
    } else if (!c->greeted) {
        greet(a, c, line);
    } else {
        fn(a, c, json_incref(line));
    }
    json_decref(line);
}

static void take_lines(struct gpq_agent *a, struct gpq_client *c, gpq_line_fn fn)
{
    const char *text;
    size_t size;
    int found = 1;
    while (found > 0 && !c->closing && c->waiting < GPQ_CLIENT_REQUESTS && gpq_client_has_room(c)) {
        found = gpq_buffer_line(&c->in, &text, &size);
        a->trims = a->trims || (found > 0 && size > GPQ_TRIM);
        if (found > 0)
            take_line(a, c, text, size, fn);
    }
    if (found < 0) {
        struct gpq_error e;
        gpq_fail(&e, GPQ_EINVAL,
                 "line %llu has more than %zu bytes: divide it into several requests",
                 (unsigned long long)c->lines + 1, GPQ_LINE_MOST);
        refuse(a, c, &e);
    }
    gpq_buffer_take(&c->in, 0);
}

static void read_input(struct gpq_agent *a, struct gpq_client *c)
{
    size_t left = GPQ_CLIENT_READ;
    while (left != 0 && !c->eof) {
        size_t size = left < PIECE ? left : PIECE;
        char *to = gpq_buffer_room(&c->in, size);
        if (!to) {
            gpq_client_gone(a, c);
            return;
        }
        ssize_t n = recv(c->watched.fd, to, size, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n <= 0) {
            c->eof = true;
            break;
        }
        c->in.used += (size_t)n;
        left -= (size_t)n;
    }
    gpq_buffer_take(&c->in, 0);
}

void gpq_client_ready(struct gpq_agent *a, struct gpq_client *c, uint32_t events, gpq_line_fn fn)
{
    if (c->gone)
        return;
    if (c->events & EPOLLIN)
        read_input(a, c);
    if (events & EPOLLOUT)
        gpq_client_write(a, c);
    /* Whole lines of a client that has left still count; it gets no reply. */
    if (events & (EPOLLHUP | EPOLLERR) && (c->eof || !(c->events & EPOLLIN)))
        gpq_client_gone(a, c);
    gpq_client_go_on(a, c, fn);
}

void gpq_client_go_on(struct gpq_agent *a, struct gpq_client *c, gpq_line_fn fn)
{
    take_lines(a, c, fn);
    arrange(a, c);
}
