/* SPDX-License-Identifier: MIT */
/*
 * types.h - the words everything else uses: handles, outcomes, events.
 *
 * House units: time is uint64_t nanoseconds of CLOCK_MONOTONIC, the same clock
 * in host and workers (GPUD_S(30) is 30 s); sizes are bytes.  Struct records begin
 * with struct_size, set to sizeof by the ..._INIT macro (or by hand from other
 * languages); fields are only ever appended and zero means the default.
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

/* Times in nanoseconds: GPUD_S(30) is 30 s.  n is an integer, 0 or more: half a second is
 * GPUD_MS(500), and GPUD_S(0.5) does not compile.  Results are uint64_t. */
#define GPUD_US(n) ((uint64_t)((n) | 0) * 1000u)
#define GPUD_MS(n) ((uint64_t)((n) | 0) * 1000000u)
#define GPUD_S(n) ((uint64_t)((n) | 0) * 1000000000u)

/* No limit; a wait that only its event ends. */
#define GPUD_NEVER UINT64_MAX

/* No time at all, for the options grace, backoff, backoff_cap, retry_backoff,
 * retry_backoff_cap, canary_backoff, canary_backoff_cap, memory_wait and batch_wait,
 * where 0 is the default. */
#define GPUD_AT_ONCE ((uint64_t)1)

/* Handles.  Host side: */
typedef struct gpud_dispatcher gpud_dispatcher;
typedef struct gpud_shared gpud_shared; /* memory that all workers map read-only */
/* Worker side; valid only inside the callback that received them: */
typedef struct gpud_worker gpud_worker;
typedef struct gpud_task gpud_task;

/* How an accepted task ended: exactly one of these, exactly once.    [C1] */
#define GPUD_OUTCOME_MAP(X)                                                              \
    X(SUCCESS, 1, "process returned 0 in time")                                          \
    X(ERROR, 2, "process returned another value or called gpud_task_fail")               \
    X(TIMEOUT, 3, "the task passed its time limit")                                      \
    X(CRASHED, 4, "its worker died while it ran")                                        \
    X(CANCELLED, 5, "the host cancelled it")                                             \
    X(NO_WORKER, 6, "no slot is left to run it")

/* In which phase of its life a task ended.  HARD and KILL tell how a limit was
 * enforced: HARD, the worker was killed; KILL, it survived SIGKILL.   [C10] */
#define GPUD_PHASE_MAP(X)                                                                \
    X(NONE, 0, "not about a task's life")                                                \
    X(QUEUED, 1, "not started yet")                                                      \
    X(PROCESS, 2, "inside process, or as process returned")                              \
    X(HARD, 3, "its worker was killed: for a limit, a cancel or the end")                \
    X(KILL, 4, "the worker survived SIGKILL; the slot is quarantined")                   \
    X(SETUP, 5, "inside setup")                                                          \
    X(IDLE, 6, "between tasks")                                                          \
    X(CLEANUP, 7, "inside cleanup")

/* What an event tells. */
#define GPUD_EVENT_MAP(X)                                                                \
    X(OUTCOME, 1, "a task ended")                                                        \
    X(PROGRESS, 2, "a running task reported progress")                                   \
    X(SETUP_FAILURE, 3, "a worker's setup failed, died or passed its limit")             \
    X(SLOT, 4, "a slot changed its state")                                               \
    X(CLEANUP_FAILURE, 5, "a worker's cleanup died or passed its limit")                 \
    X(LOG, 6, "a log line of the library or of a worker")                                \
    X(DEVICE, 7, "a device changed its health, lacks memory, or was added, drained, returned or removed")

/* The states of a slot. */
#define GPUD_SLOT_MAP(X)                                                                 \
    X(STOPPED, 0, "has no worker and wants none: closing, or its device is drained or removed") \
    X(STARTING, 1, "a worker is being started or is inside setup")                       \
    X(READY, 2, "a worker waits for tasks")                                              \
    X(BUSY, 3, "a worker has tasks")                                                     \
    X(DRAINING, 4, "the worker ends what it runs, then its cleanup runs")                \
    X(BACKOFF, 5, "waiting before the next start, or for canaries to bring its device back") \
    X(FAILED, 6, "given up after several failures in a row")                             \
    X(QUARANTINED, 7, "its worker survived SIGKILL, or its device takes none until it is reset or given back")

