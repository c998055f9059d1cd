/* SPDX-License-Identifier: MIT */
/*
 * dispatch.h - the host's side: make a dispatcher, give it tasks, learn how each
 * one ended.
 *
 * Life: gpud_init (first thing in main) -> gpud_dispatcher_create -> run, or submit
 * and poll -> close -> destroy -> gpud_fini.  Costs: one tiny process for the program
 * (the spawner), one tiny process (the keeper) and one worker process per slot.
 *
 * Guarantees, by id: every accepted task gets exactly one outcome, delivered exactly
 * once [C1]; only a task that had been claimed and had not ended is charged with its
 * worker's death [C2]; start order is FIFO within a priority, and every idle worker
 * gets one task before any gets a second [C5]; if the host dies in any way, every
 * worker and everything it started is gone within 1 s [C11]; no signal disposition,
 * mask, directory, environment or stdio of the host is changed, and no child of the
 * host is waited for but our own [C13]; memory is bounded [C18] and nothing remains
 * after destroy [C19].
 *
 * Smallest use:
 *
 *     static const struct gpud_definition defs[] = {
 *         GPUD_DEFINITION("echo", NULL, process, NULL) };
 *     int main(void)
 *     {
 *         gpud_dispatcher *d = NULL;
 *         struct gpud_options o = GPUD_OPTIONS_INIT;
 *         if (gpud_init(defs, 1, NULL)) return 1;
 *         o.definition = "echo"; o.devices = "cpu:4";
 *         if (gpud_dispatcher_create(&d, &o, NULL)) return 1;
 *         gpud_dispatcher_run(d, source, &callbacks, NULL, NULL);
 *         gpud_dispatcher_destroy(&d, NULL);
 *         gpud_fini();
 *     }
 *
 * The mistake people make: loading the model, or starting threads, before gpud_init.
 * Workers are forked from the program as it was at gpud_init: keep it early and small.
 *
 * Stability: stable (appending only).
 */
#ifndef GPUDISPATCH_DISPATCH_H
#define GPUDISPATCH_DISPATCH_H

#include "error.h"
#include "types.h"
#include "worker.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Records the definitions and forks the spawner.
 * Call it once, early in main: after option parsing, daemonising and dropping
 * privileges, before threads, CUDA and big allocations.
 * Returns: 0; GPUD_EINVAL (no definition, a bad or doubled name, no process
 * function), GPUD_EVERSION (struct_size is of a later version), GPUD_EBUSY when already
 * initialised in this process, GPUD_ENOMEM, GPUD_ESYSTEM; on failure nothing has changed.
 * Owns: copies the array and the names.  Thread: one, early.  Process: host.  Since: 1.
 */
GPUD_API int gpud_init(const struct gpud_definition *definitions, size_t n, struct gpud_error *reterr);

/*
 * Ends the spawner and forgets the definitions.  Dispatchers must be destroyed first.
 * Returns: 0, also when not initialised; GPUD_EBUSY while a dispatcher lives, nothing
 * has changed.  In a process forked from the host it only frees.
 * Thread: one.  Process: host.  Since: 1.
 */
GPUD_API int gpud_fini(void);

/* Who drives when no thread of yours is inside poll or run. */
enum gpud_drive {
    GPUD_DRIVE_THREAD = 0, /* a library thread takes over after 1 ms (the default) */
    GPUD_DRIVE_CALLER = 1  /* nobody: limits and restarts happen inside your calls only */
};

/* How far to finish: for stop and close. */
enum gpud_finish {
    GPUD_FINISH_ALL = 0,     /* accept no more; all accepted tasks end by themselves */
    GPUD_FINISH_RUNNING = 1, /* as ALL, but what has not started ends CANCELLED */
    GPUD_FINISH_NOW = 2      /* as RUNNING, and what runs is cancelled too */
};

/* Options of a dispatcher.  Zero means the default given in brackets. */
struct gpud_options {
    uint32_t struct_size;
    uint32_t drive;              /* enum gpud_drive */
    const char *definition;      /* name given to gpud_init [the only one, if there is only one] */
    const char *devices;         /* "cpu:N" or "cpu:N/K" (K workers per device), comma-separated ["cpu:1"] */
    uint32_t queue_size;         /* tasks accepted and not yet delivered [1,024], at most 1,048,576 */
    uint32_t sent_ahead;         /* tasks at a worker, the running one included, 1..64
                                    [2, and up to 64 while the mean run time is below 0.5 ms] */
    uint64_t payload_budget;     /* bytes of shared memory for task data and results
                                    [a quarter of what machine or memory cgroup has left] */
    const void *setup_data;      /* bytes every worker sees in setup; copied */
    uint64_t setup_size;
    uint64_t seed;               /* base for gpud_worker_seed */
    uint64_t setup_limit;        /* [15 min] */
    uint64_t task_limit;         /* for tasks that name none [GPUD_NEVER] */
    uint64_t grace;              /* between a task's limit and the kill [2 s] */
    uint64_t cleanup_limit;      /* [10 s] */
    uint64_t close_limit;        /* from close or destroy until everything is killed [30 s] */
    uint64_t kill_limit;         /* a killed worker still there after this is given up [10 s] */
    uint64_t backoff;            /* wait before a failed slot's next start, doubling [1 s] */
    uint64_t backoff_cap;        /* longest such wait [60 s] */
    uint32_t failures_in_a_row;  /* then the slot is FAILED [3] */
    uint32_t max_attempts;       /* for tasks that name none; only crashes are tried again [1] */
    uint32_t log_level;          /* lines up to this level become LOG events [GPUD_LEVEL_INFO] */
    uint32_t slot_events;        /* 1 = each change of a slot's state is a SLOT event, but for READY <-> BUSY [0] */
};

