/* SPDX-License-Identifier: MIT */
/*
 * worker.h - the code inside a worker: your functions, and the calls they may make.
 *
 * A definition names a `setup`, a `process` and a `cleanup`.  Each worker process calls
 * setup once, process once per task, and cleanup once when it ends in order.  All three
 * run on the worker's main thread, one at a time, with no lock held.  The worker is
 * another process than the host.  The host does not see memory that your functions write,
 * and they do not see changes that the host makes after gpud_init.
 *
 * Smallest use:
 *
 *     static int process(gpud_task *t, void *state)
 *     {
 *         return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
 *     }
 *
 * The mistake people make: keeping the result in a global variable and reading that in
 * the host.  The host receives only the bytes that process passes to
 * gpud_task_result_set, or writes into the memory of gpud_task_result_alloc.
 *
 * If one of the three functions crashes, calls exit or never returns, the host gets an
 * outcome or an event: CRASHED, TIMEOUT, SETUP_FAILURE or CLEANUP_FAILURE.  [C2]  The
 * keeper kills everything that the worker had started, and another worker takes its
 * place.  [C8]
 *
 * When the host finds that a worker has overwritten memory which it shares with the host,
 * the worker is killed:
 * - The task that the worker had claimed ends CRASHED, code GPUD_EPROTOCOL.  It is
 *   retried if max_attempts and retry_causes allow that.  After a second such end the
 *   task is CRASHED, even if attempts are left.
 * - If the worker overwrote the claims themselves, the host charges the first task that
 *   was sent and has not ended.  With batches it charges the first max_batch of these
 *   tasks, since one call cannot hold more.
 * - All other tasks go back to the queue.  This costs them no attempt.
 * - If the worker had not claimed any task yet, all tasks go back, and its end counts in
 *   failures_in_a_row.  [C2] [C3] [C17]
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
 *
 * Each worker calls setup exactly once, before its first task.  SIGALRM is blocked
 * inside.  Option setup_limit bounds the call: when it expires, the keeper kills the
 * worker.  The host then gets a SETUP_FAILURE with GPUD_ETIMEOUT, also if setup returns
 * before the kill arrives.
 *
 * Parameters:
 *   w          the worker
 *   ret_state  *ret_state is passed to process and cleanup; it is NULL until setup sets
 *              it
 * Returns: 0 when the worker is ready.  Any other value is a setup failure with that
 * code.  The text is that of gpud_worker_fail, else "setup returned 3", or the name and
 * sentence of a code of the library (-2 and below).
 * Thread: the main one of the worker.  Process: worker.  Since: 1.
 * See: gpud_worker_fail, gpud_worker_setup_data, options setup_limit, failures_in_a_row.
 * Example: examples/plugin.c
 */
typedef int(gpud_setup_fn)(gpud_worker *w, void **ret_state);

/*
 * Runs one task.
 *
 * The function never runs concurrently with itself in one worker.  At the task's limit
 * SIGALRM arrives at this thread, and gpud_task_expired returns 1.  When limit and grace
 * have expired, the keeper kills the worker.  A cancel interrupts process by SIGALRM,
 * too; gpud_task_cancelled then returns 1, and gpud_task_expired does not.  Only
 * GPUD_CANCEL_HARD kills, after grace.  [C6] [C7]
 *
 * On CPU slots and fakes a blocking call ends with EINTR at the limit, and again every
 * 50 ms.  On GPUs and MIG instances the signal arrives once, and calls that can be
 * restarted continue: wait for a stream with gpud_cuda_stream_sync, which ends at the
 * limit.  There a task also lasts until its devices have finished its work (option cuda):
 * the end of that work is the end of the task.
 *
 * A call of exit() in process is a crash: no atexit handler of the host runs.
 *
 * Parameters:
 *   t      the task; valid until process returns
 *   state  the pointer that setup stored in *ret_state
 * Returns: 0 for SUCCESS, any other value for ERROR.  The outcome's text is that of
 * gpud_task_fail, else "process returned 9".  For a code of the library (-2 and below)
 * the text is its name and sentence: "ERESULTSPACE: no room for the result in the
 * worker's share of the budget".
 * Thread: the main one of the worker.  Process: worker.  Since: 1.
 * See: gpud_task_data, gpud_task_result_set, gpud_task_fail, option task_limit.
 * Example: examples/hello.c
 */
