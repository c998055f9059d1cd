/* SPDX-License-Identifier: MIT */
/* agent.h - an agent of the queue with fake GPUs, in a directory of the benchmark, and a connection
 * to it. */
#ifndef BENCH_QUEUE_AGENT_H
#define BENCH_QUEUE_AGENT_H

#include <sys/resource.h>
#include <sys/types.h>

#include "disk.h"
#include "queue/client/session.h"

struct bq_agent {
    struct gpq_session session;
    struct call call; /* the options of its start */
    char state[BQ_PATH], config[BQ_PATH + 8];
};

/* Makes folder/name for its files and starts it, with `classes` as its config file.  Returns: 0, or
 * -1 after a complaint. */
int bq_agent_open(struct bq_agent *a, const struct bq_disk *disk, const char *name,
                  const char *devices, const char *classes);

/* Starts it again after bq_agent_kill.  Returns: 0 once it has replied, or -1 after a complaint. */
int bq_agent_start(struct bq_agent *a);

/* Ends it with SIGKILL.  Its runners and commands go on until the end of the cell.  `ret` may be
 * NULL; else it gets the agent's CPU time and its largest memory. */
void bq_agent_kill(struct bq_agent *a, struct rusage *ret);

/* Sends a request, of which it takes the reference.  Returns: the reply, to be freed, or NULL after
 * a complaint. */
json_t *bq_agent_ask(struct bq_agent *a, json_t *request);

/* Submits tasks of one spec as a batch, and takes both references.  ret_batch is its id.  Returns:
 * 0, or -1 after a complaint, as the next two. */
int bq_agent_submit(struct bq_agent *a, json_t *spec, json_t *tasks, char ret_batch[16]);

/* Submits n times the same command.  The argument may be NULL. */
int bq_agent_commands(struct bq_agent *a, const char *program, const char *argument, uint32_t n,
                      char ret_batch[16]);

/* Waits until a batch has ended. */
int bq_agent_wait(struct bq_agent *a, const char *batch);

#endif
