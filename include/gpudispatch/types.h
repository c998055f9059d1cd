/* SPDX-License-Identifier: MIT */
/*
 * types.h - the declarations that all other headers use: handles, outcomes, events.
 *
 * Times are uint64_t nanoseconds.  Points in time are those of CLOCK_MONOTONIC, the same
 * clock in host and workers; GPUD_S(30) is 30 s.  Sizes are bytes.  Records begin with
 * struct_size: their ..._INIT macro sets it to sizeof, other languages set it by hand.
 * Fields are only ever appended, and zero means the default.
 *
 * Stability: stable (appending only).
 */
#ifndef GPUDISPATCH_TYPES_H
#define GPUDISPATCH_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Times in nanoseconds: GPUD_US(n) from microseconds, GPUD_MS(n) from milliseconds,
 * GPUD_S(n) from seconds.  n is an integer, 0 or more: half a second is GPUD_MS(500), and
 * GPUD_S(0.5) does not compile.  The result is a uint64_t.
 */
#define GPUD_US(n) ((uint64_t)((n) | 0) * 1000u)
#define GPUD_MS(n) ((uint64_t)((n) | 0) * 1000000u)
#define GPUD_S(n) ((uint64_t)((n) | 0) * 1000000000u)

/* No limit; for a wait: until its event happens. */
#define GPUD_NEVER UINT64_MAX

/*
 * No time at all, for options in which 0 is the default: grace, backoff, backoff_cap,
 * retry_backoff, retry_backoff_cap, canary_backoff, canary_backoff_cap, memory_wait,
 * batch_wait and result_wait.  In a struct gpud_class: min_residence, keep_alive and
 * max_wait.
 */
#define GPUD_AT_ONCE ((uint64_t)1)

/* A dispatcher, in the host: it owns devices, slots and tasks. */
typedef struct gpud_dispatcher gpud_dispatcher;
/* Memory of the host that all workers map read-only. */
typedef struct gpud_shared gpud_shared;
/* The worker, in its own process; valid as long as that process. */
typedef struct gpud_worker gpud_worker;
/* The task, in its worker; valid until process returns. */
typedef struct gpud_task gpud_task;

/*
 * The lists below grow: a later library adds values at their ends.  Do not size arrays by
 * the words that end in _COUNT, which are those of the header that you compile with.
 */

/* How an accepted task ended: exactly one of these, exactly once.  [C1] */
#define GPUD_OUTCOME_MAP(X)                                                              \
    X(SUCCESS, 1, "process returned 0 in time")                                          \
    X(ERROR, 2, "process returned another value, or called gpud_task_fail")              \
    X(TIMEOUT, 3, "the task exceeded a time limit")                                      \
    X(CRASHED, 4, "its worker died while it ran")                                        \
    X(CANCELLED, 5, "the host cancelled it")                                             \
    X(NO_WORKER, 6, "no slot is left to run it")

/*
 * The phase of its life in which a task ended.
 *
 * HARD and KILL show how a limit was enforced.  HARD: the worker was killed.  KILL: it
 * survived SIGKILL.  [C10]
 */
#define GPUD_PHASE_MAP(X)                                                                \
    X(NONE, 0, "the event is not about a phase")                                         \
    X(QUEUED, 1, "before the task started")                                              \
    X(PROCESS, 2, "inside process, or as process returned")                              \
    X(HARD, 3, "its worker was killed: for a limit, a cancel or the close limit")        \
    X(KILL, 4, "the worker survived SIGKILL; the slot is quarantined")                   \
    X(SETUP, 5, "inside setup")                                                          \
    X(IDLE, 6, "between tasks")                                                          \
    X(CLEANUP, 7, "inside cleanup")

