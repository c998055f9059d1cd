/* SPDX-License-Identifier: MIT */
/* server.c - the socket of the agent: versions, garbage, slow readers, many clients. */
#include "desk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue/proto/lines.h"

#define HELLO "{'hello':'gpudispatch-queue','version':1}"
#define SUBMIT(tasks) \
    "{'do':'submit','batch':{'name':'a'},'specs':[{'cwd':'/'}],'tasks':[" tasks "]}"
#define TASK "{'spec':0,'argv':['true']}"
/* A turn waits this long for an event that must come. */
enum { PATIENCE_MS = (int)(T_PATIENCE / 1000000) };

/* ---- A client ---- */

struct client {
    int fd;
    struct gpq_buffer in;
};

static struct client joined(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };
    struct client c = { .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) };
    T_CMP(c.fd, >=, 0);
    T_EQ(connect(c.fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return c;
}

static void leave(struct client *c)
{
    T_EQ(close(c->fd), 0);
    gpq_buffer_free(&c->in);
}

/* Sends the bytes; the agent takes turns while it has to read. */
static void send_bytes(struct client *c, const char *data, size_t size)
{
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(c->fd, data + sent, size - sent, MSG_NOSIGNAL);
        if (n < 0) {
            T_EQ(errno, EAGAIN);
            (void)t_desk_turn(PATIENCE_MS);
        } else {
            sent += (size_t)n;
        }
    }
}

/* A line, with ' in place of ". */
static void say(struct client *c, const char *text)
{
    char *copy = strdup(text);
    T_CHECK(copy);
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    send_bytes(c, copy, strlen(copy));
    send_bytes(c, "\n", 1);
    free(copy);
}

/* 1: there are more bytes; 0: the agent has closed the connection; -1: none now. */
static int receive(struct client *c)
{
    char *to = gpq_buffer_room(&c->in, 65536);
    ssize_t n = recv(c->fd, to, 65536, 0);
    if (n > 0)
        c->in.used += (size_t)n;
    if (n < 0 && errno != EAGAIN)
        return 0;
    return n > 0 ? 1 : n == 0 ? 0 : -1;
}

/* The next line, NULL: the connection is closed.  The caller frees it. */
static json_t *hear(struct client *c)
{
    const char *text;
    size_t size;
    while (gpq_buffer_line(&c->in, &text, &size) == 0) {
        int more = receive(c);
        if (more == 0)
            return NULL;
        if (more < 0 && t_desk_turn(PATIENCE_MS) == 0 && !gpq_server_waits(&t_desk) &&
            receive(c) < 0)
            T_FAIL("the agent sends nothing");
    }
    json_t *json = json_loadb(text, size, 0, NULL);
    T_CHECK(json);
    return json;
}

static void expect(struct client *c, const char *text)
{
    json_t *json = hear(c);
    T_CHECK(json);
    T_TEXT(t_text_of(json), text);
    json_decref(json);
}

static void expect_error(struct client *c, const char *code, const char *part)
{
    json_t *json = hear(c);
    const char *text = json_string_value(json_object_get(json, "error"));
    T_CHECK(text);
    T_TEXT(json_string_value(json_object_get(json, "code")), code);
    if (!strstr(text, part))
        T_FAIL("no \"%s\" in: %s", part, text);
    json_decref(json);
}

static void expect_ok(struct client *c)
{
    json_t *json = hear(c);
    if (!json_is_true(json_object_get(json, "ok")))
        T_FAIL("%s", t_text_of(json));
    json_decref(json);
}

static void expect_closed(struct client *c)
{
    json_t *json = hear(c);
    if (json)
        T_FAIL("not closed: %s", t_text_of(json));
}

static struct client greeted(void)
{
    struct client c = joined();
    say(&c, HELLO);
    json_t *json = hear(&c);
    T_TEXT(json_string_value(json_object_get(json, "agent")), "0.1.0");
    T_EQ(json_integer_value(json_object_get(json, "version")), 1);
    T_EQ(json_integer_value(json_object_get(json, "pid")), getpid());
    T_EQ(json_integer_value(json_object_get(json, "devices")), 8);
    json_decref(json);
    return c;
}

/* Takes turns until nothing happens. */
static void settle(void)
{
    while (t_desk_turn(0) != 0 || gpq_server_waits(&t_desk)) {
    }
}

