/* SPDX-License-Identifier: MIT */
/*
 * worker.h - what runs inside a worker process: your three functions, and what
 * they may ask of the library.
 *
 * A definition names a `setup`, a `process` and a `cleanup`.  Each worker
 * process calls setup once, process once per task, cleanup once when it ends in
 * order.  All three run on the worker's main thread, one at a time, with no lock
 * held.  They run in another process than the host: memory written there is not
 * seen by the host, and what the host changes after gpud_init is not seen there.
 *
 * Smallest use:
 *
 *     static int process(gpud_task *t, void *state)
 *     {
 *         return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
 *     }
 *
 * The mistake people make: keeping the result in a global variable and looking
 * for it in the host.  Only bytes given to gpud_task_result_set or written into
 * gpud_task_result_alloc travel.
 *
 * If one of the three crashes, calls exit, or never returns, the host is told
 * (CRASHED, TIMEOUT, SETUP_FAILURE, CLEANUP_FAILURE), everything the worker had
 * started is killed, and another worker takes its place.            [C2] [C8]
 *
 * When the host finds that a worker has overwritten memory which it shares with the host,
 * the worker is killed.  The task that it had claimed ends CRASHED, code GPUD_EPROTOCOL; or
 * it is tried again, if max_attempts and retry_causes allow that, but after a second such
 * end it is CRASHED whatever attempts are left.  If the claims themselves are overwritten,
 * the first task that was sent and has not ended is charged; with batches the first
 * max_batch of these, since no more can be in one call.  The other tasks go back to the
 * queue, attempts unchanged.  If the worker had not claimed any task yet, all go back, and
 * its end counts in failures_in_a_row.                                   [C2] [C3] [C17]
 *
 * Stability: stable (appending only).
 */
#ifndef GPUDISPATCH_WORKER_H
#define GPUDISPATCH_WORKER_H

#include "error.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Prepares one worker: loads the model, opens the device.
 * `*ret_state` is handed to process and cleanup.  Return 0 when ready; any other
 * value is a setup failure with that code, and with the text of gpud_worker_fail or
 * "setup returned 3".  Called exactly once per worker.
 * Bounded by setup_limit: then the worker is killed, a SETUP_FAILURE with GPUD_ETIMEOUT,
 * also if setup returns before the kill arrives.  SIGALRM is blocked inside.
 */
typedef int(gpud_setup_fn)(gpud_worker *w, void **ret_state);

/*
 * Runs one task.  Return 0 for SUCCESS, any other value for ERROR.  The outcome's text is
 * that of gpud_task_fail, else "process returned 9", or for a code of the library (-2 and
 * below) its name and sentence: "ERESULTSPACE: no room for the result in the worker's
 * share of the budget".
 * Never concurrent with itself in one worker.  At the task's limit SIGALRM is
 * delivered to this thread and gpud_task_expired becomes true; past limit + grace the worker is killed.
 * Blocking calls end with EINTR, and again every 50 ms.  On GPUs and MIG instances the signal comes once and
 * calls that can go on do: wait for a stream with gpud_cuda_stream_sync, which ends at the limit.
 * There, too, the task lasts until its devices have finished (option cuda): its end is the end of that.
 * exit() in here is a crash: no atexit handler of the host runs.   [C6] [C7]
 */
typedef int(gpud_process_fn)(gpud_task *t, void *state);

/*
 * Undoes setup.  Called at most once, after the last task, not after a crash.
 * Bounded by cleanup_limit (the worker is killed).
 */
typedef void(gpud_cleanup_fn)(gpud_worker *w, void *state);

/*
 * Runs several tasks in one call: 1 to option max_batch, in order of sending; all of them start as it is
 * called.  Each keeps its own outcome: call gpud_task_fail on those that failed; a value other
 * than 0 fails all that have not said otherwise.  Results and progress are each member's own.
 * The limit of the call is the earliest member's, and so is its stall limit (progress of any member
 * counts for all): gpud_task_deadline and gpud_task_expired tell of the call, gpud_task_cancelled of the member. When
 * it returns, those past their own limit are TIMEOUT, the others are not.  When the worker dies in here, or is
 * killed for one member's limit or cancel, all members are charged; those that may be tried again are
 * tried one by one.                                                          [C2] [C7]
 */
typedef int(gpud_process_batch_fn)(gpud_task *const *tasks, size_t n, void *state);

/* What gpud_init records under a name. */
struct gpud_definition {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name;         /* up to 63 bytes; copied */
    gpud_setup_fn *setup;     /* may be NULL */
    gpud_process_fn *process; /* required, unless there is process_batch */
    gpud_cleanup_fn *cleanup; /* may be NULL */
    gpud_process_batch_fn *process_batch; /* may be NULL; called in place of process where max_batch is above 1 or there is no process */
};

#define GPUD_DEFINITION(name, setup, process, cleanup) \
    { (uint32_t)sizeof(struct gpud_definition), 0, (name), (setup), (process), (cleanup), NULL }
#define GPUD_DEFINITION_BATCH(name, setup, process_batch, cleanup) \
    { (uint32_t)sizeof(struct gpud_definition), 0, (name), (setup), NULL, (cleanup), (process_batch) }

/* ---- the task: valid until process returns; Thread: the one in process; Process: worker ---- */