/* The kinds of events. */
#define GPUD_EVENT_MAP(X)                                                                \
    X(OUTCOME, 1, "a task ended")                                                        \
    X(PROGRESS, 2, "a running task reported progress")                                   \
    X(SETUP_FAILURE, 3, "a worker's setup failed, died or exceeded its limit")           \
    X(SLOT, 4, "a slot changed its state")                                               \
    X(CLEANUP_FAILURE, 5, "a worker's cleanup died or exceeded its limit")               \
    X(LOG, 6, "a log line of the library or of a worker")                                \
    X(DEVICE, 7,                                                                         \
      "a device changed health, lacks memory, or was added, drained, returned, removed") \
    X(STARTED, 8, "an attempt of a task started (option start_events)")                  \
    X(CLASS, 9,                                                                          \
      "pooled: a class was loaded, unloaded, paused or resumed, or has failed")          \
    X(PROMISE, 10,                                                                       \
      "pooled: the time by which a waiting task starts is known, or changed")            \
    X(GRANTED, 11, "external: a task may start, on the devices of the event")            \
    X(REVOKED, 12, "external: a grant is over, or a task is to end or to be killed")

/* The states of a slot. */
#define GPUD_SLOT_MAP(X)                                                                 \
    X(STOPPED, 0,                                                                        \
      "has no worker and wants none: closing, or its device is drained or removed")      \
    X(STARTING, 1, "a worker is being started or is inside setup")                       \
    X(READY, 2, "a worker waits for tasks")                                              \
    X(BUSY, 3, "a worker has tasks")                                                     \
    X(DRAINING, 4, "the worker finishes its running tasks, then its cleanup runs")       \
    X(BACKOFF, 5,                                                                        \
      "waits before the next start, or for canaries to bring its device back")           \
    X(FAILED, 6, "given up after several failures in a row")                             \
    X(QUARANTINED, 7,                                                                    \
      "its worker survived SIGKILL, or its device needs a reset or its access back")     \
    X(UNLOADING, 8, "pooled: the worker runs its cleanup, and another class may follow") \
    X(COOLING, 9, "pooled: the worker is gone, and its device's memory not yet free")

/* The health of a device.  A device that cannot be read is UNKNOWN, never HEALTHY. */
#define GPUD_HEALTH_MAP(X)                                                               \
    X(UNKNOWN, 0, "nothing is known of it now; it takes tasks")                          \
    X(HEALTHY, 1, "no known fault; it takes tasks")                                      \
    X(SUSPECT, 2, "takes tasks again once a canary has passed")                          \
    X(QUARANTINED, 3,                                                                    \
      "takes none until canaries pass: a new worker does not clear its fault")           \
    X(LOST, 4, "takes none: it has fallen off the bus")                                  \
    X(REVOKED, 5, "takes no new worker: access to it was revoked")

/* The levels of log lines. */
#define GPUD_LEVEL_MAP(X)                                                                \
    X(ERROR, 1, "something was lost or given up")                                        \
    X(WARNING, 2, "something unexpected was handled")                                    \
    X(INFO, 3, "a change of state worth a line")                                         \
    X(DEBUG, 4, "detail for finding a fault")

#define GPUD_X_OUTCOME(name, value, text) GPUD_OUTCOME_##name = value,
#define GPUD_X_PHASE(name, value, text) GPUD_PHASE_##name = value,
#define GPUD_X_EVENT(name, value, text) GPUD_EVENT_##name = value,
#define GPUD_X_SLOT(name, value, text) GPUD_SLOT_##name = value,
#define GPUD_X_LEVEL(name, value, text) GPUD_LEVEL_##name = value,
#define GPUD_X_HEALTH(name, value, text) GPUD_HEALTH_##name = value,
enum gpud_outcome { GPUD_OUTCOME_MAP(GPUD_X_OUTCOME) GPUD_OUTCOME_COUNT = 7 };
enum gpud_phase { GPUD_PHASE_MAP(GPUD_X_PHASE) GPUD_PHASE_COUNT = 8 };
enum gpud_event_kind { GPUD_EVENT_MAP(GPUD_X_EVENT) GPUD_EVENT_COUNT = 13 };
enum gpud_slot_state { GPUD_SLOT_MAP(GPUD_X_SLOT) GPUD_SLOT_COUNT = 10 };
enum gpud_level { GPUD_LEVEL_MAP(GPUD_X_LEVEL) GPUD_LEVEL_COUNT = 5 };
enum gpud_health { GPUD_HEALTH_MAP(GPUD_X_HEALTH) GPUD_HEALTH_COUNT = 6 };
#undef GPUD_X_OUTCOME
#undef GPUD_X_PHASE
#undef GPUD_X_EVENT
#undef GPUD_X_SLOT
#undef GPUD_X_LEVEL
#undef GPUD_X_HEALTH