/* A change of the store that no client has made. */
static void run_task(uint64_t task, uint32_t outcome)
{
    const struct gpq_engine *engine = t_desk.store->engine;
    struct gpq_error e = { 0 };
    T_EQ(engine->begin(t_desk.store, &e), 0);
    int64_t attempt = engine->claim(t_desk.store, t_desk_time++, task, NULL, "r", &e);
    T_CMP(attempt, >, 0);
    const struct gpq_end end = {
        .task = task, .attempt = (uint32_t)attempt, .outcome = outcome, .ended = t_desk_time++
    };
    T_EQ(engine->complete(t_desk.store, &end, &e), 1);
    T_EQ(engine->commit(t_desk.store, &e), 0);
    gpq_server_settle(&t_desk, 0, &e);
}

/* ---- Greeting ---- */

T_CASE(hello_and_a_request)
{
    t_desk_serve();
    struct client c = greeted();
    say(&c, "{'id':[1,'x'],'do':'status'}");
    json_t *json = hear(&c);
    T_TEXT(t_text_of(json_object_get(json, "id")), "[1,'x']");
    T_EQ(json_integer_value(json_object_get(json, "devices")), 8);
    json_decref(json);
    leave(&c);
    settle();
    t_desk_close();
}

T_CASE(another_version_is_refused)
{
    t_desk_serve();
    struct client c = joined(), other = joined();
    say(&c, "{'hello':'gpudispatch-queue','version':2,'more':[1]}");
    expect_error(&c, "EVERSION", "version 2 of the protocol, and this agent (0.1.0) has 1");
    expect_closed(&c);
    leave(&c);
    say(&other, "{'id':1,'do':'status'}");
    expect_error(&other, "EINVAL", "the first line is no greeting");
    expect_closed(&other);
    leave(&other);
    t_desk_close();
}

/* Q12: the socket is the owner's. */
T_CASE(the_socket_is_private)
{
    struct stat st;
    t_desk_serve();
    T_EQ(stat("socket", &st), 0);
    T_EQ(st.st_mode & 07777, 0600);
    t_desk_close();
    T_EQ(stat("socket", &st), -1);
}

/* The lock is the agent's, so that a socket that is there is nobody's. */
T_CASE(a_stale_socket_is_replaced)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    T_EQ(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    T_EQ(close(fd), 0);
    t_desk_serve();
    struct client c = greeted();
    leave(&c);
    settle();
    t_desk_close();
}

T_CASE(a_file_in_its_place_is_left_alone)
{
    struct gpq_error e = { 0 };
    struct stat st;
    FILE *out = fopen("socket", "we");
    T_CHECK(out);
    T_EQ(fclose(out), 0);
    t_desk_open();
    T_EQ(unsetenv("XDG_RUNTIME_DIR"), 0);
    T_EQ(gpq_server_open(&t_desk, &e), GPQ_EUNUSABLE);
    T_CHECK(strstr(e.text, "cannot be bound"));
    T_EQ(stat("socket", &st), 0);
    t_desk_close();
}

/* Q12: another user who gets as far as the socket is turned away. */
T_CASE(another_user_is_turned_away)
{
    char byte;
    if (geteuid() != 0)
        t_skip("only root can be somebody else");
    t_desk_serve();
    T_EQ(chmod(".", 0755), 0);
    T_EQ(chmod("socket", 0666), 0);
    int there = open(".", O_DIRECTORY | O_CLOEXEC);
    T_CMP(there, >=, 0);
    pid_t pid = fork();
    T_CMP(pid, >=, 0);
    if (pid == 0) {
        struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fchdir(there) != 0 || setuid(65534) != 0)
            _exit(2);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
            _exit(errno == EACCES ? 3 : 4);
        _exit(recv(fd, &byte, 1, 0) == 0 ? 0 : 5);
    }
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0)
        (void)t_desk_turn(10);
    T_EQ(close(there), 0);
    T_CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) == 3)
        t_skip("a directory above keeps other users out");
    T_EQ(WEXITSTATUS(status), 0);
    t_desk_close();
}

/* ---- Lines ---- */

T_CASE(garbage_closes_its_own_connection_only)
{
    static const char *const garbage[] = { "nonsense",        "",   "[1]",
                                           "{'do':'status'",  "17", "{'do':'status','do':'status'}",
                                           "{'do':'\\u0000'}" };
    t_desk_serve();
    struct client good = greeted();
    for (size_t i = 0; i < T_LENGTH(garbage); i++) {
        struct client bad = greeted();
        say(&bad, garbage[i]);
        expect_error(&bad, "EINVAL", "line 2 is no JSON object");
        expect_closed(&bad);
        leave(&bad);
    }
    struct client bad = greeted();
    send_bytes(&bad, "{\"do\":\"\xff\xfe\"}\n", 13);
    expect_error(&bad, "EINVAL", "line 2 is no JSON object");
    expect_closed(&bad);
    leave(&bad);
    say(&good, "{'do':'batches'}");
    expect_ok(&good);
    leave(&good);
    settle();
    t_desk_close();
}