/* Gives the task's bytes, read-only, aligned to 64; not NULL, also for a size of 0. */
GPUD_API const void *gpud_task_data(const gpud_task *t);
/* Gives the number of the task's bytes. */
GPUD_API size_t gpud_task_size(const gpud_task *t);
/* Gives the label the host attached, or "". */
GPUD_API const char *gpud_task_label(const gpud_task *t);
/* Gives the task's id as the host knows it. */
GPUD_API uint64_t gpud_task_id(const gpud_task *t);
/* Gives the tag the host attached. */
GPUD_API uint64_t gpud_task_tag(const gpud_task *t);
/* Gives the number of this attempt, from 1. */
GPUD_API uint32_t gpud_task_attempt(const gpud_task *t);
/* Gives the worker that runs this task. */
GPUD_API gpud_worker *gpud_task_worker(gpud_task *t);
/* Gives the time at which the task's limit passes, or GPUD_NEVER; its stall limit is not in it. */
GPUD_API uint64_t gpud_task_deadline(const gpud_task *t);
/* Tells whether the limit, or the stall limit, has passed: 1 or 0.  May be called from any thread of the worker. */
GPUD_API int gpud_task_expired(const gpud_task *t);
/* Tells whether the host asked to cancel this task: 1 or 0.  May be called from any thread. */
GPUD_API int gpud_task_cancelled(const gpud_task *t);

/*
 * Tells the host how far the task is.
 * `fraction` from 0 to 1; `text` NULL or up to 95 bytes (longer is cut).  Costs a
 * store and at most one frame that the host has not consumed yet: call it freely.
 * When calls come faster than the host looks, it sees the latest.
 * With a stall limit the call also counts as a sign of life, and costs a look at the clock.
 * Returns: 0; GPUD_EINVAL when fraction is not in 0..1, nothing has changed.
 */
GPUD_API int gpud_task_progress(gpud_task *t, double fraction, const char *text);

/*
 * Makes a copy of `size` bytes the task's result, in place of an earlier one.
 * Returns: 0; GPUD_ERESULTSPACE when the worker's share of the payload budget has no
 * room (return it from process: the task ends ERROR with that code), GPUD_EINVAL
 * when data is NULL and size is not 0; on failure the earlier result stays.
 * Does not wait, or waits for room as option result_wait says.
 * Owns: borrows data until it returns.
 */
GPUD_API int gpud_task_result_set(gpud_task *t, const void *data, size_t size);

/*
 * Lends room for a result of `size` bytes, to be written in place (nothing is
 * copied on the way to the host when it is larger than 4 KiB), in place of an
 * earlier result.  The bytes start out undefined.
 * Returns: 0 and the address in *ret_data; or as gpud_task_result_set.
 * Owns: lends *ret_data until process returns.  Waits as gpud_task_result_set does.
 */
GPUD_API int gpud_task_result_alloc(gpud_task *t, size_t size, void **ret_data);

/*
 * Ends the task as ERROR with this code and text once process returns, whatever it returns.
 * `text` NULL or up to 255 bytes (longer is cut).  code 0 is taken as -1.
 * Returns: the code, so that `return gpud_task_fail(t, 7, "no such file");` reads well.
 */
GPUD_API int gpud_task_fail(gpud_task *t, int code, const char *text);

/* ---- the worker: valid for its whole life; Process: worker ---- */

/* Gives the number of the slot, from 0. */
GPUD_API uint32_t gpud_worker_slot(const gpud_worker *w);
/* Gives which life of the slot this is, from 1. */
GPUD_API uint32_t gpud_worker_incarnation(const gpud_worker *w);
/* Gives the names of the worker's devices, comma-separated: "cpu:0", or "cpu:0,cpu:1" with option devices_per_worker. */
GPUD_API const char *gpud_worker_device(const gpud_worker *w);
/* Gives how many devices the worker owns, from 1: option devices_per_worker. */
GPUD_API uint32_t gpud_worker_device_count(const gpud_worker *w);
/* Gives the name of device number i, from 0, in the order of the list; NULL when there are not so many. */
GPUD_API const char *gpud_worker_device_at(const gpud_worker *w, uint32_t i);
/* Gives the UUID of device number i: "GPU-...", "MIG-..."; of a CPU slot its name; NULL when there are not so many. */
GPUD_API const char *gpud_worker_device_uuid(const gpud_worker *w, uint32_t i);
/* Gives the option seed plus the slot number: the same for each life of a slot. */
GPUD_API uint64_t gpud_worker_seed(const gpud_worker *w);
/* Gives the setup bytes of the options (read-only, aligned to 64), size in *ret_size. */
GPUD_API const void *gpud_worker_setup_data(const gpud_worker *w, size_t *ret_size);

/*
 * Sends one log line to the host as a LOG event (level: enum gpud_level).
 * Up to 199 bytes, longer is cut; dropped and counted when 16 lines wait unseen.
 */
GPUD_API void gpud_worker_log(gpud_worker *w, uint32_t level, const char *text);

/*
 * Records why setup fails; the text arrives with the SETUP_FAILURE event.
 * Returns: the code (0 is taken as -1), so that `return gpud_worker_fail(w, ...)` reads well.
 */
GPUD_API int gpud_worker_fail(gpud_worker *w, int code, const char *text);

#ifdef __cplusplus
}
#endif
#endif
