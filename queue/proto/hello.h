/* SPDX-License-Identifier: MIT */
/* hello.h - the first line of both sides of the socket: docs/reference/queue-protocol.md. */
#ifndef GPQ_PROTO_HELLO_H
#define GPQ_PROTO_HELLO_H

#define GPQ_PROTOCOL "gpudispatch-queue"
enum { GPQ_PROTOCOL_VERSION = 1 };

#endif
