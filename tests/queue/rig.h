/* SPDX-License-Identifier: MIT */
/*
 * rig.h - plays the agent for tests of the runner: a state directory, one run, its record.
 *
 * The scratch directory is the working directory of the command; s/ is the state directory, s/log
 * the log, and "ready" and "go" are fifos between command and case.
 */
#ifndef T_RIG_H
#define T_RIG_H

#include "queue/runner/find.h"
#include "queue/runner/plan.h"

struct rig {
    char here[GPQ_PATH], state[GPQ_PATH], out[GPQ_PATH], log[GPQ_PATH];
    char boot[GPQ_BOOT + 1];
    char *argv[4], *environment[8];
    struct gpq_plan plan;
    struct gpq_claimed claimed;
    struct gpq_found found;
    int ready, go; /* the fifos, both ends */
    pid_t runner;
};

/* Makes directories and fifos, and the plan of `sh -c script` as attempt 1 of task 12.44.  The case
 * is a subreaper from then on. */
void rig_open(struct rig *r, const char *script);
void rig_close(struct rig *r);

/* Makes a program of the case (T_PROGRAM) the command. */
void rig_program(struct rig *r, const char *name, const char *argument);

/* The plan of a further attempt. */
void rig_next_attempt(struct rig *r);

/* Starts the runner; with a point the one that stops there. */
void rig_start(struct rig *r, const char *point);
/* The same, with assignments for the runner itself. */
void rig_start_with(struct rig *r, const char *runner, char *const *environment);

/* Reads a line that the command writes to `ready`; lets a command that reads `go` go on. */
void rig_await_ready(struct rig *r);
void rig_go(struct rig *r);

/* Judges the run as a new agent does, and expects this state. */
#define RIG_LOOK(r, expected) T_TEXT(rig_look(r), gpq_found_text(GPQ_FOUND_##expected))
const char *rig_look(struct rig *r);

/* Waits until the runner has exited with 0, and expects that the run ENDED. */
void rig_end(struct rig *r);
/* The same, after which the end must be this one. */
#define RIG_END(r, expected_how, expected_status)            \
    do {                                                     \
        rig_end(r);                                          \
        T_TEXT(gpq_run_how_text((r)->found.record.end.how),  \
               gpq_run_how_text(GPQ_RUN_##expected_how));    \
        T_EQ((r)->found.record.end.status, expected_status); \
    } while (0)

/* Waits until the runner stops at its point; kills the runner. */
void rig_await_stop(struct rig *r);
void rig_kill(struct rig *r);

/* Waits until no process has the lock: one that waits for its release closes its copy first. */
void rig_await_unlocked(struct rig *r);

/* Reaps each process that has become a child of the case, until there is none. */
void rig_reap(void);

/* Reads a file whole; the caller frees it. */
char *rig_read(const char *path);
void rig_expect(const char *path, const char *content);

#endif
