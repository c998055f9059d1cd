/* SPDX-License-Identifier: MIT */
/*
 * requests.h - the requests of clients: a table, and the arguments of each function.
 *
 * docs/reference/queue-protocol.md describes each of them, and a test checks that it does.
 */
#ifndef GPQ_AGENT_REQUESTS_H
#define GPQ_AGENT_REQUESTS_H

#include "queue/agent/agent.h"
#include "queue/agent/fields.h"
#include "queue/agent/follow.h"

/* Rows of a reply without "most", and the most of them. */
enum { GPQ_ROWS = 1000, GPQ_ROWS_MOST = 10000 };
/* A page ends early once the texts in it have this many bytes, or twice as many with results. */
#define GPQ_PAGE_BYTES ((size_t)4 << 20)
/* The kernel takes no longer argument (execve(2)). */
#define GPQ_ARGUMENT_MOST ((size_t)131071)
/* Names of batches and tasks, and ids of requests. */
enum { GPQ_NAME_MOST = 255 };

struct gpq_call {
    struct gpq_agent *a;
    uint64_t now;
    json_t *request;
    struct gpq_wish *wish;
    struct gpq_error *e;
};

/* A function of the table returns the reply without "id" and "ok", or NULL with *c->e filled. */
struct gpq_verb {
    const char *name;
    json_t *(*run)(struct gpq_call *c);
    const struct gpq_field *fields; /* its members beside "id" and "do" */
};
extern const struct gpq_verb gpq_verbs[]; /* ends with a NULL name */

/* Reads the request into a record. */
int gpq_call_read(struct gpq_call *c, const struct gpq_field *fields, void *record);
/* Sets a member of a reply; a NULL value, or none of memory, makes it fail with ENOMEM. */
bool gpq_reply_set(struct gpq_call *c, json_t *reply, const char *name, json_t *value);
/* The same of a list that a reader of the store has filled, unless it is empty.  `code` is that of
 * the reader; 0 or a GPQ_E code. */
int gpq_reply_list(struct gpq_call *c, json_t *reply, const char *name, json_t *list, int code);
/* The reply, unless the call has failed meanwhile: then NULL, and the reply is freed. */
json_t *gpq_reply_end(struct gpq_call *c, json_t *reply);
json_t *gpq_no_memory(struct gpq_call *c);

/* {"id":..,"ok":false,"code":..,"status":..,"error":..}; `id` may be NULL, and is not taken. */
json_t *gpq_error_json(json_t *id, const struct gpq_error *e);

/* The objects within a submit, and their members, for the test of the documents. */
extern const struct gpq_verb gpq_submit_parts[];
/* The dispatcher's row of the device with this name, number or UUID; false: there is none, or no
 * memory. */
bool gpq_device_find(struct gpq_agent *a, const char *name, struct gpud_device_info *ret);
/* "fake:0 to fake:7", or their names. */
void gpq_devices_text(struct gpq_agent *a, char *ret, size_t room);
/* The causes of retries: an object into uint32_t[GPQ_CAUSES]. */
extern const struct gpq_field gpq_retries_fields[];

/* submit.c, query.c, results.c, explain.c, changes.c, set.c, facts.c, control.c, wait.c,
 * history.c, records.c */
#define GPQ_VERB_MAP(X)                                                                \
    X(submit) X(batches) X(tasks) X(task) X(results) X(attempts) X(explain) X(cancel)  \
    X(retry) X(hold) X(release) X(set) X(seal) X(pause) X(resume) X(drain) X(undrain)  \
    X(purge) X(wait) X(follow) X(watch) X(status) X(classes) X(spans) X(records)        \
    X(stop)
#define GPQ_X_VERB(name)                                                               \
    json_t *gpq_do_##name(struct gpq_call *c);                                         \
    extern const struct gpq_field gpq_##name##_fields[];
GPQ_VERB_MAP(GPQ_X_VERB)
#undef GPQ_X_VERB

/* ---- Selections: select.c ---- */

/* Which tasks a request means. */
struct gpq_which {
    uint32_t batch, first, last;
    json_t *tasks, *states, *outcomes;
    bool all;
    uint32_t joined; /* tasks that the batch has joined */
    uint64_t *id;    /* of `tasks`; gpq_which_free */
    struct gpq_select select;
};
/* Of a record whose first member is a struct gpq_which. */
#define GPQ_WHICH_FIELDS                                                                        \
    GPQ_MEMBER(gpq_which, batch, BATCH, 0, 0), GPQ_MEMBER(gpq_which, first, U32, 1, INT32_MAX), \
        GPQ_MEMBER(gpq_which, last, U32, 1, INT32_MAX),                                         \
        GPQ_MEMBER(gpq_which, tasks, LIST, 1, GPQ_LIST_MOST),                                   \
        GPQ_MEMBER(gpq_which, states, LIST, 0, GPQ_STATES),                                     \
        GPQ_MEMBER(gpq_which, outcomes, LIST, 0, GPQ_OUTCOMES),                                 \
        GPQ_MEMBER(gpq_which, all, BOOL, 0, 0)
enum { GPQ_LIST_MOST = 100000 };

/* Fills which->select.  A batch or a listed task that is not there fails with ENOTFOUND, and so
 * does a request that names none of batch, tasks and all with EINVAL. */
int gpq_which_read(struct gpq_call *c, struct gpq_which *which);
/* The same, for readers: where a batch has joined no task, a page need not go through the list of
 * the joined ones. */
int gpq_which_read_rows(struct gpq_call *c, struct gpq_which *which);
void gpq_which_free(struct gpq_which *which);
/* Fails with EINVAL for 0, which means that the member "task" is missing, and with ENOTFOUND. */
int gpq_task_exists(struct gpq_call *c, uint64_t task);

/* ---- Rows: rows.c.  NULL: no memory ---- */

json_t *gpq_batch_json(const struct gpq_batch *b);
/* whole: all fields of the row are there. */
json_t *gpq_task_json(const struct gpq_task *t, bool whole);
/* The members of a spec in a reply. */
json_t *gpq_spec_json(const struct gpq_spec *spec, bool with_environment);
json_t *gpq_attempt_json(const struct gpq_attempt *a);

#endif
