/* SPDX-License-Identifier: MIT */
/* listen.c - listens at a path, or at the two addresses of this machine. */
#include "listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { WAITING = 64 /* connections */ };

/* ---- A path ---- */

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "gpudispatch: serve: %s: %s\n", what, why);
    return EXIT_FAILED;
}

/* Whether a process listens there. */
static bool is_served(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool served = fd >= 0 && (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ||
                              errno == EAGAIN);
    if (fd >= 0)
        (void)close(fd);
    return served;
}

/* Nobody else may connect, from the first moment on. */
static int bind_private(int fd, const struct sockaddr_un *address)
{
    mode_t before = umask(0177);
    int code = bind(fd, (const struct sockaddr *)address, sizeof *address);
    (void)umask(before);
    return code;
}

int listen_at_path(struct listeners *l, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct stat there;
    int fd;

    if (strlen(path) >= sizeof address.sun_path)
        return fail(path, "the path of a socket has at most 107 bytes: set --socket");
    strcpy(address.sun_path, path);
    if (lstat(path, &there) == 0) {
        if (!S_ISSOCK(there.st_mode))
            return fail(path, "it is there, and is no socket");
        if (is_served(&address))
            return fail(path, "a live page is served here already");
        (void)unlink(path);
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(path, strerror(errno));
    l->fd[l->n++] = fd;
    if (bind_private(fd, &address))
        return fail(path, strerror(errno));
    l->path = path;
    return listen(fd, WAITING) ? fail(path, strerror(errno)) : EXIT_OK;
}

/* ---- A port ---- */

/* 0, or an errno. */
static int listen_at(struct listeners *l, const struct sockaddr *address, socklen_t size)
{
    static const int on = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), error = 0;

    if (fd < 0)
        return errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, address, size) || listen(fd, WAITING))
        error = errno;
    if (error)
        (void)close(fd);
    else
        l->fd[l->n++] = fd;
    return error;
}

int listen_at_port(struct listeners *l, uint16_t port)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    socklen_t size = sizeof v4;
    int error = listen_at(l, (struct sockaddr *)&v4, sizeof v4);

    if (error)
        return fail("127.0.0.1", strerror(error));
    if (getsockname(l->fd[0], (struct sockaddr *)&v4, &size))
        return fail("127.0.0.1", strerror(errno));
    l->port = ntohs(v4.sin_port);
    v6.sin6_port = v4.sin_port;
    error = listen_at(l, (struct sockaddr *)&v6, sizeof v6);
    return error && error != EADDRNOTAVAIL && error != EAFNOSUPPORT
               ? fail("::1", strerror(error)) /* another program has the other half of the name */
               : EXIT_OK;
}

void listen_end(struct listeners *l)
{
    for (unsigned i = 0; i < l->n; i++)
        (void)close(l->fd[i]);
    if (l->path)
        (void)unlink(l->path);
    *l = (struct listeners){ .n = 0 };
}
