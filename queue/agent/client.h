/* SPDX-License-Identifier: MIT */
/*
 * client.h - one client of the agent: its connection, the lines that it sent, and those for it.
 *
 * A client cannot block the agent.  While more than GPQ_CLIENT_PAUSE bytes wait for it, or
 * GPQ_CLIENT_REQUESTS of its requests wait for a commit, the agent reads nothing from it.
 */
#ifndef GPQ_AGENT_CLIENT_H
#define GPQ_AGENT_CLIENT_H

#include "queue/agent/agent.h"
#include "queue/proto/hello.h"
#include "queue/proto/lines.h"

#define GPQ_CLIENT_PAUSE ((size_t)64 << 10)
/* Requests of a client that wait for a commit. */
enum { GPQ_CLIENT_REQUESTS = 64 };
/* A request with more bytes leaves much memory behind, which is given back. */
#define GPQ_TRIM ((size_t)1 << 20)
/* Bytes that are read from a client in one turn. */
#define GPQ_CLIENT_READ ((size_t)1 << 20)

struct gpq_client {
    struct gpq_watched watched;
    uint32_t events; /* that the epoll set has */
    struct gpq_buffer in, out;
    uint64_t lines;     /* that it has sent */
    uint32_t waiting;   /* requests that wait for a commit */
    uint32_t watchers;  /* follow.h */
    size_t replied;     /* bytes of replies that wait for the commit of this turn */
    bool greeted;       /* its version was accepted */
    bool eof;           /* it sends nothing more */
    bool closing;       /* it is closed when its output has left */
    bool gone;          /* its descriptor is closed */
    struct gpq_client *next;
};

/* Called with each whole line that is an object.  It takes the reference. */
typedef void (*gpq_line_fn)(struct gpq_agent *a, struct gpq_client *c, json_t *request);

struct gpq_client *gpq_client_new(struct gpq_agent *a, int fd);
/* The descriptor is ready. */
void gpq_client_ready(struct gpq_agent *a, struct gpq_client *c, uint32_t events, gpq_line_fn fn);
/* Goes on with lines that have been read, where they had to wait. */
void gpq_client_go_on(struct gpq_agent *a, struct gpq_client *c, gpq_line_fn fn);
/* Keeps a line for it; takes nothing. */
void gpq_client_send(struct gpq_agent *a, struct gpq_client *c, json_t *line);
void gpq_client_send_text(struct gpq_agent *a, struct gpq_client *c, const char *text, size_t size);
/* Writes as many bytes as its socket takes now. */
void gpq_client_write(struct gpq_agent *a, struct gpq_client *c);
bool gpq_client_has_room(const struct gpq_client *c);
/* Closes the descriptor, and drops the output that is left for it. */
void gpq_client_gone(struct gpq_agent *a, struct gpq_client *c);
/* Whether nothing refers to it any more. */
bool gpq_client_is_over(struct gpq_client *c);
void gpq_client_free(struct gpq_client *c);

#endif
