/* SPDX-License-Identifier: MIT */
/*
 * serve.c - the live page: snapshots go into the pipe of gpudispatch-serve, which has the web
 * server.  This side speaks to the agent, and to nobody else.
 */
#include "serve.h"

#include <stdio.h>

#if defined(GPQ_CLIENT) && defined(SERVE_WEB)
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "given.h"
#include "listen.h"
#include "night.h"
#include "queue/client/live.h"
#include "source.h"
#include "tools/cli/out.h"

#define NS_PER_S UINT64_C(1000000000)

#define EVERY (2 * NS_PER_S) /* no reader gets more of them */

enum { TOKEN = 16 /* bytes */, FIRST_LISTENER = 3 };

struct serve {
    const struct call *call;
    struct source source;
    struct listeners listeners;
    char program[GPQ_PATH], path[GPQ_SOCKET_PATH + 1], token[2 * TOKEN + 1];
    uint64_t until; /* of --for, ns of CLOCK_MONOTONIC; 0: none */
    FILE *pipe;     /* to the server */
    pid_t server;
    int signals;
};

static int fail(const char *what)
{
    fprintf(stderr, "gpudispatch: serve: %s: %s\n", what, strerror(errno));
    return EXIT_FAILED;
}

static uint64_t clock_now(void)
{
    struct timespec t = { 0 };
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* ---- Where ---- */

static int make_token(struct serve *s)
{
    unsigned char bytes[TOKEN];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return fail("no random numbers");
    for (size_t i = 0; i < TOKEN; i++)
        snprintf(s->token + 2 * i, 3, "%02x", bytes[i]);
    return EXIT_OK;
}

static int listen_there(struct serve *s)
{
    const struct call *call = s->call;
    uint64_t port = 0;
    int status;

    if (call->given[OPTION_PORT]) {
        status = gpq_option_number(call, OPTION_PORT, 0, UINT16_MAX, &port);
        if (status == EXIT_OK)
            status = make_token(s);
        return status ? status : listen_at_port(&s->listeners, (uint16_t)port);
    }
    if (call->given[OPTION_SOCKET])
        return listen_at_path(&s->listeners, call->value[OPTION_SOCKET]);
    status = gpq_live_socket(call, s->path);
    return status ? status : listen_at_path(&s->listeners, s->path);
}

static void say_where(const struct serve *s)
{
    char host[256] = "HOST";
    if (!s->listeners.path) {
        printf("live page: http://localhost:%u/#%s\n", s->listeners.port, s->token);
        return;
    }
    if (gethostname(host, sizeof host - 1))
        strcpy(host, "HOST");
    fputs("live page: ", stdout);
    put_plain(s->listeners.path);
    fputs("\non your machine: ssh -L 8080:", stdout);
    put_plain(s->listeners.path);
    fputc(' ', stdout);
    put_plain(host);
    fputs("\nand open http://localhost:8080/\n", stdout);
}

/* ---- The server ---- */

/* In the child.  Its descriptors are the pipe, standard error and the listeners. */
static void become_server(const struct serve *s, int input)
{
    char number[LISTENERS][12];
    const char *argv[3 + LISTENERS] = { "gpudispatch-serve",
                                        s->listeners.path ? "socket" : "port" };
    int copy[LISTENERS];
    sigset_t none;

    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    for (unsigned i = 0; i < s->listeners.n; i++) /* beyond all places that are taken below */
        copy[i] = fcntl(s->listeners.fd[i], F_DUPFD_CLOEXEC, 100);
    if (dup2(input, STDIN_FILENO) < 0)
        _exit(EXIT_FAILED);
    for (unsigned i = 0; i < s->listeners.n; i++) {
        if (copy[i] < 0 || dup2(copy[i], FIRST_LISTENER + (int)i) < 0)
            _exit(EXIT_FAILED);
        snprintf(number[i], sizeof number[i], "%d", FIRST_LISTENER + (int)i);
        argv[2 + i] = number[i];
    }
    execv(s->program, (char *const *)(uintptr_t)argv);
    (void)fail(s->program);
    _exit(EXIT_FAILED);
}

static int start_server(struct serve *s)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return fail("no pipe");
    s->server = fork();
    if (s->server == 0)
        become_server(s, ends[0]);
    (void)close(ends[0]);
    s->pipe = s->server > 0 ? fdopen(ends[1], "w") : NULL;
    if (!s->pipe) {
        (void)close(ends[1]);
        return fail("gpudispatch-serve cannot be started");
    }
    fprintf(s->pipe, "%s\n", s->token);
    return fflush(s->pipe) ? fail("gpudispatch-serve") : EXIT_OK;
}