typedef int(gpud_process_fn)(gpud_task *t, void *state);

/*
 * Undoes setup.
 *
 * The worker calls cleanup at most once, after its last task, and not after a crash.
 * SIGALRM is blocked inside.  Option cleanup_limit bounds the call: when it expires, the
 * keeper kills the worker, and the host gets a CLEANUP_FAILURE.
 *
 * Parameters:
 *   w      the worker
 *   state  the pointer that setup stored in *ret_state
 * Thread: the main one of the worker.  Process: worker.  Since: 1.
 * See: gpud_setup_fn, option cleanup_limit.
 * Example: examples/plugin.c
 */
typedef void(gpud_cleanup_fn)(gpud_worker *w, void *state);

/*
 * Runs several tasks in one call.
 *
 * A call gets 1 to max_batch tasks, its members, in the order in which the host sent
 * them.  All members start as the call begins.  Each member has its own outcome: call
 * gpud_task_fail for the members that failed.  Results and progress are each member's
 * own, too.
 *
 * The limit of the call is the earliest limit of its members.  Its stall limit is the
 * shortest one, and progress of any member counts for all.  gpud_task_deadline and
 * gpud_task_expired refer to the call, gpud_task_cancelled refers to the member.  When
 * the call returns, the members past their own limit are TIMEOUT, the remaining ones are
 * not.
 *
 * If the worker dies in the call, or the keeper kills it for the limit or the cancel of
 * one member, all members are charged.  The members that may be retried are retried one
 * by one.  [C2] [C7]
 *
 * Parameters:
 *   tasks  the members; valid until the call returns
 *   n      the number of members, 1 or more
 *   state  the pointer that setup stored in *ret_state
 * Returns: 0, or a value that fails every member for which gpud_task_fail was not called.
 * Thread: the main one of the worker.  Process: worker.  Since: 1.
 * See: gpud_process_fn, options max_batch, batch_wait.
 * Example: examples/batching.c
 */
typedef int(gpud_process_batch_fn)(gpud_task *const *tasks, size_t n, void *state);

/* A definition: the functions of a worker, which gpud_init records under a name. */
struct gpud_definition {
    uint32_t struct_size;     /* set by GPUD_DEFINITION */
    uint32_t reserved;        /* 0 */
    const char *name;         /* 1 to 63 bytes, copied; unique in one gpud_init */
    gpud_setup_fn *setup;     /* may be NULL */
    gpud_process_fn *process; /* required, unless there is process_batch */
    gpud_cleanup_fn *cleanup; /* may be NULL */
    /*
     * May be NULL.  Workers call it in place of process where max_batch is above 1, or
     * where there is no process.
     */
    gpud_process_batch_fn *process_batch;
};

/* Initialises a struct gpud_definition whose workers run one task at a time. */
#define GPUD_DEFINITION(name, setup, process, cleanup)                                   \
    { (uint32_t)sizeof(struct gpud_definition), 0, (name), (setup), (process),           \
      (cleanup), NULL }
/* Initialises a struct gpud_definition whose workers run batches. */
#define GPUD_DEFINITION_BATCH(name, setup, process_batch, cleanup)                       \
    { (uint32_t)sizeof(struct gpud_definition), 0, (name), (setup), NULL, (cleanup),     \
      (process_batch) }

/* ---- the task: valid until process returns ---- */

/*
 * Returns the address of a task's bytes.
 *
 * Returns: the address of the bytes of t, read-only and aligned to 64.  It is not NULL,
 * also if the size is 0.
 * Owns: lends the bytes until process returns.
 * Thread: the thread of process.  Process: worker.  Since: 1.
 * See: gpud_task_size.
 * Example: examples/hello.c
 */
