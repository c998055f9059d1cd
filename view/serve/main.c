/* SPDX-License-Identifier: MIT */
/*
 * gpudispatch-serve - the live page.  The verb serve of gpudispatch starts it.
 *
 *     gpudispatch-serve socket|port FD...
 *
 * Standard input has a token or an empty line, then snapshots.  FD are listening sockets.  The
 * program ends with its standard input.  It opens nothing: no file, and no connection to the agent,
 * of which it knows the snapshots alone.                                                     [V6]
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "view/serve/answer.h"

enum {
    LISTENERS = 2,
    CONNECTIONS = 64,   /* further ones are closed */
    SECONDS = 10,       /* without a byte: then a connection is closed */
    MEMORY = 16 * 1024, /* of a connection: a longer head of a request is refused */
    ACCEPTS = 128,      /* at a time: then open connections have their turn */
    MS = 1000000        /* ns */
};

struct program {
    struct gpv_serve serve;
    struct MHD_Daemon *http;
    int listener[LISTENERS];
    nfds_t listeners;
    bool is_socket; /* only processes of this user may connect */
};

/* ---- Connections ---- */

static bool is_own(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

static void accept_from(struct program *p, int listener)
{
    for (int i = 0; i < ACCEPTS; i++) {
        struct sockaddr_storage address;
        socklen_t size = sizeof(address);
        int fd =
            accept4(listener, (struct sockaddr *)&address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        if (p->is_socket && !is_own(fd))
            close(fd);
        else /* which closes it, also on failure */
            (void)MHD_add_connection(p->http, fd, (struct sockaddr *)&address, size);
    }
}

/* ---- The loop ---- */

/* ms; -1: no limit. */
static int timeout_of(struct program *p)
{
    int64_t next = gpv_readers_wake(&p->serve.readers);
    MHD_UNSIGNED_LONG_LONG http;
    int64_t ms = next < 0 ? -1 : (next + MS - 1) / MS;
    if (MHD_get_timeout(p->http, &http) == MHD_YES && (ms < 0 || (int64_t)http < ms))
        ms = (int64_t)http;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

/* Until standard input ends, or something is wrong. */
static int loop(struct program *p)
{
    int http = MHD_get_daemon_info(p->http, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    struct pollfd fds[2 + LISTENERS] = { { .fd = STDIN_FILENO, .events = POLLIN },
                                         { .fd = http, .events = POLLIN } };
    for (nfds_t i = 0; i < p->listeners; i++)
        fds[2 + i] = (struct pollfd){ .fd = p->listener[i], .events = POLLIN };
    for (;;) {
        if (poll(fds, 2 + p->listeners, timeout_of(p)) < 0 && errno != EINTR)
            return -1;
        int code = fds[0].revents ? gpv_feed_read(&p->serve.feed, STDIN_FILENO) : 1;
        if (code <= 0)
            return code;
        for (nfds_t i = 0; i < p->listeners; i++)
            if (fds[2 + i].revents)
                accept_from(p, p->listener[i]);
        if (MHD_run(p->http) != MHD_YES)
            return -1;
    }
}

/* ---- Start and end ---- */

/* What libmicrohttpd says about requests that are none. */
static void say_nothing(void *user, const char *format, va_list args)
{
    (void)user, (void)format, (void)args;
}

/* Paths and arguments stay as they are: "/%64ata" is no path. */
static size_t keep(void *user, struct MHD_Connection *connection, char *text)
{
    (void)user, (void)connection;
    return strlen(text);
}

static bool start(struct program *p)
{
    p->serve.readers.feed = &p->serve.feed;
    p->http = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        gpv_answer, &p->serve, MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK, keep, NULL, MHD_OPTION_END);
    return p->http;
}

static void stop(struct program *p)
{
    gpv_readers_resume(&p->serve.readers);
    MHD_stop_daemon(p->http);
    gpv_feed_free(&p->serve.feed);
}

static bool read_arguments(struct program *p, int argc, char **argv)
{
    if (argc < 3 || argc > 2 + LISTENERS)
        return false;
    p->is_socket = strcmp(argv[1], "socket") == 0;
    for (int i = 2; i < argc; i++) {
        char *end;
        long fd = strtol(argv[i], &end, 10);
        if (*end || fd <= STDERR_FILENO || fd > 1000 || fcntl((int)fd, F_GETFL) < 0)
            return false;
        (void)fcntl((int)fd, F_SETFL, O_NONBLOCK);
        p->listener[p->listeners++] = (int)fd;
    }
    return p->is_socket || strcmp(argv[1], "port") == 0;
}

int main(int argc, char **argv)
{
    struct program p = { .listeners = 0 };
    if (!read_arguments(&p, argc, argv)) {
        fputs("gpudispatch-serve: started by gpudispatch serve only\n", stderr);
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    if (!start(&p)) {
        fputs("gpudispatch-serve: libmicrohttpd did not start: no memory, or no descriptors\n",
              stderr);
        return 1;
    }
    int code = loop(&p);
    stop(&p);
    if (code < 0)
        fputs("gpudispatch-serve: no memory\n", stderr);
    return code < 0;
}
