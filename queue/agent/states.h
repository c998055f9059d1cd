/* SPDX-License-Identifier: MIT */
/*
 * states.h - the states of devices, workers and waiting tasks, as rows of spans.c.
 *
 * A look asks the dispatcher: the rows of its devices and slots, and the reasons of the first
 * waiting task of each shape.  The reasons tell for which class a worker leaves, for which task a
 * device stays free, and which process of others is in the way.  No reading of a GPU is made for
 * it.
 */
#ifndef GPQ_AGENT_STATES_H
#define GPQ_AGENT_STATES_H

#include "queue/agent/spans.h"

/* Workers that were there, and that died. */
struct gpq_states;

struct gpq_states *gpq_states_new(void); /* NULL: no memory */
void gpq_states_free(struct gpq_states *t);
/* An event of the dispatcher: a worker may have died. */
void gpq_states_hear(struct gpq_states *t, const struct gpud_event *event);
/* Sees each state that there is now. */
void gpq_states_look(struct gpq_agent *a, struct gpq_spans *s, struct gpq_states *t);

/* ---- spans.c: the rows ---- */

enum { GPQ_SPAN_KEY = 64, GPQ_SPAN_TEXT = 256 };

/* Whether a row of this state is open: then the present look has seen it.  Two states are the same
 * with the same reason and key. */
bool gpq_span_goes_on(struct gpq_spans *s, const char *kind, const char *subject,
                      const char *reason, const char *key);
/* A state goes on, with the text of now, or begins. */
void gpq_span_say(struct gpq_spans *s, const char *kind, const char *subject, const char *reason,
                  const char *key, const char *text);
/* Begins a row of a state that the present look sees first. */
void gpq_span_begin(struct gpq_spans *s, const char *kind, const char *subject, const char *reason,
                    const char *key, const char *text);

#endif
