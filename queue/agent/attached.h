/* SPDX-License-Identifier: MIT */
/*
 * attached.h - tasks that are cancelled when the connection of their submit closes.
 *
 * A mark "attached" in the commit of the submit names them, and goes in the commit of their cancel.
 * An agent that starts finds marks of connections that are no more, and cancels their tasks before
 * it adopts a command.
 */
#ifndef GPQ_AGENT_ATTACHED_H
#define GPQ_AGENT_ATTACHED_H

#include "queue/agent/agent.h"

struct gpq_client;

/* The tasks that one submit has added. */
struct gpq_attached {
    uint32_t batch, first, last; /* numbers in the batch */
    struct gpq_client *client;   /* NULL: it is gone */
    bool ended;                  /* cancelled in the transaction of this turn */
    struct gpq_attached *next;
};

/* Inside the transaction of the submit: notes them. */
int gpq_attached_note(struct gpq_store *s, uint64_t now, const struct gpq_attached *which,
                      struct gpq_error *e);
/* Inside a transaction: cancels those that have not ended, and forgets the note. */
int gpq_attached_end(struct gpq_store *s, uint64_t now, const struct gpq_attached *which,
                     struct gpq_error *e);
/* The same for all notes. */
int gpq_attached_end_all(struct gpq_store *s, uint64_t now, struct gpq_error *e);
/* Whether a mark is such a note, which no person has made. */
bool gpq_attached_is(const struct gpq_mark *m);

#endif
