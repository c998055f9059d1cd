/* SPDX-License-Identifier: MIT */
/*
 * submit.h - a submit, from the command line and its files to the request.
 */
#ifndef GPQ_CLIENT_SUBMIT_H
#define GPQ_CLIENT_SUBMIT_H

#include "queue/client/session.h"
#include "queue/client/spec.h"
#include "queue/jobs/jobs.h"

struct gpq_submit_call {
    const struct call *call;
    struct gpq_config config;
    char name[256]; /* of the batch; "" = none */
    const char *shell;
    bool is_list;        /* it may have many tasks, and joins */
    bool open;           /* more will be appended */
    json_t *environment; /* list of texts */
    json_t *base;        /* the members of all its specs */
    json_t *specs, *tasks;
    json_t *index;    /* of the specs of lines, by the text of their options */
    json_t *found;    /* programs that were found */
    struct gpq_job_option *texts; /* options that are templates */
    size_t n_texts;
    const char *known[OPTION_COUNT]; /* names of the options that a line may set; ends with NULL */
    uint32_t at_once; /* of --array */
    uint64_t now;
    struct gpq_jobs_counts counts;
};

/* Reads options, configuration and files.  0, or the exit status after saying why.  The caller
 * frees in both cases. */
int gpq_submit_read(struct gpq_submit_call *s, const struct call *call);
void gpq_submit_free(struct gpq_submit_call *s);

/* The request; NULL: no memory, or a wrong option of the batch, which was said.  `append` is the id
 * of the open batch that gets the tasks, or NULL. */
json_t *gpq_submit_request(struct gpq_submit_call *s, const char *append);

/* Sends it, again after a loss of the connection.  *ret is the reply. */
int gpq_submit_send(struct gpq_session *session, struct gpq_submit_call *s, const char *append,
                    json_t **ret);

/* Prints "batch 12 night: 500 tasks added, 3 joined." */
void gpq_submit_say(struct gpq_session *session, const struct gpq_submit_call *s, json_t *reply);

/* How the jobs of a file are made, which lives as long as the submit; and a gpq_job_fn that adds a
 * task, with the submit as `user`. */
struct gpq_jobs_how gpq_submit_how(const struct gpq_submit_call *s, const char *path);
int gpq_submit_job(const struct gpq_job *job, void *user, struct gpq_error *e);

#endif
