/* SPDX-License-Identifier: MIT */
/*
 * session.h - the connection of a verb to the agent of its state directory.
 *
 * A function that fails has said why on standard error, and returns the exit status of the program.
 */
#ifndef GPQ_CLIENT_SESSION_H
#define GPQ_CLIENT_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "queue/client/clock.h"
#include "queue/client/say.h"
#include "queue/files/places.h"
#include "queue/proto/lines.h"
#include "tools/cli/verb.h"

/* Which agent a verb wants, if none runs. */
enum gpq_agent_wish {
    GPQ_AGENT_RUNNING, /* none is started */
    GPQ_AGENT_RESUMED, /* one is started where a queue is, unless the last one was told to stop */
    GPQ_AGENT_STARTED, /* one is started, and the state directory is made */
};

struct gpq_session {
    const struct call *call;
    enum gpq_agent_wish wish; /* with which it was opened */
    int fd; /* -1: not connected */
    char state[GPQ_PATH];
    struct gpq_buffer in;
    int64_t pid; /* of the agent */
    uint32_t devices;
    bool started;      /* it was started for this verb */
    uint64_t deadline; /* of --timeout, in ns of CLOCK_MONOTONIC; 0 = none */
};

/* 0, or the exit status.  The caller closes in both cases. */
int gpq_session_open(struct gpq_session *s, const struct call *call, enum gpq_agent_wish wish);
void gpq_session_close(struct gpq_session *s);
/* Connects to an agent that runs; false: there is none, which is not said.  The caller closes. */
bool gpq_session_try(struct gpq_session *s, const struct call *call);

/* Connects anew after the agent has closed the connection, as it does when it is replaced.  If none
 * answers for a while, one is started, unless the last one was told to stop or the session wants
 * one that runs.  EXIT_TIMEOUT: none did until the deadline; -1: interrupted. */
int gpq_session_again(struct gpq_session *s);

/* Takes the reference; NULL counts as no memory.  EXIT_NONE: the connection is closed, which is not
 * said. */
int gpq_session_send(struct gpq_session *s, json_t *request);

/*
 * Waits for the next line: GPQ_LINE with a new reference, or the others with NULL.  GPQ_STRANGE:
 * the line is no JSON object, or too long, which was said.  `deadline` is in ns of CLOCK_MONOTONIC,
 * 0 = none.
 */
enum gpq_heard { GPQ_LINE, GPQ_LATE, GPQ_INTERRUPTED, GPQ_CLOSED, GPQ_STRANGE };
enum gpq_heard gpq_session_hear(struct gpq_session *s, uint64_t deadline, json_t **ret);

/* Sends a request and waits for its reply, which *ret gets if its "ok" is true.  Takes the
 * reference.  -1: interrupted, and the connection is closed, since the reply may still come. */
int gpq_session_ask(struct gpq_session *s, json_t *request, json_t **ret);
/* The same; again after a loss of the connection.  For requests that may be applied twice. */
int gpq_session_insist(struct gpq_session *s, json_t *request, json_t **ret);
/* The same, whatever the reply is: the caller judges it. */
int gpq_session_hear_reply(struct gpq_session *s, json_t *request, json_t **ret);

/* Opens a session, sends a request, again after a loss of the connection unless the agent must run
 * already, and closes.  With --json the reply is printed, and *ret is NULL then, as after a
 * failure. */
int gpq_session_once(const struct call *call, enum gpq_agent_wish wish, json_t *request,
                     json_t **ret);

/* Prints the error of a reply, and returns its exit status; 0 for a reply without one. */
int gpq_session_judge(const json_t *reply);
/* The exit status of a reply with an error. */
int gpq_session_status(const json_t *reply);

/* The agent runs elsewhere or not at all: fills the path of the state directory only. */
int gpq_session_place(struct gpq_session *s, const struct call *call, bool make);

#endif
