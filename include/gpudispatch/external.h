/* SPDX-License-Identifier: MIT */
/*
 * external.h - work that the host runs itself, on devices that a dispatcher grants.
 *
 * A class with residence GPUD_EXTERNAL has no workers.  The dispatcher decides when and
 * where each of its tasks runs, beside the workers of other classes.  The host runs the
 * task: a command, a container, a server, or a thread of its own.
 *
 *     event GRANTED               the task may start, on the devices of the event
 *     gpud_dispatcher_started     it runs
 *     gpud_dispatcher_ended       it has ended, and its devices are free
 *     event OUTCOME               as of any task
 *
 * Before the start a grant may come back, by gpud_dispatcher_decline, or by an event
 * REVOKED.  Then the task waits at its old place, and no attempt is counted.  If three
 * grants in a row are not started within setup_limit, it ends NO_WORKER.
 *
 * After the start an event REVOKED requests that the host ends the task, and later that
 * it kills it.  The dispatcher itself ends and kills nothing: [C2], [C8] and [C11] are up
 * to the host.  [C1], [C4] to [C7] and [C10] hold.
 *
 * For a class of commands set a short setup_limit, such as 10 s, within which the host
 * surely reads an event.  The default is 15 min, and until the start promises (sched.h)
 * count on it.
 *
 * An attempt is named by the number in its event GRANTED.  The numbers of a task only
 * rise.  A call with another number fails with GPUD_ENOTFOUND and changes nothing, so a
 * late call does no harm.                                                          [S4]
 *
 *     if (event.kind == GPUD_EVENT_GRANTED) {
 *         struct gpud_proc proc = GPUD_PROC_INIT;
 *         proc.pid = run_command(event.tag, event.device_uuid);
 *         if (gpud_dispatcher_started(d, event.task_id, event.attempt, &proc, NULL))
 *             kill_command(proc.pid);
 *     }
 *
 * The mistake people make: they do not call gpud_dispatcher_ended for a task that has
 * its outcome already.  Its devices stay out of use until then.  If one is removed and
 * added again, only the memory that the task has there stays out of use.
 *
 * Stability: stable (appending only).
 */
#ifndef GPUDISPATCH_EXTERNAL_H
#define GPUDISPATCH_EXTERNAL_H

#include "dispatch.h"
#include "error.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The reasons of an event REVOKED, each with the requests that it may have.
 *
 * - LIMIT, STALL: SOFT, then HARD.  HARD alone, if the grace has expired before the host
 *   reads SOFT, or before it adopts the task: the grace counts from the limit.
 * - CANCEL: SOFT, then HARD (gpud_dispatcher_cancel).  Also for work of a class that is
 *   removed with GPUD_FINISH_NOW.
 * - DRAIN: BACK.  Work that has started goes on.
 * - DEVICE: BACK, or HARD alone.
 * - CLOSE: SOFT, then HARD.  HARD alone at the limit of the close, whichever SOFT came
 *   before.
 * - START: BACK.
 *
 * After BACK the task waits again.  A task that ends before its start has only the event
 * OUTCOME, which ends its grant, too: cancelled, expired, closed, or NO_WORKER.
 */
#define GPUD_REVOKED_MAP(X)                                                              \
    X(NONE, 0, "the event is none of REVOKED")                                           \
    X(LIMIT, 1, "its time limit has passed")                                             \
    X(STALL, 2, "it reported no progress for stall_limit")                               \
    X(CANCEL, 3, "the host has cancelled it")                                            \
    X(DRAIN, 4, "its device or class starts nothing now: paused, drained or removed")    \
    X(DEVICE, 5, "its device has failed")                                                \
    X(CLOSE, 6, "the dispatcher ends")                                                   \
    X(START, 7, "it was not started within setup_limit")
#define GPUD_X_REVOKED(name, value, text) GPUD_REVOKED_##name = value,
enum gpud_revoked { GPUD_REVOKED_MAP(GPUD_X_REVOKED) GPUD_REVOKED_COUNT = 8 };
#undef GPUD_X_REVOKED

