/* SPDX-License-Identifier: MIT */
/*
 * desk.h - an agent without commands: a store in the present directory, its socket, and turns that
 * the test takes.  It has no dispatcher.
 */
#ifndef T_DESK_H
#define T_DESK_H

#include "harness.h"

#include <jansson.h>

#include "queue/agent/agent.h"
#include "queue/agent/follow.h"
#include "queue/agent/needs.h"
#include "queue/agent/requests.h"

extern struct gpq_agent t_desk;
extern uint64_t t_desk_time; /* of the next transaction */
extern int t_desk_fault;     /* code of the next commit, instead of committing; 0 = none */

void t_desk_open(void);
void t_desk_serve(void); /* the socket, too */
void t_desk_close(void);

/* Text with ' in place of ". */
json_t *t_json(const char *text);
/* Carries out one request in a transaction of its own.  The caller frees the reply. */
json_t *t_ask(const char *request);
/* The same, which must succeed or be refused with this code and a text that has this part. */
json_t *t_ask_ok(const char *request);
void t_ask_refused(const char *request, const char *code, const char *part);
/* The compact text of a reply's member, in a static buffer of which there are four. */
const char *t_text_of(const json_t *json);

/* Waits for events for up to `ms` ms, 0 = only looks, and takes a turn.  Returns the events. */
int t_desk_turn(int ms);

#endif