GPUD_API const void *gpud_task_data(const gpud_task *t);

/*
 * Returns the size of a task's bytes.
 *
 * Returns: the number of bytes of t, 0 or more.
 * Thread: the thread of process.  Process: worker.  Since: 1.
 * See: gpud_task_data.
 * Example: examples/epoll.c
 */
GPUD_API size_t gpud_task_size(const gpud_task *t);

/*
 * Returns the label that the host attached to a task.
 *
 * Returns: the label of t, or "".
 * Owns: lends the label until process returns.
 * Thread: the thread of process.  Process: worker.  Since: 1.
 * See: struct gpud_task_desc.
 */
GPUD_API const char *gpud_task_label(const gpud_task *t);

/*
 * Returns the id of a task, the same as in the host.
 *
 * Returns: the id of t, never 0.
 * Thread: the thread of process.  Process: worker.  Since: 1.
 * See: gpud_dispatcher_submit.
 */
GPUD_API uint64_t gpud_task_id(const gpud_task *t);

/*
 * Returns the tag that the host attached to a task.
 *
 * Returns: the tag of t.
 * Thread: the thread of process.  Process: worker.  Since: 1.
 * See: struct gpud_task_desc.
 * Example: examples/progress.c
 */
GPUD_API uint64_t gpud_task_tag(const gpud_task *t);

/*
 * Returns the number of the attempt that is running, from 1.
 *
 * Returns: the attempt of t: 1, or more after a retry.
 * Thread: the thread of process.  Process: worker.  Since: 1.
 * See: options max_attempts, retry_causes.
 * Example: examples/retry.c
 */
GPUD_API uint32_t gpud_task_attempt(const gpud_task *t);

/*
 * Returns the worker that runs a task.
 *
 * Returns: the worker of t, never NULL.
 * Thread: the thread of process.  Process: worker.  Since: 1.
 * See: gpud_worker_device, gpud_worker_log.
 * Example: examples/device_sets.c
 */
GPUD_API gpud_worker *gpud_task_worker(gpud_task *t);

/*
 * Returns the time at which a task's limit expires.
 *
 * The stall limit is not in it, and neither is time during which the worker was stopped.
 * In a batch it is the deadline of the call.
 *
 * Returns: the deadline of t in nanoseconds of CLOCK_MONOTONIC, or GPUD_NEVER.
 * Thread: the thread of process.  Process: worker.  Since: 1.
 * See: gpud_task_expired, option task_limit.
 */
GPUD_API uint64_t gpud_task_deadline(const gpud_task *t);

/*
 * Returns 1 once the limit or the stall limit of a task has expired, else 0.
 *
 * Returns: 1 or 0.  In a batch it is the limit of the call, not that of t alone.
 * Thread: any of the worker's.  Process: worker.  Since: 1.
 * See: gpud_task_cancelled, gpud_task_deadline, option stall_limit.
 * Example: examples/timeout.c
 */
GPUD_API int gpud_task_expired(const gpud_task *t);

/*
 * Returns 1 once the host has cancelled a task, else 0.
 *
 * Returns: 1 or 0.  In a batch it refers to the member t alone.
 * Thread: any of the worker's.  Process: worker.  Since: 1.
 * See: gpud_dispatcher_cancel, gpud_task_expired.
 * Example: examples/cuda/spectrogram/spectrum_cpu.c
 */
GPUD_API int gpud_task_cancelled(const gpud_task *t);

/*
 * Reports to the host how far a task is.
 *
 * A call costs a store, and at most one message that the host has not read yet: call it
 * freely.  If calls arrive faster than the host reads, the host gets the latest one.
 * With a stall limit the call also counts as a sign of life, and reads the clock.
 *
 * Parameters:
 *   t         the task
 *   fraction  the part of the work that is done, from 0 to 1
 *   text      up to 95 bytes, a longer text is cut; may be NULL
 * Returns: 0.
 * Errors:
 *   GPUD_EINVAL  fraction is not in 0..1; nothing has changed
 * Owns: copies text.
 * Thread: the thread of process.  Process: worker.  Since: 1.
 * See: gpud_dispatcher_slots, option stall_limit.
 * Example: examples/progress.c
 */
