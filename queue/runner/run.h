/* SPDX-License-Identifier: MIT */
/*
 * run.h - one command under its runner, a process that outlives the agent.
 *
 * gpudispatch-runner is parent, subreaper and log writer of one command.  It needs libc alone, has
 * one thread, and does not wake up while the command is silent.  Its life:
 *
 *     agent                     runner                           command
 *     run/ID.ATTEMPT: locks it,
 *     writes the head
 *     starts the runner ------> own session, subreaper
 *     closes its copy           record: runner
 *                               fork --------------------------> own session; waits at a pipe
 *                               record: start
 *                               releases it -------------------> changes directory, executes
 *     SIGUSR2, soft ----------> SIGTERM to the process group      works; its output goes to the
 *     SIGUSR1, hard ----------> SIGKILL to all below it           runner, and from there to the log
 *                               kills the rest, drains  <-------- its first process exits
 *                               the output, syncs $GPUDISPATCH_OUT
 *                               record: end; syncs record and run/
 *     pidfd readable  <-------- exits, which frees the lock
 *
 * Q4  Commands go on while no agent runs, and a new agent finds each of them: the lock of its
 *     record proves that the runner lives, and the end in its record how the command ended
 *     (find.h).  None is started twice: the runner writes the start before it releases the command,
 *     and a command whose runner dies before the release exits unexecuted.  So a record without a
 *     start proves that the command never ran.
 *     A command whose runner was killed is found by its session and its environment, and killed
 *     (sweep.h), before its attempt is over.
 *
 * If the command exited with 0, its outputs are durable before the end is written [Q5], and so is
 * run/ID.ATTEMPT.stamp, the state of the files that the command names (stamp.h) [Q6].  Without such
 * a file there is no stamp.
 *
 * The runner has its record as descriptor 3, which is the locked file description of the agent, the
 * plan (plan.h) as 4 and the state directory as 5, which becomes its working directory.  The
 * command has none of them: a daemon that it leaves behind keeps no lock.
 *
 * Descendants.  When the first process of the command has exited, the runner kills the
 * rest of its session and all other processes below it, daemons included, and waits until none is
 * left, also for one that the kernel holds in an uninterruptible call.  It leaves those alone that
 * it may not kill, such as programs of root that sudo started, and counts them.
 *
 * A stop.  SIGTERM comes from no agent: a reboot or a logout ends all processes with it.  The
 * runner sends SIGTERM to the process group, and writes the stop to its record at once, unless an
 * agent has ordered the end before.
 *
 * A clean reboot or a logout charges no attempt.  A command that ended after a stop is LOST, as
 * after a power cut, unless it exits with 0 or could not be executed.  That holds for each other
 * exit status and for each signal, and also if the runner was killed after the stop: the command
 * was asked to end.  An attempt that has exceeded its limit is TIMEOUT all the same, and a
 * cancelled one is CANCELLED.  [Q4]
 *
 * A stop may reach the command, or a process of it, before the runner.  If the command has failed
 * without an order, the runner waits 200 ms for a stop before it writes the end.  If none arrives,
 * the failure counts, also that by a signal which a person sent to the command alone.
 *
 * Signals other than SIGTERM, SIGUSR1, SIGUSR2, SIGKILL and SIGSTOP have no effect on the runner.
 *
 * Output.  The command's stdout and stderr are one pipe.  The runner appends it to the log.  If the
 * disk is full, the command goes on, and the lost bytes are counted.  If the log exceeds 1 MiB
 * (GPQ_LOG_HEAD) and `log_limit` of the plan, the runner frees the blocks behind the first 1 MiB so
 * that at least the last `log_limit` bytes stay.  Where the file system cannot do that, it stops
 * writing and counts.  The log is not synced: a power cut may take its last seconds.
 *
 * Exit status of the runner: 0 after the end is durable; 1 if the record could not be written, and
 * 2 if its descriptors, plan or record are not those of a new run.  In both cases the record is
 * judged as after a crash.
 */
#ifndef GPQ_RUNNER_RUN_H
#define GPQ_RUNNER_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/files/files.h"

enum { GPQ_RUN_RECORD = 3, GPQ_RUN_PLAN = 4, GPQ_RUN_STATE = 5 }; /* descriptors */
enum { GPQ_NONCE = 32, GPQ_BOOT = 36 };                           /* characters */

/* The first bytes of a log that always stay. */
#define GPQ_LOG_HEAD (UINT64_C(1) << 20)

/* How the command knows which run it belongs to, and how a sweep finds it. */
#define GPQ_RUN_VARIABLE "GPUDISPATCH_RUN"

/* One run of a command.  The nonce, lower-case hexadecimal digits, is drawn anew for each: the
 * numbers repeat when a state directory is made anew. */
struct gpq_run_id {
    uint64_t task;
    uint32_t attempt;
    char nonce[GPQ_NONCE + 1];
};

/* Room for "12.44.3", and for "12.44.3.NONCE". */
enum { GPQ_RUN_NAME = 3 * 11, GPQ_RUN_TAG = GPQ_RUN_NAME + GPQ_NONCE + 1 };

/* The name of the record: "12.44.3" for attempt 3 of task 12.44. */
void gpq_run_name(char ret[GPQ_RUN_NAME], const struct gpq_run_id *id);

/* The value of GPUDISPATCH_RUN: the name, a dot and the nonce. */
void gpq_run_tag(char ret[GPQ_RUN_TAG], const struct gpq_run_id *id);
bool gpq_run_tag_read(const char *text, struct gpq_run_id *ret);

bool gpq_run_same(const struct gpq_run_id *a, const struct gpq_run_id *b);

/* Draws the nonce; 0 or -errno. */
int gpq_run_nonce(char ret[GPQ_NONCE + 1]);

/* The path of the record in a state directory; 0 or -ENAMETOOLONG. */
int gpq_run_path(char path[GPQ_PATH], const char *state, const struct gpq_run_id *id);

/* The same with a suffix, of a file beside the record: the stamp of a success, and the line of a
 * shell that is too long for an argument. */
#define GPQ_RUN_STAMP ".stamp"
#define GPQ_RUN_LINE ".sh"
int gpq_run_beside(char path[GPQ_PATH], const char *state, const struct gpq_run_id *id,
                   const char *suffix);

/* The id of this boot of the kernel; 0 or -errno. */
int gpq_boot_read(char ret[GPQ_BOOT + 1]);
bool gpq_boot_valid(const char *text);

#endif
