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

/* Saves the path of the agent's socket as the file socket-path in the state directory. */
int gpq_socket_save(const char *real, const char *path, struct gpq_error *e);
/* Reads the saved path.  ENOTFOUND: none is saved; EUNUSABLE: the file has no such path. */
int gpq_socket_saved(const char *real, char path[GPQ_SOCKET_PATH + 1], struct gpq_error *e);
/* Removes the saved path, if it is this one. */
void gpq_socket_forget(const char *real, const char *path);

/*
 * Connects to the agent, for clients: to the path of gpq_socket_find, or else to the saved one, so
 * that client and agent may have different values of XDG_RUNTIME_DIR.  The listener must be a
 * process of the same user.  [Q12]
 *
 * 0, ENOTFOUND (no agent listens), or another GPQ_E code.
 */
int gpq_socket_connect(const struct gpq_places *p, const char *real, int *ret_fd,
                       struct gpq_error *e);

#endif