T_CASE(a_request_that_is_refused_leaves_the_connection_open)
{
    t_desk_serve();
    struct client c = greeted();
    say(&c, "{'id':1,'do':'dance'}");
    expect_error(&c, "EINVAL", "do is \"dance\": there is no such request");
    say(&c, "{'id':2}");
    expect_error(&c, "EINVAL", "has no text \"do\"");
    say(&c, "{'id':3,'do':'batches'}");
    expect_ok(&c);
    leave(&c);
    settle();
    t_desk_close();
}

T_CASE(lines_arrive_in_pieces)
{
    static const char two[] =
        "{\"id\":1,\"do\":\"batches\"}\n{\"id\":2,\"do\":\"batches\"}\r\n{\"id\"";
    t_desk_serve();
    struct client c = greeted();
    for (size_t i = 0; i + 1 < sizeof(two); i++) {
        send_bytes(&c, &two[i], 1);
        settle();
    }
    expect(&c, "{'batches':[],'id':1,'ok':true}");
    expect(&c, "{'batches':[],'id':2,'ok':true}");
    send_bytes(&c, ":3,\"do\":\"batches\"}\n", 19);
    expect(&c, "{'batches':[],'id':3,'ok':true}");
    leave(&c);
    settle();
    t_desk_close();
}

/* A line of `size` bytes that is a request. */
static char *long_line(size_t size)
{
    static const char head[] = "{\"do\":\"submit\",\"specs\":[{\"cwd\":\"/\"}],\"tasks\":[";
    static const char task[] =
        "{\"spec\":0,\"argv\":[\"true\",\"0123456789012345678901234567890\"]},";
    char *line = malloc(size);
    size_t used = sizeof(head) - 1;
    T_CHECK(line);
    memcpy(line, head, used);
    for (; used + sizeof(task) + 2 < size; used += sizeof(task) - 1)
        memcpy(line + used, task, sizeof(task) - 1);
    memcpy(line + used - 1, "]}", 2);
    memset(line + used + 1, ' ', size - used - 2);
    line[size - 1] = '\n';
    return line;
}

T_CASE(a_line_of_a_mebibyte)
{
    char *line = long_line(1 << 20);
    t_desk_serve();
    struct client c = greeted();
    send_bytes(&c, line, 1 << 20);
    json_t *json = hear(&c);
    T_CMP(json_integer_value(json_object_get(json, "added")), >, 15000);
    json_decref(json);
    free(line);
    leave(&c);
    settle();
    t_desk_close();
}

T_CASE(a_line_that_is_too_long)
{
    static char piece[1 << 20];
    memset(piece, 'x', sizeof(piece));
    t_desk_serve();
    struct client c = greeted();
    for (size_t sent = 0; sent < GPQ_LINE_MOST; sent += sizeof(piece))
        send_bytes(&c, piece, sizeof(piece));
    send_bytes(&c, piece, 1);
    expect_error(&c, "EINVAL", "line 2 has more than 67108864 bytes");
    leave(&c);
    settle();
    t_desk_close();
}

T_CASE(a_client_that_leaves_in_the_middle)
{
    t_desk_serve();
    struct client c = greeted();
    say(&c, SUBMIT(TASK)); /* a whole line: it counts */
    send_bytes(&c, "{\"do\":\"submit\",\"spe", 19);
    leave(&c);
    settle();
    struct client next = greeted();
    say(&next, "{'do':'batches'}");
    json_t *json = hear(&next);
    T_EQ(json_array_size(json_object_get(json, "batches")), 1);
    json_decref(json);
    leave(&next);
    settle();
    t_desk_close();
}

/* It has sent all that it will send, and still reads. */
T_CASE(a_client_that_shuts_its_half)
{
    t_desk_serve();
    struct client c = joined();
    say(&c, HELLO);
    say(&c, "{'id':1,'do':'batches'}");
    T_EQ(shutdown(c.fd, SHUT_WR), 0);
    json_decref(hear(&c));
    expect(&c, "{'batches':[],'id':1,'ok':true}");
    expect_closed(&c);
    leave(&c);
    t_desk_close();
}