/*
 * Selects the ends of an attempt after which a task is tried again: bits.
 *
 * While attempts are left, such an end is no outcome, and its result is dropped.  The
 * task waits (retry_backoff) and counts as queued meanwhile.  Then it returns to its
 * old place in the queue.  The library makes at most max_attempts attempts, which is 1
 * unless you set it.  The outcome is that of the last attempt, and its text describes
 * the ends of all attempts.
 *
 * A cancelled task is not tried again.  Neither is a task whose attempt ends after a
 * stop or close with RUNNING or NOW [C3].
 */
enum gpud_retry {
    GPUD_RETRY_CRASH = 1,   /* the worker died */
    GPUD_RETRY_ERROR = 2,   /* process returned a value other than 0, or called fail */
    GPUD_RETRY_TIMEOUT = 4, /* the attempt exceeded its limit, or its worker stop_limit */
    GPUD_RETRY_DEVICE = 8   /* the device failed under the task; cpu:N never does */
};

/*
 * Returns the name of an outcome, such as "SUCCESS".
 *
 * Returns: a constant string; "?" if outcome is no value of enum gpud_outcome.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_phase_name, gpud_event_format.
 * Example: examples/timeout.c
 */
GPUD_API const char *gpud_outcome_name(uint32_t outcome);

/*
 * Returns the name of a phase, such as "QUEUED".
 *
 * Returns: a constant string; "?" if phase is no value of enum gpud_phase.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_outcome_name.
 * Example: examples/timeout.c
 */
GPUD_API const char *gpud_phase_name(uint32_t phase);

/*
 * Returns the name of a kind of event, such as "PROGRESS".
 *
 * Returns: a constant string; "?" if kind is no value of enum gpud_event_kind.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_event_format.
 */
GPUD_API const char *gpud_event_name(uint32_t kind);

/*
 * Returns the name of a slot's state, such as "READY".
 *
 * Returns: a constant string; "?" if state is no value of enum gpud_slot_state.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_dispatcher_slots.
 * Example: examples/progress.c
 */
GPUD_API const char *gpud_slot_state_name(uint32_t state);

/*
 * Returns the name of a log level, such as "WARNING".
 *
 * Returns: a constant string; "?" if level is no value of enum gpud_level.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_worker_log, option log_level.
 */
GPUD_API const char *gpud_level_name(uint32_t level);

/*
 * Returns the name of a device's health, such as "HEALTHY".
 *
 * Returns: a constant string; "?" if health is no value of enum gpud_health.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_dispatcher_devices, gpud_monitor_read.
 */
GPUD_API const char *gpud_health_name(uint32_t health);

/* How a worker process ended. */
enum gpud_exit {
    GPUD_EXIT_NONE = 0,   /* it has not ended */
    GPUD_EXIT_CODE = 1,   /* by exit or _exit; exit_status is the code */
    GPUD_EXIT_SIGNAL = 2, /* by a signal; exit_status is its number */
    GPUD_EXIT_LOST = 3    /* its keeper died first, so the status is unknown */
};

/* The stream to which a worker wrote a line. */
enum gpud_stream {
    GPUD_STREAM_NONE = 0,   /* the event is no printed line */
    GPUD_STREAM_STDOUT = 1, /* standard output */
    GPUD_STREAM_STDERR = 2  /* standard error */
};