GPUD_API int gpud_task_progress(gpud_task *t, double fraction, const char *text);

/*
 * Makes a copy of some bytes the result of a task, in place of an earlier result.
 *
 * Parameters:
 *   t     the task
 *   data  the bytes; may be NULL if size is 0
 *   size  the number of bytes; results of up to 4 KiB always have room
 * Returns: 0.  On failure the earlier result stays.
 * Errors:
 *   GPUD_ERESULTSPACE  the worker's share of the payload budget, or the machine's memory,
 *                      has no room for size bytes.  Return this code from process: the
 *                      task ends ERROR with it
 *   GPUD_EINVAL        data is NULL and size is not 0
 * Owns: borrows data until the call returns.
 * Waits: not at all, or for room, as option result_wait decides.
 * Thread: the thread of process.  Process: worker.  Since: 1.
 * See: gpud_task_result_alloc, options payload_budget, result_wait.
 * Example: examples/hello.c
 */
GPUD_API int gpud_task_result_set(gpud_task *t, const void *data, size_t size);

/*
 * Lends memory for a result, to be written in place of an earlier result.
 *
 * Nothing is copied on the way to the host if the result is larger than 4 KiB.  The bytes
 * start out undefined.
 *
 * Parameters:
 *   t         the task
 *   size      the number of bytes; results of up to 4 KiB always have room
 *   ret_data  receives the address to write to
 * Returns: 0 and *ret_data.  On failure the earlier result stays.
 * Errors:
 *   GPUD_ERESULTSPACE  the worker's share of the payload budget has no size bytes to
 *                      lend, or machine or memory cgroup is short of memory
 *   GPUD_EINVAL        ret_data is NULL
 * Owns: lends *ret_data until process returns.
 * Waits: as gpud_task_result_set does.
 * Thread: the thread of process.  Process: worker.  Since: 1.
 * See: gpud_task_result_set, options payload_budget, result_wait.
 * Example: examples/tinybatch.c
 */
GPUD_API int gpud_task_result_alloc(gpud_task *t, size_t size, void **ret_data);

/*
 * Makes a task end as ERROR once process returns, no matter which value it returns.
 *
 * Parameters:
 *   t     the task
 *   code  the outcome's code; 0 becomes -1
 *   text  the outcome's text: up to 255 bytes, a longer text is cut; may be NULL
 * Returns: the code, so that `return gpud_task_fail(t, 7, "no such file");` reads well.
 * Owns: copies text.
 * Thread: the thread of process.  Process: worker.  Since: 1.
 * See: gpud_process_fn, gpud_worker_fail.
 * Example: examples/progress.c
 */
GPUD_API int gpud_task_fail(gpud_task *t, int code, const char *text);

/* ---- the worker: valid as long as its process ---- */

/*
 * Returns the number of a worker's slot, from 0.
 *
 * Returns: the slot of w.
 * Thread: any of the worker.  Process: worker.  Since: 1.
 * See: gpud_worker_incarnation, gpud_worker_seed.
 * Example: examples/device_sets.c
 */
GPUD_API uint32_t gpud_worker_slot(const gpud_worker *w);

/*
 * Returns which worker of its slot a worker is, from 1.
 *
 * Returns: the incarnation of w: 1 for the first worker of the slot.
 * Thread: any of the worker.  Process: worker.  Since: 1.
 * See: gpud_worker_slot.
 */
GPUD_API uint32_t gpud_worker_incarnation(const gpud_worker *w);

/*
 * Returns the names of a worker's devices, comma-separated.
 *
 * Returns: the names of the devices of w: "cpu:0", or "cpu:0,cpu:1" with option
 * devices_per_worker.
 * Owns: lends the string as long as the worker lives.
 * Thread: any of the worker.  Process: worker.  Since: 1.
 * See: gpud_worker_device_at, gpud_worker_device_uuid.
 * Example: examples/cuda/crash-course/main.c
 */