/* It ends with its pipe; a signal makes it sure. */
static int end_server(struct serve *s, int status)
{
    int how = 0;
    if (s->pipe)
        (void)fclose(s->pipe);
    if (s->server <= 0)
        return status;
    (void)kill(s->server, SIGTERM);
    while (waitpid(s->server, &how, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(how) && WEXITSTATUS(how) != 0 && status == EXIT_OK)
        status = EXIT_FAILED; /* it has said why */
    return status;
}

/* ---- Snapshots ---- */

enum passed { PASSED, NONE_YET, NO_MORE, NO_SERVER };

static enum passed pass_on(struct serve *s, bool wait)
{
    struct gpv_snapshot snapshot;
    int got = s->source.next(&s->source, wait, &snapshot);
    if (got <= 0)
        return got == 0 ? NONE_YET : NO_MORE;
    gpv_snapshot_write(&snapshot, s->pipe);
    fputc('\n', s->pipe);
    gpv_snapshot_free(&snapshot);
    return fflush(s->pipe) ? NO_SERVER : PASSED;
}

static int end_of(const struct serve *s)
{
    fprintf(stderr, "gpudispatch: serve: %s\n", s->source.end);
    return EXIT_NONE;
}

/* ms; -1: no limit. */
static int time_left(const struct serve *s)
{
    uint64_t now = clock_now(), ms;
    if (s->until == 0)
        return -1;
    ms = s->until > now ? (s->until - now + 999999) / 1000000 : 0;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

/* A signal has arrived, the server has ended, or the time of --for is over. */
static bool is_over(struct serve *s)
{
    struct pollfd fds[2] = { { .fd = s->signals, .events = POLLIN },
                             { .fd = s->source.fd, .events = POLLIN } };
    int n = poll(fds, 2, time_left(s));
    return (n < 0 && errno != EINTR) || fds[0].revents || time_left(s) == 0;
}

static int pass_all(struct serve *s)
{
    enum passed passed = pass_on(s, true);
    say_where(s); /* a page that is loaded now has a state */
    if (out_flush() != EXIT_OK)
        return EXIT_FAILED;
    do {
        while (passed == PASSED && !s->source.still)
            passed = pass_on(s, false);
        if (passed == NO_MORE)
            return end_of(s);
        if (passed == NO_SERVER || is_over(s))
            return EXIT_OK;
        passed = s->source.still ? NONE_YET : PASSED;
    } while (true);
}

/* ---- The verb ---- */

static int run(struct serve *s)
{
    sigset_t ending;
    int status = start_server(s);

    if (status)
        return status;
    sigemptyset(&ending);
    sigaddset(&ending, SIGHUP);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ending, NULL);
    s->signals = signalfd(-1, &ending, SFD_CLOEXEC);
    if (s->signals < 0)
        return fail("signalfd");
    return pass_all(s);
}

static int read_options(struct serve *s)
{
    const struct call *call = s->call;
    uint64_t time = 0;
    int status = gpq_option_duration(call, OPTION_FOR, &time);
    if (status)
        return status;
    if (call->given[OPTION_PORT] && call->given[OPTION_SOCKET])
        return usage(call->verb, "serve: --port and --socket exclude one another");
    if (call->given[OPTION_FOR])
        s->until = clock_now() + time;
    return gpq_live_program(s->program);
}

int serve_run(const struct call *call)
{
    static const char *const parts[] = { "gpus", "classes", "batches", "findings",
                                         "ends", "history", "metrics", NULL };
    struct serve s = { .call = call, .signals = -1 };
    int status = read_options(&s);

    if (status)
        return status;
    status = source_open(&s.source, call, parts, EVERY);
    if (status == EXIT_OK)
        status = listen_there(&s);
    if (status == EXIT_OK)
        status = end_server(&s, run(&s));
    listen_end(&s.listeners);
    s.source.close(&s.source);
    return status;
}
#else
int serve_run(const struct call *call)
{
#ifdef GPQ_CLIENT
    fprintf(stderr, "gpudispatch: %s: built without web (-Dweb=enabled)\n", call->verb->name);
#else
    fprintf(stderr, "gpudispatch: %s: built without the queue (-Dqueue=enabled)\n",
            call->verb->name);
#endif
    return EXIT_FAILED;
}
#endif