/* ---- Slow readers ---- */

/* It asks and does not read: the agent stops reading from it, and goes on with the rest. */
T_CASE(a_slow_reader_blocks_nobody)
{
    enum { REQUESTS = 20000 };
    static const char line[] = "{\"id\":1,\"do\":\"tasks\",\"batch\":\"1\",\"whole\":true}\n";
    char *many = long_line(1 << 16);
    size_t sent = 0;
    t_desk_serve();
    struct client slow = greeted(), other = greeted();
    send_bytes(&slow, many, 1 << 16);
    expect_ok(&slow);
    for (size_t i = 0; i < REQUESTS; i++) {
        ssize_t n = send(slow.fd, line, sizeof(line) - 1, MSG_NOSIGNAL);
        if (n != (ssize_t)sizeof(line) - 1)
            break;
        sent++;
        (void)t_desk_turn(0);
    }
    T_CMP(sent, <, REQUESTS); /* its requests fill the socket, not the agent */
    settle();
    say(&other, "{'do':'batches'}");
    expect_ok(&other);
    for (size_t i = 0; i + 1 < sent; i++)
        expect_ok(&slow);
    leave(&slow);
    leave(&other);
    settle();
    free(many);
    t_desk_close();
}

T_CASE(a_slow_reader_that_leaves)
{
    static const char line[] = "{\"do\":\"tasks\",\"batch\":\"1\",\"whole\":true}\n";
    char *many = long_line(1 << 16);
    t_desk_serve();
    struct client slow = greeted();
    send_bytes(&slow, many, 1 << 16);
    expect_ok(&slow);
    while (send(slow.fd, line, sizeof(line) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(line) - 1)
        (void)t_desk_turn(0);
    leave(&slow);
    settle();
    free(many);
    t_desk_close();
}

/* ---- Many ---- */

T_CASE(clients_beyond_the_limit_wait)
{
    enum { MOST = 256, MORE = 8 };
    static struct client c[MOST + MORE];
    t_desk_serve();
    for (int i = 0; i < MOST; i++)
        c[i] = greeted();
    for (int i = MOST; i < MOST + MORE; i++) {
        c[i] = joined();
        say(&c[i], HELLO);
    }
    settle();
    for (int i = MOST; i < MOST + MORE; i++)
        T_EQ(receive(&c[i]), -1);
    for (int i = 0; i < MORE; i++)
        leave(&c[i]);
    for (int i = MOST; i < MOST + MORE; i++) {
        json_t *json = hear(&c[i]);
        T_CHECK(json_object_get(json, "agent"));
        json_decref(json);
    }
    for (int i = MORE; i < MOST + MORE; i++)
        leave(&c[i]);
    settle();
    t_desk_close();
}

/* The listener would stay ready, and the agent busy. */
T_CASE(no_descriptor_is_left)
{
    struct rlimit before, none;
    t_desk_serve();
    struct client c = joined();
    int next = dup(c.fd);
    T_CMP(next, >=, 0);
    T_EQ(close(next), 0);
    T_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)next;
    T_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    expect_closed(&c);
    T_EQ(t_desk_turn(0), 0);
    T_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    leave(&c);
    c = greeted();
    leave(&c);
    settle();
    t_desk_close();
}

/* ---- Commits ---- */

/* Q1: an answer that a failed commit takes back is never shown. */
T_CASE(a_failed_commit_is_the_reply)
{
    t_desk_serve();
    struct client c = greeted(), d = greeted();
    say(&c, "{'id':'c','do':'submit','specs':[{'cwd':'/'}],'tasks':[" TASK "]}");
    say(&d, "{'id':'d','do':'wait','batch':'1'}");
    t_desk_fault = GPQ_EFULL;
    json_t *json = hear(&c);
    T_TEXT(t_text_of(json), "{'id':'c','ok':false,'code':'EFULL','status':6,'error':"
                            "'the disk of the test is full'}");
    json_decref(json);
    json = hear(&d);
    T_CHECK(json_is_false(json_object_get(json, "ok")));
    json_decref(json);
    say(&c, "{'do':'batches'}");
    expect(&c, "{'batches':[],'id':null,'ok':true}");
    leave(&c);
    leave(&d);
    settle();
    t_desk_close();
}

/* ---- wait and follow ---- */