/* The requests of an event REVOKED. */
enum gpud_revoke {
    GPUD_REVOKE_SOFT = 0, /* end it; it is to be killed at revoke_by */
    GPUD_REVOKE_HARD = 1, /* kill it; the dispatcher stops waiting at revoke_by */
    GPUD_REVOKE_BACK = 2  /* do not start it: the grant is over */
};

/*
 * Returns the name of a reason, such as "STALL".
 *
 * Returns: a constant string; "?" if revoked is no value of enum gpud_revoked.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_event_format.
 */
GPUD_API const char *gpud_revoked_name(uint32_t revoked);

/* The processes that run a task. */
struct gpud_proc {
    uint32_t struct_size; /* set by GPUD_PROC_INIT */
    /*
     * A process, with all its descendants: the memory that they have of a GPU is the
     * task's, and not foreign.  0: none is known.
     */
    uint32_t pid;
    uint32_t session;     /* a session (setsid), the same; 0 = none */
    uint32_t reserved;    /* 0 */
    /*
     * When the task started.  Its limits count from then on.
     * Default: [now].  Range: from its event GRANTED to now.  Unit: ns of
     * CLOCK_MONOTONIC.
     */
    uint64_t started_at;
};

/* The initial value of a struct gpud_proc: no process, started now. */
#define GPUD_PROC_INIT { (uint32_t)sizeof(struct gpud_proc), 0, 0, 0, 0 }

/* The end of a task, as the host saw it. */
struct gpud_end {
    uint32_t struct_size;   /* set by GPUD_END_INIT */
    /* GPUD_OUTCOME_SUCCESS, GPUD_OUTCOME_ERROR or GPUD_OUTCOME_CRASHED. */
    uint32_t outcome;
    /*
     * Of the event OUTCOME.  0 with SUCCESS, a positive one with ERROR.  With CRASHED it
     * may be 0, for GPUD_ECRASHED, or positive.
     */
    int32_t code;
    uint32_t exit_kind;     /* enum gpud_exit */
    int32_t exit_status;    /* exit code or signal number */
    uint32_t reserved;      /* 0 */
    /*
     * When it ended.  The time decides whether its limit was kept, not the time of this
     * call [C7].
     * Default: [now].  Range: from its start to now.  Unit: ns of CLOCK_MONOTONIC.
     */
    uint64_t ended_at;
    const char *text;       /* for the event OUTCOME, up to 255 bytes; NULL = none */
    const void *result;     /* for the event OUTCOME; NULL = none */
    uint64_t result_size;   /* bytes of result, at most 64 MiB */
    const char *output;     /* the bytes that it printed, not terminated; NULL = none */
    uint64_t output_size;   /* bytes of output: the last 8 KiB count */
};

