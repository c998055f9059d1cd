/* SPDX-License-Identifier: MIT */
/*
 * find.h - judges a run of which the store knows, for a new agent: Q4.
 *
 * The store holds the id of each running attempt and the boot at its claim.  The claim is committed
 * before the record is made, so no record means that nothing was started.  XXX If a person removes
 * run/ while commands run, they are started again; their environment could show them.
 */
#ifndef GPQ_RUNNER_FIND_H
#define GPQ_RUNNER_FIND_H

#include "queue/runner/record.h"

#define GPQ_FOUND_MAP(X)                                                                         \
    X(RUNNING, "running")             /* its runner lives: adopt it (gpq_run_adopt) */           \
    X(ENDED, "ended")                 /* the record says how */                                  \
    X(NEVER_STARTED, "never started") /* the command never ran: return it uncharged */           \
    X(CRASHED, "crashed") /* its runner was killed; the command may go on: sweep it (sweep.h) */ \
    X(LOST, "lost")       /* end unknown: of an earlier boot, or stopped (run.h), or its record is
                       damaged.  Sweep it if it is of this boot */

#define GPQ_X_FOUND(name, text) GPQ_FOUND_##name,
enum gpq_found_state { GPQ_FOUND_MAP(GPQ_X_FOUND) GPQ_FOUND_STATES };
#undef GPQ_X_FOUND

/* CRASHED: if the sweep finds nothing of the command, its end is unknown, as that of a LOST one. */
struct gpq_found {
    enum gpq_found_state state;
    struct gpq_record record;
    int fault; /* of gpq_record_read, -ENOENT without a record */
};

/* A run as the store knows it. */
struct gpq_claimed {
    struct gpq_run_id id;
    char boot[GPQ_BOOT + 1]; /* at its claim */
};

/*
 * Judges a record that was read after its lock was checked.  `fault` is as in struct gpq_found, and
 * `boot` the id of the present boot.
 *
 * A record of an earlier boot without an end is LOST even if it has no start: starts are not
 * synced, and a power cut may have taken it.
 */
enum gpq_found_state gpq_run_judge(const struct gpq_claimed *c, const struct gpq_record *record,
                                   int fault, bool locked, const char *boot);

/* Checks the lock, reads the record and judges it.  0, or -errno if that cannot be done now, such
 * as -EIO or -EMFILE. */
int gpq_run_look(const char *state, const struct gpq_claimed *c, const char *boot,
                 struct gpq_found *ret);

/*
 * Opens a pidfd of the runner of a run that is RUNNING; it becomes readable when the runner has
 * exited, and takes its signals (gpq_process_signal).
 *
 * The runner's number, start time and lock are checked after the pidfd was opened.  0; -EAGAIN:
 * the runner has not written its line yet, look again in some milliseconds; -ESRCH: it has exited
 * since, look again; or -errno.
 */
int gpq_run_adopt(const char *state, const struct gpq_found *found, int *ret_pidfd);

const char *gpq_found_text(uint32_t state);

#endif