/* Q2: the end of a task is shown after its commit. */
T_CASE(wait_for_tasks_and_batches)
{
    t_desk_serve();
    struct client c = greeted(), d = greeted();
    say(&c, SUBMIT(TASK "," TASK));
    expect_ok(&c);
    say(&c, "{'id':1,'do':'wait','tasks':['1.2']}");
    say(&c, "{'id':2,'do':'wait','batch':'1'}");
    say(&d, "{'id':3,'do':'follow','batch':'1'}");
    json_t *json = hear(&d);
    T_TEXT(json_string_value(json_object_get(json, "event")), "batch");
    T_TEXT(t_text_of(json_object_get(json_object_get(json, "batch"), "states")), "{'ready':2}");
    json_decref(json);
    settle();
    T_EQ(receive(&c), -1);
    run_task(GPQ_TASK(1, 2), GPQ_OUTCOME_ERROR);
    expect(&c, "{'id':1,'ok':true,'outcomes':{'error':1}}");
    expect(&d, "{'id':3,'ok':true,'event':'task','task':'1.2','state':'running'}");
    expect(&d, "{'id':3,'ok':true,'event':'task','task':'1.2','state':'done','outcome':'error'}");
    settle();
    T_EQ(receive(&c), -1);
    run_task(GPQ_TASK(1, 1), GPQ_OUTCOME_SUCCESS);
    json = hear(&c);
    T_EQ(json_integer_value(json_object_get(json, "id")), 2);
    T_TEXT(t_text_of(json_object_get(json_object_get(json, "batch"), "outcomes")),
           "{'ok':1,'error':1}");
    json_decref(json);
    json_decref(hear(&d));
    json_decref(hear(&d));
    json = hear(&d);
    T_TEXT(json_string_value(json_object_get(json, "event")), "end");
    json_decref(json);
    say(&c, "{'id':4,'do':'wait','tasks':['1.1','1.2','1.1']}"); /* over already */
    expect(&c, "{'id':4,'ok':true,'outcomes':{'ok':1,'error':1}}");
    leave(&c);
    leave(&d);
    settle();
    t_desk_close();
}

/* A task that was joined counts in both batches, and is followed in both. */
T_CASE(wait_for_a_joined_task)
{
    t_desk_serve();
    struct client c = greeted();
    say(&c, SUBMIT(TASK));
    expect_ok(&c);
    say(&c, "{'do':'submit','batch':{'name':'a'},'join':true,'specs':[{'cwd':'/'}],"
            "'tasks':[" TASK "]}");
    json_t *json = hear(&c);
    T_EQ(json_integer_value(json_object_get(json, "joined")), 1);
    json_decref(json);
    say(&c, "{'id':1,'do':'follow','batch':'2'}");
    expect_ok(&c);
    run_task(GPQ_TASK(1, 1), GPQ_OUTCOME_SUCCESS);
    expect(&c, "{'id':1,'ok':true,'event':'task','task':'1.1','state':'running'}");
    expect(&c, "{'id':1,'ok':true,'event':'task','task':'1.1','state':'done','outcome':'ok'}");
    json = hear(&c);
    T_TEXT(json_string_value(json_object_get(json, "event")), "end");
    json_decref(json);
    leave(&c);
    settle();
    t_desk_close();
}

/* A follower that does not read sees the counts later, and how many changes it has missed. */
T_CASE(a_slow_follower)
{
    enum { TASKS = 4000 };
    char *line = malloc(TASKS * 64);
    size_t used = 0, events = 0;
    t_desk_serve();
    struct client c = greeted(), d = greeted();
    T_CHECK(line);
    used += (size_t)sprintf(line, "{'do':'submit','specs':[{'cwd':'/'}],'tasks':[");
    for (int i = 0; i < TASKS; i++)
        used += (size_t)sprintf(line + used, "%s" TASK, i ? "," : "");
    strcpy(line + used, "]}");
    say(&c, line);
    expect_ok(&c);
    say(&d, "{'id':1,'do':'follow','batch':'1'}");
    settle();
    for (uint32_t i = 1; i <= TASKS; i++)
        run_task(GPQ_TASK(1, i), GPQ_OUTCOME_SUCCESS);
    uint64_t missed = 0;
    bool over = false;
    while (!over) {
        json_t *json = hear(&d);
        const char *event = json_string_value(json_object_get(json, "event"));
        events += !strcmp(event, "task");
        missed += (uint64_t)json_integer_value(json_object_get(json, "missed"));
        over = !strcmp(event, "end");
        json_decref(json);
    }
    T_CMP(missed, >, 0);
    T_EQ(events + missed, 2 * TASKS);
    free(line);
    leave(&c);
    leave(&d);
    settle();
    t_desk_close();
}