/* The slot number of an event that concerns no slot. */
#define GPUD_NO_SLOT UINT32_MAX

/*
 * One event: news for the host.
 *
 * The kind decides which fields have a meaning; all other fields are zero.  The library
 * lends the memory behind the pointers.  After poll it is valid until the next
 * gpud_dispatcher_poll on the same dispatcher; inside run, until the callback returns;
 * after gpud_dispatcher_wait or gpud_event_keep, until gpud_event_release.
 *
 * Sizes are bytes.  Points in time are nanoseconds of CLOCK_MONOTONIC.
 */
struct gpud_event {
    uint32_t struct_size;  /* set by GPUD_EVENT_INIT */
    uint32_t kind;         /* enum gpud_event_kind */
    /*
     * OUTCOME, PROGRESS, STARTED, PROMISE, GRANTED, REVOKED: the task.  LOG with a
     * stream: the task that ran, 0 = none.
     */
    uint64_t task_id;
    uint64_t tag;          /* of the task, as submitted */
    const char *label;     /* of the task, or "" */
    uint32_t outcome;      /* OUTCOME: enum gpud_outcome */
    uint32_t phase;        /* enum gpud_phase */
    /*
     * OUTCOME ERROR and SETUP_FAILURE: the value that your function returned or passed to
     * gpud_task_fail.  Otherwise, and where the library found the failure, a GPUD_E code,
     * which is negative, or 0.
     */
    int32_t code;
    /*
     * Attempts started, 0 = the task never started.  GRANTED, REVOKED: the number of the
     * grant.
     */
    uint32_t attempt;
    uint32_t slot;         /* the slot's number; GPUD_NO_SLOT when none */
    uint32_t incarnation;  /* which worker of the slot it was, from 1 */
    uint32_t slot_state;   /* SLOT: the enum gpud_slot_state that it entered */
    uint32_t level;        /* LOG: enum gpud_level */
    uint32_t exit_kind;    /* enum gpud_exit */
    int32_t exit_status;   /* exit code or signal number */
    double progress;       /* PROGRESS: 0..1 as reported */
    const char *text;      /* error text, progress text, log line; "" when none */
    /*
     * DEVICE: the name of the device.  GRANTED, REVOKED: the names of the grant's
     * devices.  Other kinds: the names of the slot's devices, or of those that external
     * work had, such as "cpu:0" or "cpu:0,cpu:1"; "" when none.
     */
    const char *device;
    /* OUTCOME: the result, also one that a failed or late task had set. */
    const void *result;
    uint64_t result_size;  /* bytes of result */
    /*
     * Bytes of the worker's stdout and stderr, not terminated.  OUTCOME: the bytes that
     * the host read in the attempt.  SETUP_FAILURE, CLEANUP_FAILURE: the bytes of the
     * worker.  At most the last 8 KiB; see enum gpud_stdio.
     */
    const char *output;
    uint64_t output_size;  /* bytes of output */
    uint64_t queued_at;    /* OUTCOME: when submit accepted the task */
    /* When the host last sent it to a worker, or it was granted; 0 = never. */
    uint64_t sent_at;
    uint64_t started_at;   /* when process was called, or the work began; 0 = never */
    uint64_t ended_at;     /* when that ended, or the host noticed the death */
    void *kept;            /* the library's own: not NULL while the event is kept */
    uint32_t device_health; /* DEVICE: the enum gpud_health that it has now */
    uint32_t xid;          /* DEVICE: the driver's fault number behind it, 0 = none */
    /*
     * DEVICE: the UUID of device.  GRANTED, REVOKED: the UUIDs of the devices, in the
     * order of device.  "" when none.
     */
    const char *device_uuid;
    /* OUTCOME: the worker's bytes before output, not terminated. */
    const char *output_before;
    uint64_t output_before_size; /* bytes; with output_size at most 8 KiB */
    uint32_t stream;       /* LOG: enum gpud_stream of a line (GPUD_STDIO_EVENTS) */
    uint32_t reserved;     /* 0 */
    /*
     * CLASS, and kinds about a task or a slot: the class, which is that of the slot's
     * last worker.  "" when none, and in a dispatcher that is not pooled.
     */
    const char *class_name;
    uint32_t class_change; /* CLASS: enum gpud_class_change */
    uint32_t reserved2;    /* 0 */
    /*
     * PROMISE: the task starts by this time, whatever comes behind it [S2].  On
     * CLOCK_MONOTONIC in ns; 0: no such time is known any more.
     */
    uint64_t starts_by;
    uint32_t promise;      /* PROMISE: enum gpud_promise */
    uint32_t reserved3;    /* 0 */
    uint32_t share;        /* GRANTED: of its device, in 1/10,000 */
    uint32_t revoked;      /* REVOKED: the reason, enum gpud_revoked */
    uint64_t memory;       /* GRANTED: bytes of each device; 0 = all of each device */
    /*
     * GRANTED: the longest time from its start to its end.  Unit: ns; GPUD_NEVER: any.
     */
    uint64_t limit;
    uint32_t revoke;       /* REVOKED: enum gpud_revoke */
    uint32_t variant;      /* GRANTED: of its request; 0 = the preferred one */
    /*
     * REVOKED: SOFT: it is to be killed then; HARD: it is given up then; BACK: when the
     * grant ended.  On CLOCK_MONOTONIC in ns; GPUD_NEVER: at no time.
     */
    uint64_t revoke_by;
    uint32_t cpus;         /* GRANTED: CPU slots */
    uint32_t attempts;     /* GRANTED: attempts that have ended, and were counted */
    uint64_t host_memory;  /* GRANTED: bytes of the machine's memory */
};