/* The initial value of a struct gpud_end: no outcome yet. */
#define GPUD_END_INIT                                                                    \
    { (uint32_t)sizeof(struct gpud_end), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* A task that runs already, for gpud_dispatcher_adopt. */
struct gpud_adoption {
    uint32_t struct_size; /* set by GPUD_ADOPTION_INIT */
    uint32_t attempt;     /* the number of its grant, 1 to 2^31 - 1 */
    /*
     * Attempts that had ended before, and were counted: attempts of its event GRANTED.
     * Default: 0.  Range: 0 to 254, less than attempt.
     */
    uint32_t attempts;
    /*
     * With 1 its outcome is out: it only holds the devices until gpud_dispatcher_ended,
     * and gets no event.
     */
    uint32_t given_up;
    const char *devices;  /* UUIDs or names, separated by commas; NULL = none */
    uint32_t share;       /* of its device, in 1/10,000; 0 = the whole device */
    uint32_t cpus;        /* CPU slots */
    uint64_t memory;      /* bytes of each device; 0 = unknown: all of each device */
    uint64_t host_memory; /* bytes of the machine's memory */
    const struct gpud_proc *proc; /* NULL = none is known, and started now */
};

/* The initial value of a struct gpud_adoption: nothing yet. */
#define GPUD_ADOPTION_INIT                                                               \
    { (uint32_t)sizeof(struct gpud_adoption), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/*
 * Reports that a granted task runs.
 *
 * From now on its limit and stall_limit hold.  If a call fails with GPUD_ENOTFOUND, the
 * grant is over: the host must end the work that it has begun.
 *
 * Parameters:
 *   d        the dispatcher
 *   task_id  the task
 *   attempt  the number in its event GRANTED
 *   proc     its processes; NULL = none is known, and it started now
 *   reterr   receives the reason of a failure, may be NULL
 * Returns: 0.  On failure nothing has changed.
 * Errors:
 *   GPUD_ENOTFOUND  no grant of task_id has this number, or it has started already
 *   GPUD_EINVAL     d is NULL or not pooled, or proc.started_at is not in its range
 *   GPUD_ESTRUCT    proc.struct_size is not a valid size
 *   GPUD_EVERSION   proc is of a later version and uses a field that this library does
 *                   not know
 *   GPUD_EREENTER   this process is a worker, and d belongs to the host
 *   GPUD_EFORKED    d belongs to the parent of this forked process
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_ended, gpud_dispatcher_decline, option setup_limit.
 */
GPUD_API int gpud_dispatcher_started(gpud_dispatcher *d, uint64_t task_id,
                                     uint32_t attempt, const struct gpud_proc *proc,
                                     struct gpud_error *reterr);

/*
 * Returns a grant that was not started.
 *
 * The task returns to its old place, and no attempt is counted.  It gets no other grant
 * before not_before.
 *
 * Parameters:
 *   d           the dispatcher
 *   task_id     the task
 *   attempt     the number in its event GRANTED
 *   not_before  ns of CLOCK_MONOTONIC; 0: at once
 *   reterr      receives the reason of a failure, may be NULL
 * Returns: 0.  On failure nothing has changed.
 * Errors:
 *   GPUD_ENOTFOUND  no grant of task_id has this number, or it has started
 *   GPUD_EINVAL     d is NULL or not pooled, or not_before is GPUD_NEVER
 *   GPUD_EREENTER   this process is a worker, and d belongs to the host
 *   GPUD_EFORKED    d belongs to the parent of this forked process
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_started, gpud_dispatcher_cancel.
 */
GPUD_API int gpud_dispatcher_decline(gpud_dispatcher *d, uint64_t task_id,
                                     uint32_t attempt, uint64_t not_before,
                                     struct gpud_error *reterr);

/*
 * Reports the progress of a task that has started.
 *
 * It is for stall_limit, and for gpud_dispatcher_stats.  An event PROGRESS reports it to
 * other threads, if there is room.
 *
 * Parameters:
 *   d         the dispatcher
 *   task_id   the task
 *   attempt   the number in its event GRANTED
 *   fraction  from 0 to 1
 *   text      up to 255 bytes; NULL = none
 *   reterr    receives the reason of a failure, may be NULL
 * Returns: 0.  On failure nothing has changed.
 * Errors:
 *   GPUD_ENOTFOUND  no grant of task_id has this number, or it has not started, or its
 *                   outcome is out
 *   GPUD_EINVAL     d is NULL or not pooled, or fraction is not in its range
 *   GPUD_EREENTER   this process is a worker, and d belongs to the host
 *   GPUD_EFORKED    d belongs to the parent of this forked process
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: option stall_limit.
 */
GPUD_API int gpud_dispatcher_progress(gpud_dispatcher *d, uint64_t task_id,
                                      uint32_t attempt, double fraction,
                                      const char *text, struct gpud_error *reterr);

/*
 * Reports that a task has ended, and that its devices are free.
 *
 * Call it when all its processes are gone, not only the first one: the next task gets the
 * devices at once.  If a command cannot be started, end its grant with ERROR, which
 * counts as an attempt, or decline it with a later not_before, which does not.
 *
 * The dispatcher judges the end:
 * - A task that ended after its limit is TIMEOUT.                                  [C7]
 * - CRASHED after an event REVOKED, HARD, counts as that kill: TIMEOUT or CANCELLED with
 *   phase HARD, or CRASHED with code GPUD_EDEVICE.
 * - SUCCESS before its limit stays SUCCESS, also after an event REVOKED, SOFT.
 * - A task that ended after GPUD_CANCEL_HARD is CANCELLED, and so is ERROR or CRASHED
 *   after GPUD_CANCEL_SOFT.
 * Another attempt follows by the task's max_attempts and retry_causes.
 *
 * A task that had not ended by the kill limit has its outcome already, with phase KILL.
 * Then the call frees its devices, and makes no second outcome.  A grant that was not
 * started may end, too: it counts as started.
 *
 * Parameters:
 *   d        the dispatcher
 *   task_id  the task
 *   attempt  the number in its event GRANTED
 *   end      how it has ended
 *   reterr   receives the reason of a failure, may be NULL
 * Returns: 0.  On failure nothing has changed.
 * Errors:
 *   GPUD_ENOTFOUND  no grant of task_id has this number, or it has ended already
 *   GPUD_EINVAL     d is NULL or not pooled, or end is NULL, or a field of end is not in
 *                   its range
 *   GPUD_ETOOBIG    end.result_size is more than 64 MiB
 *   GPUD_ESTRUCT    end.struct_size is not a valid size
 *   GPUD_EVERSION   end is of a later version and uses a field that this library does not
 *                   know
 *   GPUD_ENOMEM     no memory for the texts or the result
 *   GPUD_EREENTER   this process is a worker, and d belongs to the host
 *   GPUD_EFORKED    d belongs to the parent of this forked process
 * Owns: copies everything that end points to.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_started, gpud_task_desc.max_attempts.
 */
GPUD_API int gpud_dispatcher_ended(gpud_dispatcher *d, uint64_t task_id,
                                   uint32_t attempt, const struct gpud_end *end,
                                   struct gpud_error *reterr);

/*
 * Takes over a task that runs already, as a host finds it when it starts again.
 *
 * The task counts as accepted, granted and started.  It is booked also where it has more
 * of a device than that has: then the device gets no other work until it has room.  An
 * event REVOKED, HARD, follows at once on a device that is out of use, and for work whose
 * limit and grace have expired.  If only the limit has expired, REVOKED, SOFT, follows.
 *
 * Begin with the tasks that run: create the dispatcher, add the external class, adopt all
 * of them, add the other classes, and then submit.
 *
 * A task that waited for its next attempt did not run: submit it, with the attempts that
 * it has left as max_attempts.  The numbers of its grants begin at 1 again.
 *
 * Parameters:
 *   d         the dispatcher
 *   task      the task, as for gpud_dispatcher_submit; its class is external
 *   adoption  its devices, and since when it runs
 *   ret_id    receives the id of the task
 *   reterr    receives field, value and bound of a failure, may be NULL
 * Returns: 0 and *ret_id.  On failure nothing has changed.
 * Errors:
 *   GPUD_EINVAL         d, task, adoption or ret_id is NULL, or d is not pooled.  Or a
 *                       field of task is one that gpud_dispatcher_submit refuses, or its
 *                       class is not external.  Or a field of adoption or of its proc is
 *                       not in its range
 *   GPUD_EDEVICE        d has no device of a name or UUID in adoption.devices
 *   GPUD_ENODEFINITION  d has no class with the name in task.class_name
 *   GPUD_EFULL          queue_size tasks are accepted and not delivered, or max_workers
 *                       workers and external tasks of d run.  Or task.request is the
 *                       1,025th different one
 *   GPUD_ECLOSED        intake of d has ended, or the class of task is being removed
 *   GPUD_ELABEL         task.label has more than 63 bytes
 *   GPUD_ESTRUCT        the struct_size of task, adoption or adoption.proc is not a valid
 *                       size
 *   GPUD_EVERSION       one of them is of a later version and uses a field that this
 *                       library does not know
 *   GPUD_EREENTER       this process is a worker, and d belongs to the host
 *   GPUD_EFORKED        d belongs to the parent of this forked process
 * Owns: copies everything.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_ended, gpud_dispatcher_submit.
 */
GPUD_API int gpud_dispatcher_adopt(gpud_dispatcher *d, const struct gpud_task_desc *task,
                                   const struct gpud_adoption *adoption, uint64_t *ret_id,
                                   struct gpud_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