T_CASE(too_many_waits_of_a_connection)
{
    t_desk_serve();
    struct client c = greeted();
    say(&c, SUBMIT(TASK));
    expect_ok(&c);
    for (int i = 0; i < 64; i++)
        say(&c, "{'id':1,'do':'wait','batch':'1'}");
    say(&c, "{'id':2,'do':'wait','batch':'1'}");
    expect_error(&c, "EREFUSED", "waits for 64 things already");
    leave(&c);
    settle();
    t_desk_close();
}

T_CASE(wait_for_a_batch_that_is_open)
{
    t_desk_serve();
    struct client c = greeted(), d = greeted();
    say(&c, "{'do':'submit','batch':{'open':true},'specs':[{'cwd':'/'}],'tasks':[]}");
    expect_ok(&c);
    say(&c, "{'id':1,'do':'wait','batch':'1'}");
    settle();
    T_EQ(receive(&c), -1);
    say(&d, "{'id':2,'do':'seal','batch':'1'}");
    expect(&d, "{'id':2,'ok':true}");
    expect_ok(&c);
    leave(&c);
    leave(&d);
    settle();
    t_desk_close();
}

/* ---- Attached tasks ---- */

#define ATTACHED(tasks) "{'do':'submit','specs':[{'cwd':'/','attached':true}],'tasks':[" tasks "]}"

static void expect_outcomes(struct client *c, unsigned batch, const char *outcomes)
{
    say(c, "{'do':'batches'}");
    json_t *json = hear(c);
    const json_t *row = json_array_get(json_object_get(json, "batches"), batch - 1);
    T_CHECK(row);
    T_TEXT(t_text_of(json_object_get(row, "outcomes")), outcomes);
    json_decref(json);
}

static int count_mark(const struct gpq_mark *m, void *user)
{
    *(int *)user += gpq_attached_is(m);
    return 0;
}

static int marks(void)
{
    struct gpq_error e;
    int n = 0;
    T_EQ(t_desk.store->engine->marks(t_desk.store, count_mark, &n, &e), 0);
    return n;
}

T_CASE(attached_tasks_end_with_their_connection)
{
    t_desk_serve();
    struct client watcher = greeted(), c = greeted();
    say(&c, ATTACHED(TASK "," TASK "," TASK));
    expect_ok(&c);
    say(&watcher, SUBMIT(TASK));
    expect_ok(&watcher);
    run_task(GPQ_TASK(1, 1), GPQ_OUTCOME_SUCCESS);
    settle();
    T_EQ(marks(), 1);
    expect_outcomes(&watcher, 1, "{'ok':1}");
    leave(&c);
    settle();
    expect_outcomes(&watcher, 1, "{'ok':1,'cancelled':2}");
    expect_outcomes(&watcher, 2, "{}");
    T_EQ(marks(), 0);
    /* It leaves before the commit, and the first transaction fails. */
    c = greeted();
    say(&c, ATTACHED(TASK));
    leave(&c);
    settle();
    expect_outcomes(&watcher, 3, "{'cancelled':1}");
    c = greeted();
    say(&c, ATTACHED(TASK));
    expect_ok(&c);
    leave(&c);
    t_desk_fault = GPQ_EFULL;
    settle();
    expect_outcomes(&watcher, 4, "{'cancelled':1}");
    T_EQ(marks(), 0);
    leave(&watcher);
    t_desk_close();
}

T_CASE(attached_tasks_of_an_older_agent)
{
    const struct gpq_engine *engine;
    struct gpq_error e = { 0 };
    t_desk_serve();
    engine = t_desk.store->engine;
    struct client c = greeted();
    say(&c, ATTACHED(TASK "," TASK));
    expect_ok(&c);
    say(&c, "{'do':'submit','batch':{'append':'1'},'specs':[{'cwd':'/'}],'tasks':[" TASK "]}");
    expect_error(&c, "EREFUSED", "closed");
    say(&c, SUBMIT(TASK));
    expect_ok(&c);
    T_EQ(engine->begin(t_desk.store, &e), 0);
    T_EQ(gpq_attached_end_all(t_desk.store, t_desk_time++, &e), 0);
    T_EQ(engine->commit(t_desk.store, &e), 0);
    T_EQ(marks(), 0);
    expect_outcomes(&c, 1, "{'cancelled':2}");
    expect_outcomes(&c, 2, "{}");
    leave(&c);
    settle();
    t_desk_close();
}