#define GPUD_EVENT_INIT                                                                  \
    { (uint32_t)sizeof(struct gpud_event), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
      0, 0, 0, 0, 0, 0, 0 }

/*
 * Formats an event of any kind as one line of text.
 *
 * The line is for people: its wording may change, and programs read the fields.
 * Examples:
 *
 *     task 17 "label" SUCCESS on slot 2 (cpu:2) in 0.013 s
 *     task 18 TIMEOUT, phase HARD, slot 0 (cpu:0), attempt 1, after 2.004 s: the text
 *     task 18 started on slot 1 (cpu:1), attempt 2
 *     slot 3 (cpu:3) SETUP_FAILURE, code 17, incarnation 2: no such model
 *     WARNING slot 1: the text
 *     INFO slot 1, stderr: a line that the worker printed
 *     class whisper FAILED: setup returned 17
 *     task 19 of class jobs GRANTED, attempt 1, on gpu:0,gpu:1, limit 60.000 s
 *     task 19 of class jobs REVOKED, attempt 1, SOFT, LIMIT, within 2.000 s
 *
 * The line has no line end, and each control character of a label or text becomes a
 * blank.  A line that does not fit is cut between two characters, also where they are
 * UTF-8.  Records of older headers are accepted.
 *
 * Parameters:
 *   event   the event
 *   buffer  receives the line and a 0 byte, as from snprintf; may be NULL if size is 0
 *   size    bytes of buffer, the 0 byte included; 0 only measures
 * Returns: the length of the whole line in bytes, without the 0 byte.
 * Errors:
 *   GPUD_EINVAL   event is NULL, or buffer is NULL and size is not 0
 *   GPUD_ESTRUCT  event->struct_size does not reach beyond tag, exceeds 4,096, or is not
 *                 a multiple of 8
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_outcome_name, gpud_event_name.
 * Example: examples/cuda/spectrogram/main.c
 */
GPUD_API int gpud_event_format(const struct gpud_event *event, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif
#endif