/* How a device is.  What cannot be read is UNKNOWN, never HEALTHY. */
#define GPUD_HEALTH_MAP(X)                                                               \
    X(UNKNOWN, 0, "nothing is known of it now; it takes tasks")                          \
    X(HEALTHY, 1, "nothing speaks against it")                                           \
    X(SUSPECT, 2, "takes tasks again once a canary has passed")                          \
    X(QUARANTINED, 3, "takes none until canaries pass: it has a fault that a new worker does not clear") \
    X(LOST, 4, "takes none: it has fallen off the bus")                                  \
    X(REVOKED, 5, "takes no new worker: access to it was taken away")

#define GPUD_LEVEL_MAP(X)                                                                \
    X(ERROR, 1, "something was lost or given up")                                        \
    X(WARNING, 2, "something unexpected was handled")                                    \
    X(INFO, 3, "a change of state worth a line")                                         \
    X(DEBUG, 4, "detail for whoever hunts a fault")

#define GPUD_X_OUTCOME(name, value, text) GPUD_OUTCOME_##name = value,
#define GPUD_X_PHASE(name, value, text) GPUD_PHASE_##name = value,
#define GPUD_X_EVENT(name, value, text) GPUD_EVENT_##name = value,
#define GPUD_X_SLOT(name, value, text) GPUD_SLOT_##name = value,
#define GPUD_X_LEVEL(name, value, text) GPUD_LEVEL_##name = value,
#define GPUD_X_HEALTH(name, value, text) GPUD_HEALTH_##name = value,
enum gpud_outcome { GPUD_OUTCOME_MAP(GPUD_X_OUTCOME) GPUD_OUTCOME_COUNT = 7 };
enum gpud_phase { GPUD_PHASE_MAP(GPUD_X_PHASE) GPUD_PHASE_COUNT = 8 };
enum gpud_event_kind { GPUD_EVENT_MAP(GPUD_X_EVENT) GPUD_EVENT_COUNT = 8 };
enum gpud_slot_state { GPUD_SLOT_MAP(GPUD_X_SLOT) GPUD_SLOT_COUNT = 8 };
enum gpud_level { GPUD_LEVEL_MAP(GPUD_X_LEVEL) GPUD_LEVEL_COUNT = 5 };
enum gpud_health { GPUD_HEALTH_MAP(GPUD_X_HEALTH) GPUD_HEALTH_COUNT = 6 };
#undef GPUD_X_OUTCOME
#undef GPUD_X_PHASE
#undef GPUD_X_EVENT
#undef GPUD_X_SLOT
#undef GPUD_X_LEVEL
#undef GPUD_X_HEALTH

/*
 * The short names above as text ("SUCCESS", "QUEUED", "PROGRESS", "READY").
 * Returns: a constant string; "?" for an unknown value.
 * Thread: any.  Process: either.  Since: 1.
 */
GPUD_API const char *gpud_outcome_name(uint32_t outcome);
GPUD_API const char *gpud_phase_name(uint32_t phase);
GPUD_API const char *gpud_event_name(uint32_t kind);
GPUD_API const char *gpud_slot_state_name(uint32_t state);
GPUD_API const char *gpud_level_name(uint32_t level);
GPUD_API const char *gpud_health_name(uint32_t health);

/* GPUD_EXIT_...: how a worker process ended. */
enum gpud_exit {
    GPUD_EXIT_NONE = 0,   /* it did not */
    GPUD_EXIT_CODE = 1,   /* by exit or _exit; exit_status is the code */
    GPUD_EXIT_SIGNAL = 2, /* by a signal; exit_status is its number */
    GPUD_EXIT_LOST = 3    /* its keeper died first, the status is unknown */
};

/* GPUD_STREAM_...: what a worker wrote a line to. */
enum gpud_stream {
    GPUD_STREAM_NONE = 0, /* the event is no such line */
    GPUD_STREAM_STDOUT = 1,
    GPUD_STREAM_STDERR = 2
};

/* Slot number of an event that concerns none. */
#define GPUD_NO_SLOT UINT32_MAX

