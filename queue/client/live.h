/* SPDX-License-Identifier: MIT */
/* live.h - where the live page of a queue is. */
#ifndef GPQ_CLIENT_LIVE_H
#define GPQ_CLIENT_LIVE_H

#include "queue/files/socket.h"
#include "tools/cli/verb.h"

/* Writes the path of its program.  0, or EXIT_FAILED after saying why. */
int gpq_live_program(char path[GPQ_PATH]);

/* Writes the path of its socket, beside that of the agent: live-HASH, or live in the state
 * directory.  0, or the exit status after saying why. */
int gpq_live_socket(const struct call *call, char path[GPQ_SOCKET_PATH + 1]);

#endif
