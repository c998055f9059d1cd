/* SPDX-License-Identifier: MIT */
/* listen.h - the sockets of the live page. */
#ifndef LISTEN_H
#define LISTEN_H

#include <stdint.h>

#include "tools/cli/verb.h"

enum { LISTENERS = 2 };

struct listeners {
    int fd[LISTENERS];
    unsigned n;
    const char *path; /* of the socket; NULL: TCP */
    uint16_t port;
};

/* Listens at a path, with mode 0600.  A socket that nobody listens at is replaced.  0, or
 * EXIT_FAILED after saying why. */
int listen_at_path(struct listeners *l, const char *path);
/* Listens at 127.0.0.1, and at ::1 where there is one.  Port 0: any that is free. */
int listen_at_port(struct listeners *l, uint16_t port);
/* Closes, and removes the path. */
void listen_end(struct listeners *l);

#endif