GPUD_API const char *gpud_worker_device(const gpud_worker *w);

/*
 * Returns how many devices a worker owns.
 *
 * Returns: the number of devices of w, 1 or more: option devices_per_worker.
 * Thread: any of the worker.  Process: worker.  Since: 1.
 * See: gpud_worker_device_at.
 * Example: examples/device_sets.c
 */
GPUD_API uint32_t gpud_worker_device_count(const gpud_worker *w);

/*
 * Returns the name of one of a worker's devices.
 *
 * Returns: the name of device number i of w, from 0, in the order of the list; NULL if w
 * has no device i.
 * Owns: lends the string as long as the worker lives.
 * Thread: any of the worker.  Process: worker.  Since: 1.
 * See: gpud_worker_device_count, gpud_worker_device_uuid.
 * Example: examples/device_sets.c
 */
GPUD_API const char *gpud_worker_device_at(const gpud_worker *w, uint32_t i);

/*
 * Returns the UUID of one of a worker's devices.
 *
 * Returns: the UUID of device number i of w, from 0: "GPU-..." or "MIG-...", for a CPU
 * slot its name; NULL if w has no device i.
 * Owns: lends the string as long as the worker lives.
 * Thread: any of the worker.  Process: worker.  Since: 1.
 * See: gpud_worker_device_at.
 */
GPUD_API const char *gpud_worker_device_uuid(const gpud_worker *w, uint32_t i);

/*
 * Returns the seed of a worker: option seed plus the slot's number.
 *
 * Returns: the seed of w, the same for every worker of a slot.
 * Thread: any of the worker.  Process: worker.  Since: 1.
 * See: gpud_worker_slot, option seed.
 */
GPUD_API uint64_t gpud_worker_seed(const gpud_worker *w);

/*
 * Returns the address of the setup data: the bytes of option setup_data or setup_shared.
 *
 * Parameters:
 *   w         the worker
 *   ret_size  receives the number of bytes, 0 if there is no setup data; may be NULL
 * Returns: the address of the bytes, read-only and aligned to 64.
 * Owns: lends the bytes as long as the worker lives.
 * Thread: any of the worker.  Process: worker.  Since: 1.
 * See: options setup_data, setup_shared, gpud_shared_create.
 * Example: examples/plugin.c
 */
GPUD_API const void *gpud_worker_setup_data(const gpud_worker *w, size_t *ret_size);

/*
 * Sends one log line to the host, which gets it as a LOG event.
 * While 16 lines of the worker wait for the host, further lines are dropped and counted
 * in events_dropped.  The host makes an event of a line up to level log_level.
 *
 * Parameters:
 *   w      the worker
 *   level  enum gpud_level; any other value counts as GPUD_LEVEL_INFO
 *   text   up to 199 bytes, a longer text is cut
 * Owns: copies text.
 * Thread: the main one of the worker.  Process: worker.  Since: 1.
 * See: option log_level.
 */
GPUD_API void gpud_worker_log(gpud_worker *w, uint32_t level, const char *text);

/*
 * Records why setup fails; the text arrives with the SETUP_FAILURE event.
 *
 * The call itself does not fail setup: return its value from setup.  A worker whose setup
 * returns 0 is ready all the same.
 *
 * Parameters:
 *   w     the worker
 *   code  the code to return; 0 becomes -1
 *   text  up to 255 bytes, a longer text is cut; may be NULL
 * Returns: the code, so that `return gpud_worker_fail(w, 1, "no model");` reads well.
 * Owns: copies text.
 * Thread: the main one of the worker.  Process: worker.  Since: 1.
 * See: gpud_setup_fn, gpud_task_fail.
 * Example: examples/plugin.c
 */
GPUD_API int gpud_worker_fail(gpud_worker *w, int code, const char *text);

#ifdef __cplusplus
}
#endif
#endif