#define GPUD_OPTIONS_INIT \
    { (uint32_t)sizeof(struct gpud_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/*
 * Makes a dispatcher and begins to start its workers; does not wait for setup.
 * Returns: 0 and *ret_d; GPUD_EINVAL, GPUD_EVERSION, GPUD_ENOINIT, GPUD_EFORKED,
 * GPUD_ENODEFINITION, GPUD_EDEVICE, GPUD_ECREDS, GPUD_ESPAWNER, GPUD_ETOOBIG (setup bytes
 * or queue_size do not fit the payload budget), GPUD_ENOMEM, GPUD_ESYSTEM; on failure *ret_d is untouched and nothing has changed.
 * Owns: copies what options point to; gives *ret_d, ended with destroy.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_create(gpud_dispatcher **ret_d, const struct gpud_options *options,
                                    struct gpud_error *reterr);

/* A task to be.  Zero means the default given in brackets. */
struct gpud_task_desc {
    uint32_t struct_size;
    int32_t priority;      /* higher starts first; equal ones in order of submission */
    const void *data;      /* copied, or a buffer of gpud_dispatcher_buffer_alloc: then taken */
    uint64_t size;
    const char *label;     /* up to 63 bytes, copied; shown in stats and events */
    uint64_t tag;          /* yours; comes back with each event */
    uint64_t limit;        /* time limit of one attempt [option task_limit] */
    uint32_t max_attempts; /* starts at most; only crashes are tried again [option max_attempts] */
    uint32_t cost;         /* relative cost, for the ETA only [1] */
};

#define GPUD_TASK_DESC_INIT { (uint32_t)sizeof(struct gpud_task_desc), 0, 0, 0, 0, 0, 0, 0, 0 }

/*
 * Hands one task over.
 * When queue or budget is full it answers at once (wait 0) or blocks up to `wait`
 * nanoseconds for room (GPUD_NEVER: until there is).  With DRIVE_CALLER a blocked
 * submit waits for another thread to drive.
 * Returns: 0 and *ret_id (never reused; ret_id may be NULL); GPUD_EFULL, GPUD_ECLOSED,
 * GPUD_EINVAL, GPUD_ETOOBIG, GPUD_EVERSION, GPUD_ENOMEM, GPUD_EFORKED; GPUD_EREENTER for
 * a wait inside a callback; on failure nothing has been taken.
 * Owns: copies data and label; takes a buffer of buffer_alloc, on success only.
 * Thread: any.  From callbacks: with wait 0.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_submit(gpud_dispatcher *d, const struct gpud_task_desc *task, uint64_t wait,
                                    uint64_t *ret_id, struct gpud_error *reterr);

/*
 * Lends memory that workers see, so that submit copies nothing.
 * Write the payload there, then submit with data = that address (size may be smaller).
 * Returns: 0 and *ret_data, aligned to 64; GPUD_EFULL when the budget is used up,
 * GPUD_ETOOBIG when it never fits, GPUD_EINVAL for size 0, GPUD_EFORKED.
 * Owns: gives *ret_data, until a submit takes it or buffer_free.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_buffer_alloc(gpud_dispatcher *d, uint64_t size, void **ret_data);

/* Gives back a buffer that no submit has taken.  NULL is fine.  Returns: 0; GPUD_EINVAL; GPUD_EFORKED. */
GPUD_API int gpud_dispatcher_buffer_free(gpud_dispatcher *d, void *data);

/*
 * Drives, and fills `events` with what has happened, oldest first.
 * Waits up to `wait` nanoseconds for the first event (0: not at all; GPUD_NEVER: until
 * one comes).  events[0].struct_size says how long one record is for the caller.
 * At most 256 events a call.  What the events point to is lent until the next poll.
 * Returns: the number filled, 0 when `wait` passed; GPUD_EEND when closed and all has been
 * delivered; GPUD_EBUSY, GPUD_EINVAL, GPUD_EREENTER (in a callback), GPUD_EFORKED.
 * Thread: one at a time.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_poll(gpud_dispatcher *d, struct gpud_event *events, size_t n, uint64_t wait);

/*
 * Gives run the next tasks.
 * Fill up to n records (they come in as GPUD_TASK_DESC_INIT) and return how many; 0 is the end, a
 * negative value a failure: run ends with GPUD_ESOURCE once all results are in.
 * What they point to must stay until the next call.  Runs in the host, on the feeder
 * thread of run, never concurrent with itself, no lock held; it may block, which
 * delays neither dispatch nor limits.  May call submit, cancel, stop and stats.
 */
typedef int(gpud_source_fn)(struct gpud_task_desc *tasks, size_t n, void *user);

/*
 * Receives one event.  Runs in the host on the thread inside run, one at a time, no lock
 * held; while it runs, dispatch and limits go on if drive is THREAD.  May call submit with
 * wait 0, cancel, stop and stats.  Return 0 to go on; any other value stops the run as
 * GPUD_FINISH_RUNNING does, and run returns it once all results are in.
 */
typedef int(gpud_event_fn)(const struct gpud_event *event, void *user);

struct gpud_callbacks {
    uint32_t struct_size;
    uint32_t task_size;              /* of a record as the source knows it */
    gpud_event_fn *on_success;       /* outcome SUCCESS */
    gpud_event_fn *on_error;         /* ERROR, CRASHED, CANCELLED, NO_WORKER */
    gpud_event_fn *on_timeout;       /* TIMEOUT [on_error] */
    gpud_event_fn *on_setup_failure; /* event SETUP_FAILURE [on_event] */
    gpud_event_fn *on_event;         /* every other event */
    void (*unblock)(void *user);     /* called once when the run stops early, on run's thread, so that
                                        a source that blocks can be woken; may be NULL */
};

#define GPUD_CALLBACKS_INIT \
    { (uint32_t)sizeof(struct gpud_callbacks), (uint32_t)sizeof(struct gpud_task_desc), 0, 0, 0, 0, 0, 0 }

/*
 * Pulls tasks from `source` until it ends, and delivers every event until all tasks have
 * ended.  Backpressure: the source is asked only while there is room.  The workers stay:
 * run may be called again.
 * Returns: 0; the value of a source or callback that failed; GPUD_ESTOPPED after stop or
 * close by somebody; GPUD_EBUSY, GPUD_EINVAL, GPUD_EREENTER, GPUD_ECLOSED, GPUD_EFORKED,
 * GPUD_ENOMEM, GPUD_ESYSTEM.  In every case but the last seven each task that was pulled has
 * had its outcome delivered.
 * Thread: one at a time.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_run(gpud_dispatcher *d, gpud_source_fn *source,
                                 const struct gpud_callbacks *callbacks, void *user,
                                 struct gpud_error *reterr);

/*
 * Cancels one task.  Queued: it ends CANCELLED at once.  Running: gpud_task_cancelled becomes
 * true and SIGALRM interrupts it; after the grace the worker is killed.  A task whose process had
 * returned before this call keeps that outcome, one that returns later ends CANCELLED.
 * Returns: 0; GPUD_ENOTFOUND when no live task has this id; GPUD_EFORKED.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_cancel(gpud_dispatcher *d, uint64_t task_id, uint32_t how);

/*
 * Asks the dispatcher to finish (how: enum gpud_finish).  Later calls may only ask for more haste.
 * Async-signal-safe: this is what a SIGINT handler calls.
 * Returns: 0; GPUD_EINVAL; GPUD_EFORKED.
 * Thread: any, also signal handlers.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_stop(gpud_dispatcher *d, uint32_t how);

/*
 * Ends intake (how: enum gpud_finish) and sets when it must be over.  Does not wait: poll until
 * GPUD_EEND to collect what is left.  After `limit` nanoseconds (0: option close_limit; GPUD_NEVER) what still
 * runs is killed and ends CANCELLED.
 * Returns: 0; GPUD_EINVAL; GPUD_EFORKED.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_close(gpud_dispatcher *d, uint32_t how, uint64_t limit);

/*
 * Ends the dispatcher: as close with GPUD_FINISH_NOW where close was not called, then waits until the
 * workers are gone and frees everything; *d becomes NULL.  Returns within the close limit, also
 * when a worker cannot be killed.  Outcomes that nobody collected are counted in *ret_uncollected
 * (may be NULL).                                                       [C1] [C10] [C19]
 * Returns: 0, also for NULL; GPUD_EBUSY while a thread is inside poll or run, GPUD_EREENTER in a callback: nothing has changed.
 * In a process forked from the host it only closes and frees.
 * Thread: one.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_destroy(gpud_dispatcher **d, uint64_t *ret_uncollected);

#ifdef __cplusplus
}
#endif
#endif
