/* SPDX-License-Identifier: MIT */
/* command.h - the command of a task, as one of its attempts runs it. */
#ifndef GPQ_AGENT_COMMAND_H
#define GPQ_AGENT_COMMAND_H

#include <jansson.h>

#include "queue/agent/work.h"

struct gpq_command {
    char **argv, **environment; /* each one block */
    char *key;                  /* NULL = none */
    char **words;               /* that may name files (stamp.h), as they were submitted */
    const char *cwd;
    json_t *content; /* of the spec, with cwd */
    uint32_t spec;
    bool shell;                               /* a line that a shell runs */
    char line[GPQ_PATH];                      /* of its file; "" = none */
    char visible[2048], gpus[2048], cpus[64]; /* of the lists */
    char *set[4], *defaults[4];               /* variables of the plan (plan.h) */
};

/*
 * Reads the command of a unit whose attempt is claimed.  If its submit has asked for it, the names
 * of the start in its arguments get their values (jobs/template.h); with {port} the unit gets a
 * port, which gpq_work_remove releases.  `out` is the directory of its outputs.  The caller frees
 * the command, also after a failure.
 *
 * A command PROGRAM -c LINE whose line is too long for an argument becomes PROGRAM FILE, with the
 * line in a file beside the record of the run, which gpq_runs_forget removes.
 *
 * EDAMAGED: the store has no command of the task; EINVAL: an argument is too long with its values;
 * EBUSY: no port is free; ENOMEM; EFULL, EIO: of that file.
 */
int gpq_command_read(struct gpq_agent *a, struct gpq_unit *u, const char *out,
                     struct gpq_command *ret, struct gpq_error *e);
void gpq_command_free(struct gpq_command *c);

#endif
