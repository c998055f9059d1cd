/* SPDX-License-Identifier: MIT */
/*
 * program.h - where the programs of the queue are installed.
 */
#ifndef GPQ_FILES_PROGRAM_H
#define GPQ_FILES_PROGRAM_H

#include "queue/files/files.h"
#include "queue/store.h"

/*
 * Writes the absolute path of "gpudispatch-agent", "gpudispatch-runner" or "gpudispatch-serve":
 *
 * 1. the path in GPUD_AGENT_PROGRAM, GPUD_RUNNER_PROGRAM or GPUD_SERVE_PROGRAM, if it is set;
 * 2. the program in the directory of the calling program;
 * 3. the program in the directory that the build has configured, as seen from BINDIR: in an
 *    installed prefix that was moved it is found, too.
 *
 * A path of the environment that leads to no program is an error: no other place is searched.
 * GPQ_ENOTFOUND: there is no such program; the text names the place and the variable.
 */
int gpq_program_find(const char *name, char path[GPQ_PATH], struct gpq_error *e);

/* What gpq_program_find reads, for tests. */
struct gpq_program_places {
    const char *variable; /* name of the environment variable, for the text */
    const char *given;    /* its value; NULL or "": not set */
    const char *own;      /* the directory of the calling program; NULL: unknown */
    const char *from_bin; /* the configured directory; relative to BINDIR, or absolute */
};
int gpq_program_search(const struct gpq_program_places *p, const char *name, char path[GPQ_PATH],
                       struct gpq_error *e);

#endif