/*
 * One thing the host learns.  Which fields carry meaning depends on kind; the
 * others are zero.  Pointers are lent until the next gpud_dispatcher_poll on
 * the same dispatcher, or until the callback returns inside run; after
 * gpud_dispatcher_wait or gpud_event_keep, until gpud_event_release.
 */
struct gpud_event {
    uint32_t struct_size;
    uint32_t kind;         /* enum gpud_event_kind */
    uint64_t task_id;      /* OUTCOME, PROGRESS; LOG with a stream: the running one, 0 = none */
    uint64_t tag;          /* of the task, as submitted */
    const char *label;     /* of the task, or "" */
    uint32_t outcome;      /* OUTCOME: enum gpud_outcome */
    uint32_t phase;        /* enum gpud_phase */
    int32_t code;          /* OUTCOME ERROR, SETUP_FAILURE: value of the callback or of fail; else a GPUD_E code, < 0, or 0 */
    uint32_t attempt;      /* attempts started, 0 = never started */
    uint32_t slot;         /* GPUD_NO_SLOT when none */
    uint32_t incarnation;  /* which life of the slot's worker */
    uint32_t slot_state;   /* SLOT: enum gpud_slot_state entered */
    uint32_t level;        /* LOG: enum gpud_level */
    uint32_t exit_kind;    /* enum gpud_exit */
    int32_t exit_status;   /* exit code or signal number */
    double progress;       /* PROGRESS: 0..1 as reported */
    const char *text;      /* error text, progress text, log line; "" when none */
    const char *device;    /* names of the slot's devices, such as "cpu:0" or "cpu:0,cpu:1"; "" when none */
    const void *result;    /* OUTCOME: result bytes, also those a failed or late task had set */
    uint64_t result_size;
    const char *output;    /* bytes of the worker's stdout and stderr, at most the last 8 KiB, not
                              terminated.  OUTCOME: those that the host read in the attempt;
                              SETUP_FAILURE, CLEANUP_FAILURE: of the worker; see enum gpud_stdio */
    uint64_t output_size;
    uint64_t queued_at;    /* OUTCOME: accepted by submit */
    uint64_t sent_at;      /* last sent to a worker, 0 = never */
    uint64_t started_at;   /* process called, 0 = never */
    uint64_t ended_at;     /* process returned, or the death was seen */
    void *kept;            /* the library's: set by wait and gpud_event_keep, until gpud_event_release */
    uint32_t device_health; /* DEVICE: enum gpud_health it has now */
    uint32_t xid;          /* DEVICE: the driver's fault number behind it, 0 = none */
    const char *device_uuid; /* DEVICE: of the device that event field `device` names; "" when none */
    const char *output_before; /* OUTCOME: the worker's bytes before `output`, not terminated */
    uint64_t output_before_size; /* with output_size at most 8 KiB */
    uint32_t stream;       /* LOG: enum gpud_stream of a printed line (GPUD_STDIO_EVENTS) */
    uint32_t reserved;     /* 0 */
};

#define GPUD_EVENT_INIT \
    { (uint32_t)sizeof(struct gpud_event), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
      0, 0, 0, 0, 0, 0, 0, 0 }

/*
 * Formats an event of any kind as one line of text, such as
 *     task 17 "label" SUCCESS on slot 2 (cpu:2) in 0.013 s
 *     task 18 TIMEOUT, phase HARD, slot 0 (cpu:0), attempt 1, after 2.004 s: the text
 *     slot 3 (cpu:3) SETUP_FAILURE, code 17, incarnation 2: no such model
 *     WARNING slot 1: the text
 *     INFO slot 1, stderr: a line that the worker printed
 * The line is for people: its wording may change, programs read the fields.  It holds no
 * line end.  Each control character of a label or text becomes a blank.
 * Writes up to `size` bytes, the last of them 0, as snprintf does.  A line that does not fit
 * is cut between two characters, also where they are UTF-8.  NULL with size 0 only measures.
 * Returns: the length of the whole line without the 0; GPUD_EINVAL (event is NULL, or buffer
 * is NULL and size is not 0), GPUD_ESTRUCT.  Records of older headers are fine.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 */
GPUD_API int gpud_event_format(const struct gpud_event *event, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif
#endif
