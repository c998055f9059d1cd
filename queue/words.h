/* SPDX-License-Identifier: MIT */
/*
 * words.h - the states, holds, outcomes, causes and errors of the durable queue, each listed once.
 *
 * Stores keep the numbers: append, and never renumber.
 */
#ifndef GPQ_WORDS_H
#define GPQ_WORDS_H

#include <stdint.h>

/* The state of a task. */
#define GPQ_STATE_MAP(X)                                        \
    X(HELD, 1, "held")       /* it may not start: see its holds */ \
    X(READY, 2, "ready")     /* it may start */                 \
    X(RUNNING, 3, "running") /* an attempt is claimed, and has not ended */ \
    X(DONE, 4, "done")       /* it has an outcome */

/* Why a task is HELD: a mask. */
#define GPQ_HOLD_MAP(X)                                   \
    X(AFTER, 1, "waits for other tasks") /* --after */    \
    X(TIME, 2, "waits for a time") /* --begin, backoff */ \
    X(USER, 4, "held by you")      /* hold */             \
    X(TURN, 8, "waits for its turn in its batch") /* --array N-M%K */

/* How a task, an attempt or a round ended.  The first six are those of enum gpud_outcome. */
#define GPQ_OUTCOME_MAP(X)                                                              \
    X(SUCCESS, 1, "ok")                                                                 \
    X(ERROR, 2, "error")                                                                \
    X(TIMEOUT, 3, "timeout")                                                            \
    X(CRASHED, 4, "crashed")                                                            \
    X(CANCELLED, 5, "cancelled")                                                        \
    X(NO_WORKER, 6, "no worker")                                                        \
    X(SKIPPED, 7, "skipped") /* a condition of --after cannot be met any more */        \
    X(LOST, 8, "lost") /* nothing is known of the end of its last attempt */

/* Why an attempt failed, for the retries of a task. */
#define GPQ_CAUSE_MAP(X)       \
    X(ERROR, 0, "error")       \
    X(TIMEOUT, 1, "timeout")   \
    X(CRASH, 2, "crash")       \
    X(OOM, 3, "oom")

/* Why an attempt returns to the queue uncharged. */
/* The text of a return by `drain --now`, whose cause is DEVICE. */
#define GPQ_DRAINED "drained by a person"
#define GPQ_RETURN_MAP(X)                                             \
    X(UNSTARTED, 0, "not started") /* the command never ran */        \
    X(DEVICE, 1, "device fault")                                      \
    X(LOST, 2, "lost")      /* it ended with the machine or session */ \
    X(STOPPED, 3, "worker stopped") /* its agent, worker or grant ended first */

/* The condition of an edge: the end that a task waits for. */
#define GPQ_AFTER_MAP(X)                                                       \
    X(OK, 0, "ok")         /* SUCCESS; of a batch: of all its tasks */         \
    X(ENDED, 1, "ended")   /* an outcome, any */                               \
    X(FAILED, 2, "failed") /* an outcome other than SUCCESS; of a batch: of one task */

/* How a submit placed an item. */
#define GPQ_PLACED_MAP(X)                                                         \
    X(ADDED, 0, "added")     /* a new task */                                     \
    X(JOINED, 1, "joined")   /* a task that waits, runs or ended SUCCESS */       \
    X(AGAIN, 2, "again")     /* a task that had ended otherwise: a new round */   \
    X(CHANGED, 3, "changed") /* a new task: its files have changed since the success */

/* Failures: name, value, exit status of the program, text. */
#define GPQ_ERROR_MAP(X)                                            \
    X(EINVAL, -1, 2, "invalid argument")                            \
    X(ENOMEM, -2, 1, "no memory")                                   \
    X(ENOTFOUND, -3, 4, "not found")                                \
    X(ESTALE, -4, 1, "the attempt is not the one that runs now")    \
    X(EREFUSED, -5, 6, "refused")                                   \
    X(EKEY, -6, 6, "the key belongs to another task")               \
    X(EFULL, -7, 6, "no space left")                                \
    X(EBUSY, -8, 75, "another agent owns the state directory")      \
    X(EVERSION, -9, 75, "the file is of a newer version")           \
    X(EDAMAGED, -10, 75, "the file is damaged")                     \
    X(EIO, -11, 75, "the storage failed")                           \
    X(EUNUSABLE, -12, 75, "the state directory cannot be used")

#define GPQ_X_STATE(name, value, text) GPQ_##name = value,
#define GPQ_X_HOLD(name, bit, text) GPQ_HOLD_##name = bit,
#define GPQ_X_OUTCOME(name, value, text) GPQ_OUTCOME_##name = value,
#define GPQ_X_CAUSE(name, value, text) GPQ_CAUSE_##name = value,
#define GPQ_X_RETURN(name, value, text) GPQ_RETURN_##name = value,
#define GPQ_X_AFTER(name, value, text) GPQ_AFTER_##name = value,
#define GPQ_X_PLACED(name, value, text) GPQ_PLACED_##name = value,
#define GPQ_X_ERROR(name, value, status, text) GPQ_##name = value,
enum gpq_state { GPQ_STATE_MAP(GPQ_X_STATE) GPQ_STATES = 5 };
enum gpq_hold { GPQ_HOLD_MAP(GPQ_X_HOLD) GPQ_HOLDS = 15 };
enum gpq_outcome { GPQ_OUTCOME_MAP(GPQ_X_OUTCOME) GPQ_OUTCOMES = 9 };
enum gpq_cause { GPQ_CAUSE_MAP(GPQ_X_CAUSE) GPQ_CAUSES = 4 };
enum gpq_return { GPQ_RETURN_MAP(GPQ_X_RETURN) GPQ_RETURNS = 4 };
enum gpq_condition { GPQ_AFTER_MAP(GPQ_X_AFTER) GPQ_CONDITIONS = 3 };
enum gpq_how { GPQ_PLACED_MAP(GPQ_X_PLACED) GPQ_HOWS = 4 };
enum gpq_error_code { GPQ_ERROR_MAP(GPQ_X_ERROR) };
#undef GPQ_X_STATE
#undef GPQ_X_HOLD
#undef GPQ_X_OUTCOME
#undef GPQ_X_CAUSE
#undef GPQ_X_RETURN
#undef GPQ_X_AFTER
#undef GPQ_X_PLACED
#undef GPQ_X_ERROR

/* Each returns a constant text, "?" for a value that is none. */
const char *gpq_state_text(uint32_t state);
const char *gpq_outcome_text(uint32_t outcome);
const char *gpq_cause_text(uint32_t cause);
const char *gpq_return_text(uint32_t why);
const char *gpq_condition_text(uint32_t condition);
const char *gpq_how_text(uint32_t how);
const char *gpq_error_text(int code);
/* The name of a code, such as "EINVAL". */
const char *gpq_error_name(int code);
/* The name of a signal, such as "SIGKILL".  glibc has such a function from 2.32 on only. */
const char *gpq_signal_text(uint32_t number);
/* The exit status of a program that fails with this code; 1 for a value that is none. */
int gpq_error_status(int code);

#endif
