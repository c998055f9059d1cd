/* SPDX-License-Identifier: MIT */
/*
 * ids.h - the tasks that a verb names: operands and options as selections of the protocol.
 *
 * An operand has one or more ids, separated by commas: 12 (a batch), 12.44 (a task), 12.40-49 (a
 * range), or the name of a batch in place of its number: night, night.44.  It is the newest one of
 * that name.
 */
#ifndef GPQ_CLIENT_IDS_H
#define GPQ_CLIENT_IDS_H

#include "queue/client/session.h"

/* One id, as its text. */
enum gpq_id_kind { GPQ_ID_NONE, GPQ_ID_BATCH, GPQ_ID_TASK, GPQ_ID_RANGE };
struct gpq_id {
    enum gpq_id_kind kind;
    uint32_t batch, first, last; /* of a task: first */
};
/* NONE: it is none, perhaps a name. */
struct gpq_id gpq_id_read(const char *text);
/* "12" of a batch or the batch of a range, "12.44" of a task. */
char *gpq_id_text(const struct gpq_id *id, char ret[32]);
/* Whether each of its parts between commas is an id. */
bool gpq_are_ids(const char *text);

/* The same; a text that is none is the name of a batch, for which the agent is asked.  0, or the
 * exit status. */
int gpq_id_find(struct gpq_session *s, const char *text, struct gpq_id *ret);

/*
 * A list of objects with the members of a selection: one for all tasks that were named, one per
 * batch and range, in the order of the operands.  Filters of --state, --failed and --lost are in
 * each.  --all without operands gives one of all tasks.  Asks the agent for names.  0, or the exit
 * status.
 */
int gpq_selections(struct gpq_session *s, json_t **ret);

/* The one task that the first operand names: "12.44"; a batch of one task names that task. */
int gpq_one_task(struct gpq_session *s, char ret[32]);

/* Calls fn with each row of all pages of a request, until it returns another value than 0, which is
 * returned; GPQ_ENOUGH ends the rows, and is returned as 0.  Takes the request. */
enum { GPQ_ENOUGH = -1000 };
int gpq_rows(struct gpq_session *s, json_t *request, const char *list,
             int (*fn)(json_t *row, void *user), void *user);

/* The row of a batch, "12", to be freed.  Asks again after a loss of the connection.  0, or the
 * exit status: EXIT_NONE after saying that there is none. */
int gpq_batch_row(struct gpq_session *s, const char *batch, json_t **ret);

/* Opens a session, and calls fn for each selection that the call names.  Returns the exit
 * status. */
int gpq_each_selection(const struct call *call,
                       int (*fn)(struct gpq_session *s, json_t *selection, void *user), void *user);

/* A request with the members of a selection, which it leaves alone. */
json_t *gpq_request_of(const char *what, json_t *selection);

#endif
