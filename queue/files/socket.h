/* SPDX-License-Identifier: MIT */
/*
 * socket.h - where agent and client find each other.
 */
#ifndef GPQ_FILES_SOCKET_H
#define GPQ_FILES_SOCKET_H

#include "queue/files/places.h"

/* The kernel's limit for the path of a socket, without its NUL byte (unix(7)). */
enum { GPQ_SOCKET_PATH = 107 };

/*
 * Writes the path of the socket: gpudispatch/socket-HASH in `runtime`, with the hash of the state
 * directory, or the file socket in the state directory if `runtime` is not set or
 * relative.  `real` is that of gpq_statedir_make or gpq_statedir_check.  GPQ_EUNUSABLE: the path is
 * too long.
 */
int gpq_socket_find(const struct gpq_places *p, const char *real, char path[GPQ_SOCKET_PATH + 1],
                    struct gpq_error *e);

/* Makes the directory of the socket, for the agent.  It and `runtime` must belong to the user.
 * [Q12] */
int gpq_socket_make_directory(const struct gpq_places *p, struct gpq_error *e);

#endif
