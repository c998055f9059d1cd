/* SPDX-License-Identifier: MIT */
/* runs.h - commands under their runners, from the claim to the end record. */
#ifndef GPQ_AGENT_RUNS_H
#define GPQ_AGENT_RUNS_H

#include "queue/agent/work.h"
#include "queue/runner/record.h"

/* Text of a run for the store: nonce and boot id; and back. */
void gpq_run_text(const struct gpq_agent *a, const struct gpq_run_id *run, char ret[128]);
bool gpq_run_text_read(const char *text, struct gpq_run_id *ret, char boot[GPQ_BOOT + 1]);

/* Draws the identity of the unit's next run, before its claim. */
int gpq_runs_prepare(struct gpq_unit *u);
/* After the commit of its claim: makes the outputs' directory, starts the runner, and reports the
 * start to the dispatcher.  On failure nothing runs. */
int gpq_runs_start(struct gpq_agent *a, struct gpq_unit *u, struct gpq_error *e);
/* The claimed task cannot be started, and never will: its attempt is an ERROR. */
void gpq_runs_failed(struct gpq_agent *a, struct gpq_unit *u, const char *text);
/* Watches a runner that runs already.  pidfd -1: processes that a killed runner has left, swept
 * again on the timer. */
void gpq_runs_adopt(struct gpq_agent *a, struct gpq_unit *u, int pidfd);
/* Cancels the command of a unit. */
void gpq_runs_cancel(struct gpq_agent *a, struct gpq_unit *u);
/* The runner has exited: reads how the command ended, sweeps the rest of a killed one, and reports
 * the end to the dispatcher.  False: not yet, call again in a second. */
bool gpq_runs_ended(struct gpq_agent *a, struct gpq_unit *u);

/* The end of a command by its record, as the store's outcome.  limit: of the task.  shell: the
 * command is a line for a shell, whose status may be that of a crash. */
void gpq_runs_judge(const struct gpq_record *record, uint64_t limit, bool shell,
                    struct gpq_end *ret, char text[256]);
/* The state of the files that a command named at its success (stamp.h); the caller frees it.  NULL:
 * no memory. */
char *gpq_runs_stamp(struct gpq_agent *a, const struct gpq_run_id *run);
/* Removes the record of a run whose end is committed, and the files beside it. */
void gpq_runs_forget(struct gpq_agent *a, const struct gpq_run_id *run);

#endif
