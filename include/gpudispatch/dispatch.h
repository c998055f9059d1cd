/* SPDX-License-Identifier: MIT */
/*
 * dispatch.h - the host's side: create dispatchers, submit tasks, collect outcomes.
 *
 * The host is the program that has work to do.  It records definitions (worker.h): the
 * functions that workers run.  A dispatcher starts one worker process per slot, sends
 * the tasks to them, enforces time limits and replaces workers that die.  The host
 * receives one outcome for each task that the dispatcher has accepted.
 *
 * The calls of a program, in their order:
 *
 *     gpud_init                 first in main: records definitions, forks the spawner
 *     gpud_dispatcher_create    starts the workers
 *     gpud_dispatcher_run       pulls tasks from a source and calls you for each event,
 *                               or: submit tasks, and poll or wait for their outcomes
 *     gpud_dispatcher_close     ends intake
 *     gpud_dispatcher_destroy   waits for the workers, frees everything
 *     gpud_fini                 ends the spawner
 *
 * Costs: one tiny process for the program (the spawner), and for each slot one tiny
 * process (the keeper) and one worker process.
 *
 * Every call that can fail returns a negative code of error.h, and has then changed
 * nothing.  There are two exceptions: gpud_dispatcher_submit_many may have accepted the
 * first tasks, and gpud_dispatcher_run may have run tasks.  Times are nanoseconds, sizes
 * are bytes.  A parameter `reterr` receives the reason of a failure as text and may be
 * NULL.
 *
 * Guarantees, by id:
 * - Every accepted task gets exactly one outcome, delivered exactly once [C1].
 * - A worker's death is charged only to a task that the worker had claimed and that had
 *   not ended [C2].
 * - Within a priority the host sends tasks in order of submission, or of their own order
 *   (gpud_task_desc.order).  Every idle worker
 *   gets one task before any worker gets a second.  A task that was sent ahead to a
 *   worker in a long task returns to its place in the queue.  It may then start after
 *   later tasks.  sent_ahead = 1 keeps a strict order of starts; tasks sent at the same
 *   moment to two workers start side by side [C5].
 * - If the host dies in any way, every worker, and every process that a worker has
 *   started, is gone within 1 s [C11].
 * - The library changes no signal disposition, signal mask, directory, environment or
 *   stdio of the host.  It waits only for its own children [C13].
 * - Memory is bounded [C18].  Nothing of a dispatcher remains after destroy,
 *   nothing of the library after gpud_fini [C19].
 * - Idle processes do not wake up, with three exceptions.  The keeper of a stopped
 *   worker wakes up once a second until stop_limit.  A worker polls for its next task
 *   before it sleeps: for up to 30 us after a batch of 4 or more, for up to 100 us
 *   after setup.  Its alarm may ring once after its last task with a limit [C20].
 *
 * A process that a worker has started may trace the worker (ptrace), as crash reporters
 * do.  If such a worker dies or is killed, its keeper kills the tracer, and the outcome
 * arrives within 1 s [C8].  For a death that the keeper did not cause there are two
 * exceptions:
 * - Without pidfds (Linux before 5.3) the keeper checks once a minute.
 * - If the tracer holds other threads of the worker as well, the keeper notices the
 *   death later.  That is at a limit, at a cancel, or when another process that the
 *   worker had started ends.
 *
 * The keeper does not kill a tracer that the worker has not started, such as a
 * debugger.  The outcome arrives when that tracer detaches, or, after a kill, at
 * kill_limit [C10].
 *
 * The keeper kills a worker through its pidfd, else with kill(2).  If seccomp denies
 * both, the keeper exits, and the kernel kills the worker by its parent-death signal.
 * The worker's exit kind is then LOST.  The outcome's text and a LOG event (WARNING)
 * name the calls that failed.  If the worker survives this too (seccomp denied prctl),
 * its slot is QUARANTINED at kill_limit [C10].  This is the one exception to C11: if
 * the host dies then, this worker lives until its task returns.
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
 * Workers are forked from the program as it was at gpud_init: call it early, while the
 * program is small.
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
 * Records the definitions of workers and forks the spawner process.
 *
 * Call it once, early in main: after option parsing, daemonising and dropping
 * privileges, and before threads, CUDA and big allocations.  Workers are forked from
 * the program as it is at this call.
 *
 * In a program that a dispatcher has executed (GPUD_START_EXEC) the call runs the
 * worker and does not return.
 *
 * A seccomp profile or a limit may refuse a system call that the library needs.  Then
 * gpud_init, gpud_dispatcher_create, gpud_dispatcher_device_add and gpud_monitor_open
 * fail with GPUD_ESYSTEM.  *reterr names the call and its errno.  Some calls are made
 * only by keepers and workers.  The SETUP_FAILURE of each start names such a call, and
 * so do the error of gpud_dispatcher_ready and the text of a NO_WORKER outcome.
 *
 * Parameters:
 *   definitions  an array of n records.  All have the struct_size of the first and lie
 *                that many bytes apart.  They may be shorter than this header's, as in
 *                a program that was built with an earlier version
 *   n            the number of records, 1 to 1,024
 *   reterr       receives the reason of a failure, may be NULL
 * Returns: 0.  On failure nothing has changed.
 * Errors:
 *   GPUD_EINVAL     definitions is NULL, or n is 0 or more than 1,024.  Or a name is
 *                   missing, longer than 63 bytes or used twice, or a record has
 *                   neither process nor process_batch
 *   GPUD_ESTRUCT    a definition's struct_size is not a valid size, or not the first
 *                   one's
 *   GPUD_EVERSION   the definitions are of a later version, and one of them uses a
 *                   field that this library does not know
 *   GPUD_EBUSY      gpud_init was called before in this process, and gpud_fini was not
 *   GPUD_EREENTER   the caller is setup, process or cleanup: this process is a worker
 *                   already
 *   GPUD_EPROTOCOL  this process is a child of a program that a dispatcher has
 *                   executed.  That program must become the worker itself; a wrapper
 *                   must use exec
 *   GPUD_ESPAWNER   the spawner ended, or did not reply within 10 s
 *   GPUD_ENOMEM     no memory for the definitions or the spawner
 *   GPUD_ESYSTEM    the system refused a call that the spawner's start needs
 * Owns: copies the array and the names.
 * Waits: for the spawner's reply, 10 s at most.
 * Thread: one, early.  From callbacks: no.  Process: either.  Since: 1.
 * See: gpud_fini, gpud_dispatcher_create, gpud_definition, option start.
 * Example: examples/hello.c
 */
GPUD_API int gpud_init(const struct gpud_definition *definitions, size_t n,
                       struct gpud_error *reterr);

/*
 * Ends the spawner and frees the definitions.
 *
 * Destroy all dispatchers and close all monitors first.  gpud_init may be called again
 * afterwards.  In a process that the host has forked the call only frees.
 *
 * Returns: 0, also when gpud_init was not called.  On failure nothing has changed.
 * Errors:
 *   GPUD_EBUSY  a dispatcher or a monitor that uses the spawner still exists
 * Waits: for the end of the spawner.  After 5 s the library kills it.
 * Thread: one.  From callbacks: no.  Process: host.  Since: 1.
 * See: gpud_init, gpud_dispatcher_destroy, gpud_monitor_close.
 * Example: examples/hello.c
 */
GPUD_API int gpud_fini(void);

/*
 * Selects the driving thread while none of yours is inside the library.
 *
 * To drive is to collect ended tasks, send queued ones, enforce limits, and start and
 * reap workers.  While threads of yours are inside poll, run, wait or ready, one of
 * them drives.
 */
enum gpud_drive {
    GPUD_DRIVE_THREAD = 0, /* the library thread takes over after 1 ms (the default) */
    GPUD_DRIVE_CALLER = 1  /* none: limits and restarts happen inside your calls only */
};

/* Selects the tasks that a dispatcher still finishes after stop or close. */
enum gpud_finish {
    GPUD_FINISH_ALL = 0,     /* accepts no more tasks; accepted ones run to their end */
    GPUD_FINISH_RUNNING = 1, /* as ALL, but tasks that have not started end CANCELLED */
    GPUD_FINISH_NOW = 2,     /* as RUNNING, and cancels running tasks as CANCEL_HARD */
    /*
     * As RUNNING, but external work that has started is left alone: it gets no event any
     * more, and no call knows its id.  gpud_dispatcher_close alone takes this value.
     */
    GPUD_FINISH_LEAVE = 3
};

/*
 * Selects how worker processes are started.
 *
 * AUTO means EXEC if option argv or plugin is set, if CUDA was in use at gpud_init, or
 * if credentials have changed since gpud_init.  Otherwise AUTO means FORK.
 *
 * EXEC runs a program that calls gpud_init on its main thread.  There gpud_init does
 * not return: it finds the definition by its name, runs the worker and leaves with
 * _exit.  Without option argv or plugin it is the same program again: the file that the
 * host runs now, even if it was deleted or replaced since, with the arguments that
 * /proc/self/cmdline showed at gpud_init.  So each worker repeats everything that main
 * does before gpud_init.
 *
 * Such a worker has the environment and directory of gpud_init, or those of
 * gpud_dispatcher_create where gpud_init was not called or credentials have changed.
 * Its only open descriptors are 0, 1, 2 and those of the library.  It has its own
 * session and process group, and default signals.  The host may use CUDA and threads.
 *
 * A program that cannot be a worker is a SETUP_FAILURE and counts towards
 * failures_in_a_row.  The event's code is one of these:
 * - GPUD_ENOPROGRAM: the program, or its interpreter, is missing.
 * - GPUD_ENOTEXEC: the system cannot execute it.
 * - GPUD_EOTHERVERSION: its library speaks another protocol.
 * - GPUD_ENOANSWER: it ended before gpud_init, or did not call it within two minutes or
 *   setup_limit.  Or it called gpud_init in a child process or on another thread.
 * - GPUD_EPROTOCOL: it sent an unexpected reply.
 * - GPUD_ENODEFINITION: it has no definition of that name.
 * - GPUD_EPLUGIN: the plugin cannot be loaded, or is not in order.
 * - GPUD_ESYSTEM: the system refused a call that the start needs.
 * - GPUD_EINVAL: max_batch is above 1, and its definition has no process_batch.
 * - GPUD_EINVAL, GPUD_ESTRUCT, GPUD_EVERSION or GPUD_ENOMEM: its gpud_init refused its
 *   definitions.
 */
enum gpud_start {
    GPUD_START_AUTO = 0, /* EXEC where argv, plugin, CUDA or changed credentials need it,
                            else FORK (the default) */
    GPUD_START_FORK = 1, /* forked from the program as it was at gpud_init */
    GPUD_START_EXEC = 2  /* forked and executed: argv, plugin or the same program */
};

/*
 * Selects where a worker's stdout and stderr go.
 *
 * With TAIL and EVENTS the host reads both streams and keeps the last 8 KiB of each
 * worker.  An outcome carries these bytes in two parts.  Its `output` begins with the
 * first byte that the host read after it saw that the attempt had started.  Its
 * `output_before` holds the bytes before that one: of setup and of earlier tasks.  Each
 * outcome whose task has started has both parts, of its last attempt.  A SUCCESS
 * without output has neither.  A SETUP_FAILURE or CLEANUP_FAILURE event carries all
 * these bytes as `output` [C18].
 *
 * Before the host takes the end of a task, it reads the bytes that the worker has
 * written.  So the bytes that a task wrote before process returned are in its outcome.
 * The exceptions:
 * - The worker printed nothing during its last 16 tasks, and the host polled its
 *   descriptors less than 1 ms ago.  The host may then miss the task's bytes: they are
 *   in the worker's next outcome.
 * - Tasks are sent ahead (option sent_ahead), or run in a batch.  A line may then be in
 *   the outcome of a neighbour, or in both.  sent_ahead = 1 prevents the former.
 * - The bytes are still in a buffer of the worker, such as a line of stdout without its
 *   end.
 *
 * With EVENTS each line is a LOG event as well, of level INFO, with slot, task_id and
 * stream.  A line ends with a newline, which is not part of the text.  A line of more
 * than 1,024 bytes becomes events of 1,024 bytes each and one for the rest.  When the
 * worker ends, the bytes after the last newline become an event, ahead of the outcome
 * or failure.  A zero byte becomes a blank.  task_id is the task that ran when the host
 * read the line (of a batch the first member), and 0 between tasks.  Like other LOG
 * events, lines are dropped while too many events wait, and counted in events_dropped.
 * EVENTS does not keep the order between stdout and stderr, TAIL does.
 *
 * The host reads nothing from a worker that prints nothing (counter output_reads).  It
 * polls such a worker's output when it takes the ends of the first 16 tasks.  Later it
 * does so only when it has polled nothing for 1 ms (counter output_polls).  With TAIL
 * one INFO line per dispatcher names option stdio when the first worker prints.
 */
enum gpud_stdio {
    GPUD_STDIO_TAIL = 0,    /* to the host, for `output` of events (the default) */
    GPUD_STDIO_INHERIT = 1, /* to those of the host, as they are when create is called */
    GPUD_STDIO_FILE = 2,    /* appended to option stdio_path, which each worker opens */
    GPUD_STDIO_DISCARD = 3, /* nowhere */
    GPUD_STDIO_EVENTS = 4   /* as TAIL, and each line is a LOG event */
};

/*
 * Turns off parts of the library's use of CUDA in workers that have GPUs: bits.
 *
 * By default the library does this in such a worker:
 * - Before setup it makes sure that the worker sees exactly its devices.
 * - It makes the first device current, with blocking synchronisation: a worker that
 *   waits for its GPU sleeps.
 * - After each task it waits for the GPU and checks for an error.  So a fault is
 *   charged to the task that caused it.
 * - It runs a canary after each kill, and before a device returns to use.  A canary
 *   makes a context, runs a small kernel and compares the result.
 */
enum gpud_cuda {
    GPUD_CUDA_SPIN = 1,      /* waiting spins on a CPU core: some microseconds sooner */
    GPUD_CUDA_NO_BIND = 2,   /* makes no device current; setup does that */
    GPUD_CUDA_NO_CHECK = 4,  /* no wait and no check after a task: process does both, or a
                                fault may hit a later task */
    GPUD_CUDA_NO_CANARY = 8, /* no canary: the driver's state alone decides when a
                                quarantined device returns */
    GPUD_CUDA_PIN = 16       /* pins the memory for task data and results, in pieces,
                                where that works */
};

/*
 * Selects how workers on GPUs find their devices in CUDA_VISIBLE_DEVICES.
 *
 * The variable lists the devices of the worker's set, in the order of the set (option
 * visible).  Beside it CUDA_DEVICE_ORDER is PCI_BUS_ID, and GPUD_DEVICE_UUIDS has the
 * UUIDs in each case.
 *
 * Some frameworks, such as vLLM, accept only numbers there (int() of each entry).
 * Other frameworks accept both.  A number is a GPU's place by PCI address among the
 * GPUs that the process can open.  It changes when a GPU before it is lost.  So each
 * worker compares the UUIDs that CUDA shows with its own before setup: a wrong number
 * never runs a task.
 *
 * AUTO means numbers if they are certain when the worker starts, else UUIDs.  They are
 * certain if all of this holds:
 * - No GPU of the machine is in MIG mode.
 * - No GPU of the dispatcher is LOST.
 * - CUDA finds no MPS daemon.
 * - NVML's number of each GPU is its place by PCI address among the GPUs in
 *   /proc/driver/nvidia/gpus.
 *
 * Under AUTO a wrong number is a SETUP_FAILURE.  After it workers get UUIDs, until the
 * monitor of their devices has died and another monitor has listed all GPUs.
 *
 * Under INDEX gpud_dispatcher_create and gpud_dispatcher_device_add refuse MIG
 * instances (GPUD_EINVAL), since these have no number.  If CUDA's numbers differ, each
 * start is a SETUP_FAILURE with code GPUD_EDEVICE.  Its text has the number and the
 * expected UUID.
 */
enum gpud_visible {
    GPUD_VISIBLE_AUTO = 0, /* numbers where they are certain, else UUIDs (the default) */
    GPUD_VISIBLE_UUID = 1, /* "GPU-5c10...,GPU-77cc..." */
    GPUD_VISIBLE_INDEX = 2 /* "3,0" */
};

/*
 * Selects whether a younger task of a pooled dispatcher may start while an older one
 * waits.
 *
 * A task with a higher priority comes first, then the older task.  CPU tasks wait for no
 * older task that waits for devices.
 */
enum gpud_mode {
    GPUD_MODE_BACKFILL = 0, /* it may, on devices that are not held for an older task, or
                               if it passes that task (enum gpud_passing; the default) */
    GPUD_MODE_STRICT = 1    /* it may not, if it could use a device that the older task
                               could use */
};

/*
 * Selects which tasks of a pooled dispatcher pass an older one: they start on devices
 * that are held for it.
 */
enum gpud_passing {
    GPUD_PASSING_LEARNED = 0, /* tasks whose limit and grace end before the older task
                                 could start.  The dispatcher learns from earlier tasks
                                 how soon that could be (the default) */
    GPUD_PASSING_APART = 1    /* none: the held devices stay idle */
};

/*
 * Options of a dispatcher, for gpud_dispatcher_create.
 *
 * Begin with GPUD_OPTIONS_INIT and set the fields you need.  Zero means the default,
 * which stands in brackets.
 *
 * Times are nanoseconds: GPUD_S(30) is 30 s.  gpud_dispatcher_create refuses a time of
 * 2 to 999 ns, and one of 2^63 ns and more that is not GPUD_NEVER, with GPUD_EINVAL:
 * "task_limit is 30 ns, the minimum is 1000 ns: for 30 s write GPUD_S(30)".
 *
 * GPUD_AT_ONCE means no time at all in grace, memory_wait, batch_wait, result_wait and
 * the backoffs with their caps.  gpud_dispatcher_create refuses it in every other time.
 */
struct gpud_options {
    /*
     * The size of this record, as GPUD_OPTIONS_INIT sets it.
     * Unit: bytes.
     */
    uint32_t struct_size;

    /*
     * Selects the driving thread while none of yours is inside poll, run, wait or
     * ready.
     * Default: [GPUD_DRIVE_THREAD].  Range: enum gpud_drive.
     * See: gpud_dispatcher_fd.
     */
    uint32_t drive;

    /*
     * Names the definition that the workers run.  The program of the workers has
     * recorded it with gpud_init, or the plugin has it.
     * Default: [the only one].  Range: 1 to 63 bytes.
     * See: gpud_init, argv, plugin.
     */
    const char *definition;

    /*
     * Lists the devices that get workers.  Commas separate the entries, and blanks may
     * surround them.  An entry is one of these:
     * - "all": every GPU.
     * - "free" or "free:N": GPUs that no process uses now, all of them or N.  A GPU is in
     *   use if its processes have more than foreign_memory or foreign_load.
     * - "0" or "gpu:0": a GPU by its index.
     * - "0:1" or "gpu:0:1": MIG instance 1 of GPU 0.
     * - "GPU-5c" or "MIG-...": a UUID, or a beginning of one that fits one device.
     * - "cpu:N": N CPU slots, 1 to 1,024.
     * - "fake:N" or "fake:N,script=FILE": N fake GPUs, 1 to 256.  The format of the
     *   file is in docs/reference/fake-scripts.md.
     *
     * Each entry may end in "/K": K workers per device, 1 to 1,024.  With a script it
     * stands before the comma: "fake:8/2,script=FILE".
     *
     * Indices and "all" count the GPUs that CUDA_VISIBLE_DEVICES of the host allows, in
     * its order.  If the variable is unset, they count all GPUs in the order of PCI
     * addresses.  Numbers inside the variable count in that order, too.
     * Default: ["cpu:1"].  Range: 1 to 1,024 slots.
     * See: devices_per_worker, visible, gpud_dispatcher_device_add,
     * docs/reference/devices.md.
     */
    const char *devices;

    /*
     * Bounds the tasks that are accepted and not yet delivered.  While there are this
     * many, submit fails with GPUD_EFULL or waits.  queue_size also bounds the events
     * that are kept.
     * Default: [1,024].  Range: 1 to 1,048,576.  Unit: tasks.
     * See: gpud_dispatcher_submit, gpud_event_keep, payload_budget.
     */
    uint32_t queue_size;

    /*
     * Bounds the tasks at one worker, the running one included.  With 1 the host sends
     * tasks in strict order (guarantee C5), and one worker starts them in that order.
     * With max_batch above 1 the number is at least max_batch, and by default at least
     * twice max_batch, up to 64.  In a pool the default is 1, or max_batch, while nothing
     * is known of its tasks, and while they take 0.1 s or more.
     * Default: [2, and up to 64 while the mean run time is below 0.5 ms].
     * Range: 1 to 64.  Unit: tasks.
     * See: max_batch.
     */
    uint32_t sent_ahead;

    /*
     * Bounds the shared memory for task data and results.  One half is for data, the
     * other half is divided among the slots for results of more than 4 KiB.  An added
     * device enlarges the budget by the shares of its slots.
     * Default: [a quarter of the memory that machine or memory cgroup has left].
     * Range: at least 8 MiB plus 128 KiB per slot.  Unit: bytes.
     * See: gpud_dispatcher_buffer_alloc, result_wait, queue_size.
     */
    uint64_t payload_budget;

    /*
     * The bytes that gpud_worker_setup_data returns in each worker.
     * gpud_dispatcher_create copies them.  They take room in the data half of
     * payload_budget.
     * Default: none.
     * See: setup_size, setup_shared, gpud_worker_setup_data.
     */
    const void *setup_data;

    /*
     * The size of setup_data.
     * Default: none.  Unit: bytes.
     * See: setup_data.
     */
    uint64_t setup_size;

    /*
     * The base of gpud_worker_seed, which adds the number of the slot.
     * Default: 0.
     * See: gpud_worker_seed.
     */
    uint64_t seed;

    /*
     * Kills a worker whose setup takes longer: a SETUP_FAILURE with code GPUD_ETIMEOUT.
     * The time begins with the start of the worker, not with its wait under
     * setup_concurrency.
     * Default: [15 min].  Range: 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     * See: gpud_setup_fn, stop_limit.
     */
    uint64_t setup_limit;

    /*
     * Limits the time of one attempt, for tasks whose own limit is 0.  The worker of a
     * task that ignores it is killed at limit + grace.
     * Default: [GPUD_NEVER].  Range: 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     * See: grace, stall_limit, expires, gpud_task_expired.
     */
    uint64_t task_limit;

    /*
     * Kills the worker of a task that has not returned this long after its limit, or
     * after GPUD_CANCEL_HARD.
     * Default: [2 s].  Range: GPUD_AT_ONCE, 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     * See: task_limit, stall_limit, gpud_dispatcher_cancel.
     */
    uint64_t grace;

    /*
     * Kills a worker whose cleanup takes longer: a CLEANUP_FAILURE.
     * Default: [10 s].  Range: 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     * See: gpud_cleanup_fn.
     */
    uint64_t cleanup_limit;

    /*
     * Kills everything that still runs this long after gpud_dispatcher_destroy, or
     * after gpud_dispatcher_close with GPUD_FINISH_NOW and limit 0.
     * Default: [30 s].  Range: 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     * See: gpud_dispatcher_close, gpud_dispatcher_destroy.
     */
    uint64_t close_limit;

    /*
     * Limits the time from SIGKILL to the end of a worker.  If the worker is still
     * there then, its slot is QUARANTINED.  The spawner kills a keeper that was ordered
     * to start a worker and has been stopped for this time.  That is a SETUP_FAILURE,
     * and the slot gets a new keeper.  A worker that is not stopped and starts none of
     * its tasks is killed after twice the sum of this time (at least 1 s) and
     * batch_wait.
     * Default: [10 s; 60 s on a GPU that is no fake].
     * Range: 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     * See: grace, stop_limit.
     */
    uint64_t kill_limit;

    /*
     * The wait before a failed slot's next start.  It doubles with each failure in a
     * row.
     * Default: [1 s].  Range: GPUD_AT_ONCE, 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     * See: backoff_cap, failures_in_a_row.
     */
    uint64_t backoff;

    /*
     * The longest wait before a failed slot's next start.  A value below backoff counts
     * as backoff.
     * Default: [60 s].  Range: GPUD_AT_ONCE, 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     * See: backoff.
     */
    uint64_t backoff_cap;

    /*
     * Bounds the failures of a slot: of setups and of idle workers, with no task done
     * between.  After this many the slot is FAILED, until
     * gpud_dispatcher_device_return.
     * Default: [3].  Unit: failures.
     * See: backoff, gpud_dispatcher_device_return, gpud_dispatcher_ready.
     */
    uint32_t failures_in_a_row;

    /*
     * Bounds the attempts of a task, for tasks whose own max_attempts is 0.
     * Default: [1].  Range: 1 to 255.  Unit: attempts.
     * See: retry_causes, retry_backoff.
     */
    uint32_t max_attempts;

    /*
     * Turns log lines up to this level into LOG events.
     * Default: [GPUD_LEVEL_INFO].  Range: GPUD_LEVEL_ERROR to GPUD_LEVEL_DEBUG.
     * See: gpud_worker_log, stdio.
     */
    uint32_t log_level;

    /*
     * With 1 each change of a slot's state is a SLOT event, except changes between
     * READY and BUSY.
     * Default: [0].  Range: 0 or 1.
     * See: gpud_dispatcher_ready.
     */
    uint32_t slot_events;

    /*
     * Selects how workers are started.
     * Default: [GPUD_START_AUTO].  Range: enum gpud_start.
     * See: argv, plugin, gpud_init.
     */
    uint32_t start;

    /*
     * Selects where the stdout and stderr of workers go.
     * Default: [GPUD_STDIO_TAIL].  Range: enum gpud_stdio.
     * See: stdio_path, log_level.
     */
    uint32_t stdio;

    /*
     * Assigns this many neighbours of the device list to each worker.  The number of
     * devices must be a multiple of it.  Where the list has "cpu:N/K", each set has K
     * workers.
     * Default: [1].  Range: 1 to 16.  Unit: devices.
     * See: devices, gpud_worker_device_count.
     */
    uint32_t devices_per_worker;

    /*
     * Bounds the setups that run at the same time.  Other slots wait in STARTING
     * without a worker.  The slot that has waited longest starts first.
     * Default: [all].  Unit: setups.
     * See: setup_limit.
     */
    uint32_t setup_concurrency;

    /*
     * Bounds the tasks that process_batch receives in one call.  sent_ahead is at least
     * this number.  Above 1 the definition must have a process_batch: otherwise
     * gpud_dispatcher_create fails with GPUD_EINVAL.  With argv or plugin each start is
     * a SETUP_FAILURE with code GPUD_EINVAL instead.
     * Default: [1].  Range: 1 to 64.  Unit: tasks.
     * See: gpud_process_batch_fn, batch_wait, sent_ahead.
     */
    uint32_t max_batch;

    /*
     * The ends of an attempt after which a task is tried again, for tasks whose own
     * retry_causes is 0.
     * Default: [GPUD_RETRY_CRASH].  Range: bits of enum gpud_retry.
     * See: max_attempts, retry_backoff.
     */
    uint32_t retry_causes;

    /*
     * How long a worker that has fewer tasks than max_batch waits for more.
     * gpud_dispatcher_create refuses it unless max_batch is above 1.
     * Default: [0: not at all].  Range: GPUD_AT_ONCE, 1 us to 1 h.  Unit: ns.
     * See: max_batch.
     */
    uint64_t batch_wait;

    /*
     * The wait from the end of a task's first attempt to its second.  It doubles with
     * each further attempt.
     * Default: [0: none].  Range: GPUD_AT_ONCE, 1 us to 292 years, GPUD_NEVER.
     * Unit: ns.
     * See: retry_backoff_cap, max_attempts.
     */
    uint64_t retry_backoff;

    /*
     * The longest wait before another attempt.  A value below retry_backoff counts as
     * retry_backoff.
     * Default: [60 s].  Range: GPUD_AT_ONCE, 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     * See: retry_backoff.
     */
    uint64_t retry_backoff_cap;

    /*
     * Ends a task TIMEOUT, phase QUEUED, if it has not started this long after it was
     * accepted.  It holds for tasks whose own expires is 0.
     * Default: [GPUD_NEVER].  Range: 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     * See: task_limit.
     */
    uint64_t expires;

    /*
     * Limits the time that a task may run without a call of gpud_task_progress.  After
     * it the task's limit counts as expired.  It holds for tasks whose own stall_limit
     * is 0.
     * Default: [GPUD_NEVER].  Range: 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     * See: gpud_task_progress, grace.
     */
    uint64_t stall_limit;

    /*
     * Changes the environment of the workers, and only theirs.  "NAME=value" sets a
     * variable, "NAME" unsets it, in this order.  NULL ends the list.
     *
     * The library sets GPUD_SLOT, GPUD_INCARNATION, GPUD_DEVICES, GPUD_DEVICE_UUIDS and
     * GPUD_WORKER, and refuses them here.  With a GPU or a fake among devices it also
     * refuses CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER: workers on these see their
     * own devices (option visible).  So do workers on such a device that is added
     * later, regardless of env.
     * Default: none.
     * See: cwd, visible, docs/reference/environment.md.
     */
    const char *const *env;

    /*
     * The directory of the workers.  If a worker cannot enter it, a SETUP_FAILURE has
     * the reason.
     * Default: [as at gpud_init].
     * See: stdio_path, env.
     */
    const char *cwd;

    /*
     * The file of GPUD_STDIO_FILE, relative to the workers' directory.  "{slot}" in it
     * becomes the number of the slot.  If a worker cannot open it, a SETUP_FAILURE has
     * the reason.  It does not fit another stdio.
     * Default: none.
     * See: stdio, cwd.
     */
    const char *stdio_path;

    /*
     * The program that calls gpud_init, and its arguments, as for execv.  NULL ends the
     * list.  It selects GPUD_START_EXEC and does not fit start FORK.
     * gpud_dispatcher_create looks up a name without a slash in PATH, once.  The
     * program must know from its arguments that it is a worker: a host that names
     * itself needs one more.
     * Default: [the same program again].
     * See: start, plugin, definition.
     */
    const char *const *argv;

    /*
     * A shared object that the bundled worker program loads and runs.  plugin.h
     * describes the object.  It selects GPUD_START_EXEC and does not fit start FORK or
     * argv.
     * Default: none.
     * See: start, argv, gpud_worker_main.
     */
    const char *plugin;

    /*
     * Memory that every worker maps, in place of setup_data.  Nothing is copied.  It
     * does not fit setup_data.
     * Default: none.
     * See: setup_data, gpud_shared_create.
     */
    const gpud_shared *setup_shared;

    /*
     * Turns off parts of the library's use of CUDA, on GPUs and fakes only.
     * Default: [0].  Range: bits of enum gpud_cuda.
     * See: visible, canary_passes, docs/explain/cuda.md.
     */
    uint32_t cuda;

    /*
     * How many canaries must pass in a row before a device returns to use.
     * Default: [2].  Range: 1 to 1,000.  Unit: canaries.
     * See: canary_backoff, gpud_dispatcher_device_return.
     */
    uint32_t canary_passes;

    /*
     * The wait between attempts to bring a device back.  It doubles with each that
     * fails.
     * Default: [10 s].  Range: GPUD_AT_ONCE, 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     * See: canary_passes, canary_backoff_cap.
     */
    uint64_t canary_backoff;

    /*
     * The longest wait between attempts to bring a device back.  A value below
     * canary_backoff counts as canary_backoff.
     * Default: [5 min].  Range: GPUD_AT_ONCE, 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     * See: canary_backoff.
     */
    uint64_t canary_backoff_cap;

    /*
     * How long the successor of a dead worker waits until the memory of the device is
     * free again.  Then it starts all the same, and a DEVICE event names the holders.
     * Default: [30 s].  Range: GPUD_AT_ONCE, 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     * See: docs/explain/devices.md.
     */
    uint64_t memory_wait;

    /*
     * The meaning of XIDs, in place of the built-in table:
     * "79=reset,43=ignore,13=restart".  The words are ignore, task, restart, reset,
     * lost and suspect.
     * Default: [environment GPUD_XID_RULES, else none].
     * Range: up to 32 entries, XIDs 1 to 999, each once.
     * See: docs/reference/devices.md.
     */
    const char *xid_rules;

    /*
     * Replaces a worker after it has run this many attempts to their end.  The worker
     * gets no further task, runs cleanup and exits.  Its slot starts the next worker at
     * once.  This is no failure and costs no attempt; stats count it in restarts.
     *
     * With one slot the number is exact, also with process_batch (the last batch may be
     * smaller), and tasks wait for the next worker.  Of several slots one at a time
     * replaces its worker.  Its turn lasts until the next worker is ready, or the slot
     * is FAILED or out of use.  Meanwhile the number is a minimum for the other slots:
     * no task waits for the replacement while another worker is idle.
     * Default: [0: never].  Unit: attempts.
     * See: gpud_cleanup_fn.
     */
    uint32_t max_tasks_per_worker;

    /* Reserved: leave it 0. */
    uint32_t reserved;

    /*
     * How long gpud_task_result_alloc and gpud_task_result_set wait for room for a
     * result larger than 4 KiB.  GPUD_NEVER: no limit of its own.  Room becomes free as
     * the host receives outcomes and releases kept events.
     *
     * The wait also ends at the task's limit or stall limit and when the task is
     * cancelled.  A stop or close of any kind ends it, too, and after that no wait
     * begins: collect outcomes before.  Then the call fails with GPUD_ERESULTSPACE.
     *
     * The call does not wait for one of several tasks in a call of process_batch.  Nor
     * does it wait for more than the worker's share of the payload budget holds.  A
     * wait longer than 1 s is a LOG event of level WARNING.  It lists the bytes in the
     * share by their holders.
     * Default: [0: not at all].  Range: GPUD_AT_ONCE, 1 us to 292 years, GPUD_NEVER.
     * Unit: ns.
     * See: payload_budget, gpud_event_keep.
     */
    uint64_t result_wait;

    /*
     * Kills a worker that has been stopped this long (SIGSTOP, SIGTSTP, SIGTTIN,
     * SIGTTOU), without grace, no matter which process stopped it.  SIGCONT resets the
     * count.  GPUD_NEVER: no limit.
     *
     * The keeper counts, in steps of at most 1 s.  It counts only time during which it
     * and the host's process run.  So stop_limit kills no worker of a job that is
     * suspended as a whole or of a frozen container.  It kills none that a debugger has
     * stopped.
     *
     * The task of the worker, and of a batch each member, ends TIMEOUT, phase HARD,
     * code GPUD_ETIMEOUT, text "stopped for 60.000 s (stop_limit)".  retry_causes
     * treats it as a TIMEOUT.  In setup it is a SETUP_FAILURE, in cleanup a
     * CLEANUP_FAILURE, both with GPUD_ETIMEOUT and this text.  An idle worker is
     * replaced: a LOG event (WARNING), which does not count in failures_in_a_row.
     * Default: [60 s].  Range: 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     * See: task_limit, docs/explain/time-limits.md.
     */
    uint64_t stop_limit;

    /*
     * Selects numbers or UUIDs in the workers' CUDA_VISIBLE_DEVICES, on GPUs and fakes
     * only.  No driver lists fakes, so for them AUTO means UUIDs.
     * Default: [GPUD_VISIBLE_AUTO].  Range: enum gpud_visible.
     * See: devices, env, docs/explain/cuda.md.
     */
    uint32_t visible;

    /* Reserved: leave it 0. */
    uint32_t reserved2;

    /*
     * With 1 each start of an attempt is a STARTED event: task, label, tag, slot,
     * attempt and started_at.  A task of a batch has its own, and so has an attempt that
     * had ended before the host noticed its start.  It comes ahead of the PROGRESS and
     * the OUTCOME of its attempt.  Like PROGRESS events, STARTED events are dropped while
     * too many events wait, and counted in events_dropped.
     *
     * While the host sleeps, the worker wakes it for each start, as it does for an end.
     * Default: [0].  Range: 0 or 1.
     * See: gpud_task_progress, gpud_dispatcher_slots.
     */
    uint32_t start_events;

    /* Reserved: leave it 0. */
    uint32_t reserved3;

    /*
     * With 1 the dispatcher is pooled: it has several classes of work, which share its
     * devices.  It begins without a class, and gpud_dispatcher_class_add adds them.
     * gpud_dispatcher_create refuses each option that is one of a class.  Each task
     * names its class.
     *
     * Without devices a pooled dispatcher has none, and only classes without devices
     * fit.  The list has no "cpu:N" (use cpus) and no "/K".
     * Default: [0].  Range: 0 or 1.
     * See: gpud_dispatcher_class_add, max_workers, gpud_task_desc.class_name.
     */
    uint32_t pooled;

    /*
     * Selects the order in which waiting tasks get devices.  This option and those up to
     * foreign_memory need pooled = 1.
     * Default: [GPUD_MODE_BACKFILL].  Range: enum gpud_mode.
     * See: passing, pooled.
     */
    uint32_t mode;

    /*
     * Selects which tasks may pass an older task that waits for devices.
     * Default: [GPUD_PASSING_LEARNED].  Range: enum gpud_passing.
     * See: mode.
     */
    uint32_t passing;

    /*
     * Bounds the CPU slots that running tasks have together.  Each request names its
     * number of them.  The library binds no process to a CPU.
     * Default: [CPUs that the host may run on].  Unit: CPU slots.
     * See: pooled, struct gpud_request.
     */
    uint32_t cpus;

    /*
     * Keeps this part of each device's memory free of workers.
     * Default: [1,000, and at least 512 MiB].  Range: 1 to 10,000.
     * Unit: 1/10,000 of the device's memory.
     * See: foreign_memory, struct gpud_request.
     */
    uint32_t headroom;

    /*
     * Bounds the workers of all classes at a time, and with them the external tasks that
     * have devices.  The dispatcher has this number of slots and one more, for the canary
     * of a device that is out of use.  Each slot takes 9 file descriptors and a share of
     * payload_budget.
     * Default: [4 x devices, and at least cpus up to 64].  Range: 1 to 1,023.
     * Unit: workers.
     * See: pooled, payload_budget.
     */
    uint32_t max_workers;

    /*
     * Bounds the use of a device by foreign processes.  A request that names no memory
     * passes over a device on which they use more, and so does "free" in devices.
     * Default: [0: off].  Range: 1 to 10,000.  Unit: 1/10,000 of a device.
     * See: devices, foreign_memory, struct gpud_request.
     */
    uint32_t foreign_load;

    /* Reserved: leave it 0. */
    uint32_t reserved4;

    /*
     * Bounds the memory of the machine that workers have together.  Each request names
     * its number of bytes.
     * Default: [the memory that machine or memory cgroup has left at create].
     * Range: any.  Unit: bytes.
     * See: pooled, struct gpud_request.
     */
    uint64_t host_memory;

    /*
     * Bounds the memory of foreign processes on a device.  A request that names no memory
     * passes over a device on which they have more, and so does "free" in devices.  For
     * other requests the memory of foreign processes counts as used.
     * Default: [1 GiB].  Range: any.  Unit: bytes.
     * See: devices, foreign_load, headroom, struct gpud_request.
     */
    uint64_t foreign_memory;

    /*
     * Names a file that receives the decisions of the dispatcher: each fact that it
     * decides on and, below the fact, the orders that follow.  gpudispatch-sim of the
     * same version replays the file and checks that the same facts lead to the same
     * orders [S6].  The form of the lines may change with each version.  gpudispatch
     * report --from FILE makes a page of the file, also of an earlier version.
     *
     * gpud_dispatcher_create creates the file with mode 0600.  If the file exists, create
     * fails with GPUD_ESYSTEM, sys_errno EEXIST: no log replaces the log of an earlier
     * run, and no two dispatchers write to one file.  The dispatcher holds the file open,
     * with one more descriptor.  So the file may be renamed, and the host may change its
     * directory and credentials.
     *
     * A task takes 200 to 300 bytes and some 2 us.  A start of a worker takes about
     * 1 KiB.  At 1 GiB, or at RLIMIT_FSIZE, the line "cut" ends the log.  A failed write
     * ends it as well, such as on a full disk.  Either end is a LOG event of level
     * WARNING, and the dispatcher works on without a log.
     *
     * The library writes the file with write(2), on the thread that fills a buffer of
     * 64 KiB, before the driving thread sleeps, and in gpud_dispatcher_destroy.  A slow
     * file system delays the dispatcher.  If the host exits without destroy, or is
     * killed, the log lacks the decisions since the last write.  A forked child of the
     * host never writes to the file.
     * Default: none.  "" means none, too.
     * See: log_level, docs/explain/core.md.
     */
    const char *decision_log;
};

/* The initial value of a struct gpud_options: its size, and every default. */
#define GPUD_OPTIONS_INIT \
    { (uint32_t)sizeof(struct gpud_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/*
 * Creates a dispatcher and begins to start its workers.
 *
 * The call does not wait for setup.  You may submit tasks at once: they wait in the
 * queue.
 *
 * With option argv or plugin the call needs no gpud_init.  Without gpud_init the
 * dispatcher has a spawner of its own, which is the bundled worker program.  That
 * copies nothing of the host, and the host may use CUDA and threads.  The same happens
 * if credentials have changed since gpud_init.
 *
 * With option pooled the dispatcher has no class yet and starts no worker.  The call
 * needs no gpud_init then, nor argv: each class has its own.
 *
 * A dispatcher holds 8 file descriptors and 8 more for each slot (9 with
 * GPUD_STDIO_EVENTS).  While it starts it needs one more, with GPUD_STDIO_EVENTS two.
 * A pooled dispatcher must have 9 for each slot left, and has max_workers + 1 slots.
 * Some options add 1 or 2 each: EXEC of the same program, setup_shared,
 * GPUD_STDIO_INHERIT, decision_log, a spawner of its own, a monitor.  If fewer are free
 * below the soft limit RLIMIT_NOFILE, the call fails with GPUD_ESYSTEM, sys_errno EMFILE
 * and field "devices", or "max_workers" with option pooled.  The text has the need, the
 * descriptors left and the limit.
 *
 * Parameters:
 *   ret_d    receives the dispatcher; on failure it stays as it was
 *   options  the options
 *   reterr   receives the reason of a failure: field, value and bound; may be NULL
 * Returns: 0 and *ret_d.  On failure nothing has changed.
 * Errors:
 *   GPUD_EINVAL         ret_d or options is NULL.  Or an option is out of its range,
 *                       does not fit another option, or has a bad entry (env,
 *                       xid_rules).  Or definition is not set, and gpud_init has
 *                       recorded several
 *   GPUD_ESTRUCT        options.struct_size is not a valid size
 *   GPUD_EVERSION       options are of a later version and use a field that this
 *                       library does not know
 *   GPUD_ENOINIT        gpud_init was not called, and neither argv nor plugin is set
 *   GPUD_EFORKED        only the parent of this forked process has called gpud_init, or
 *                       has created setup_shared
 *   GPUD_EREENTER       this process is a worker, and dispatchers belong to the host
 *   GPUD_ENODEFINITION  gpud_init has recorded no definition of the name in option
 *                       definition, or that name has more than 63 bytes
 *   GPUD_EDEVICE        an entry of devices or of CUDA_VISIBLE_DEVICES is not usable:
 *                       the text has the entry and its position.  Or there is no GPU:
 *                       the text has the reason.  Or the driver hangs, or
 *                       devices_per_worker does not divide the list
 *   GPUD_ECREDS         start is FORK, and credentials have changed since gpud_init
 *   GPUD_ENOPROGRAM     the program of argv, the plugin or the bundled worker program
 *                       is missing.  Or the host's own is needed, and /proc did not
 *                       show it at gpud_init
 *   GPUD_ENOTEXEC       the program of argv, or the bundled one, is not executable
 *   GPUD_EPLUGIN        the plugin is not readable, or no ELF file for this machine
 *   GPUD_EOTHERVERSION  the bundled worker program is of another version
 *   GPUD_ENOANSWER      the bundled worker program ended, or did not reply within 10 s
 *   GPUD_EPROTOCOL      the bundled worker program sent an unexpected reply.  Or this
 *                       process was started as a worker, and must call gpud_init
 *                       instead
 *   GPUD_ESPAWNER       the spawner has ended, or the process that reads the devices
 *                       could not be started or has died
 *   GPUD_ETOOBIG        the setup bytes, or queue_size times 64 bytes, do not fit into
 *                       the data half of payload_budget
 *   GPUD_EFULL          256 dispatchers and monitors share the spawner already, or its
 *                       dispatchers would have more than 1,024 slots together
 *   GPUD_ENOMEM         no memory for the dispatcher, its devices or one of its
 *                       processes
 *   GPUD_ESYSTEM        the system refused a call (*reterr names it), too few
 *                       descriptors are free, the file of decision_log cannot be
 *                       created, or the file size limit leaves no room for shared
 *                       memory
 * Owns: copies options and everything that they point to, except the memory of
 * setup_shared.  Hands over *ret_d, which gpud_dispatcher_destroy ends.
 * Waits: with GPUs or fakes for the driver's list of devices, 10 s at most: then the
 * driver hangs.  After it 1 s at most for a first reading of each device.  For the
 * reply of a spawner of its own 10 s at most.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_options, gpud_dispatcher_ready, gpud_dispatcher_destroy, gpud_init.
 * Example: examples/hello.c
 */
GPUD_API int gpud_dispatcher_create(gpud_dispatcher **ret_d,
                                    const struct gpud_options *options,
                                    struct gpud_error *reterr);

/*
 * Waits until workers are ready to run tasks.
 *
 * A worker is ready once it has passed setup, also while it runs tasks.  With slots 0
 * the call waits for all workers that can become ready.  A slot that is FAILED or
 * QUARANTINED, or whose device is drained, does not count among them.  A slot in
 * BACKOFF counts: the call waits for its next start.  Many threads may be inside the
 * call at once.
 *
 * A pooled dispatcher starts a worker when a task, min_workers or LOAD needs it.  With
 * slots 0 the call waits for min_workers of all classes together.
 *
 * Parameters:
 *   d       the dispatcher
 *   slots   how many workers must be ready; 0: all that can become ready, or min_workers
 *   wait    nanoseconds at most; 0: checks once; GPUD_NEVER: without a limit
 *   reterr  receives the reason of a failure, may be NULL
 * Returns: 0.  On failure nothing has changed.
 * Errors:
 *   GPUD_ETIMEOUT   wait expired.  The text has the reason of the first missing worker:
 *                   "3 of 4 workers ready; slot 2: in setup for 12 s"
 *   GPUD_ENOWORKER  too few workers can become ready.  The text has the reason: "1 of 2
 *                   workers can become ready; slot 0: setup exited with status 1"
 *   GPUD_EINVAL     d is NULL, or slots is more than the slots of the dispatcher
 *   GPUD_ECLOSED    intake ended before or during the wait: by stop, close or a
 *                   callback of run
 *   GPUD_EREENTER   ready was called in a callback of run, or in a worker
 *   GPUD_EFORKED    d belongs to the parent of this forked process
 * Waits: up to wait.  It drives when no other thread does.  Events wait for poll or run
 * meanwhile.
 * Thread: any.  From callbacks: no; a source may.  Process: host.  Since: 1.
 * See: gpud_dispatcher_create, option setup_limit, option failures_in_a_row, option
 * slot_events.
 * Example: docs/howto/wait-until-ready.md
 */
GPUD_API int gpud_dispatcher_ready(gpud_dispatcher *d, uint32_t slots, uint64_t wait,
                                   struct gpud_error *reterr);

/*
 * Describes a task, for gpud_dispatcher_submit and for a source.
 *
 * Begin with GPUD_TASK_DESC_INIT.  Zero means the default, which stands in brackets.
 *
 * limit, expires and stall_limit take any number of nanoseconds, since they are often
 * the rest of a deadline.  0 is the default: for a deadline that has expired set 1.
 * With expires = 1 the task ends TIMEOUT and never starts.  With limit = 1 it starts,
 * and ends TIMEOUT.
 */
struct gpud_task_desc {
    /*
     * The size of this record, as GPUD_TASK_DESC_INIT sets it.
     * Unit: bytes.
     */
    uint32_t struct_size;

    /*
     * Orders the queue: tasks with a higher number are sent first.  Tasks of one
     * priority are sent in order of submission, unless they have an order.
     * Default: 0.  Range: any, also negative.
     * See: order, option sent_ahead.
     */
    int32_t priority;

    /*
     * The bytes that gpud_task_data returns in the worker.  submit copies them.  It
     * takes a buffer of gpud_dispatcher_buffer_alloc as it is, without a copy.  External
     * work has none: the host finds its own data by tag.
     * Default: none.
     * See: size, gpud_dispatcher_buffer_alloc, gpud_task_data.
     */
    const void *data;

    /*
     * The size of data.
     * Default: 0.  Range: up to the data half of payload_budget.  Unit: bytes.
     * See: data, gpud_task_size.
     */
    uint64_t size;

    /*
     * A name for people, shown in stats and events.  submit copies it.
     * Default: none.  Range: up to 63 bytes.
     * See: gpud_task_label, gpud_event_format.
     */
    const char *label;

    /*
     * A number of yours.  Each event of the task carries it.
     * Default: 0.
     * See: gpud_task_tag, gpud_event.
     */
    uint64_t tag;

    /*
     * Limits the time of one attempt.  GPUD_NEVER: no limit.
     * Default: [option task_limit].  Range: any.  Unit: ns.
     * See: option grace, gpud_task_deadline, gpud_task_expired.
     */
    uint64_t limit;

    /*
     * Bounds the attempts of this task.
     * Default: [option max_attempts].  Range: 1 to 255.  Unit: attempts.
     * See: retry_causes, gpud_task_attempt.
     */
    uint32_t max_attempts;

    /*
     * The relative cost of this task.  Only the estimate of the time left (stats) uses
     * it.
     * Default: [1].
     * See: gpud_dispatcher_stats.
     */
    uint32_t cost;

    /*
     * Ends the task TIMEOUT, phase QUEUED, if it has not started this long after it was
     * accepted.  Then it never starts, whether it waits in the queue or at a worker.  A
     * second attempt may start later.
     * Default: [option expires].  Range: any.  Unit: ns.
     * See: limit.
     */
    uint64_t expires;

    /*
     * Limits the time that the task may run without a call of gpud_task_progress, or of
     * gpud_dispatcher_progress for external work.  After it the task's limit counts as
     * expired.
     * Default: [option stall_limit].  Range: any.  Unit: ns.
     * See: gpud_task_progress, limit.
     */
    uint64_t stall_limit;

    /*
     * The ends of an attempt after which this task is tried again.
     * Default: [option retry_causes].  Range: bits of enum gpud_retry.
     * See: max_attempts.
     */
    uint32_t retry_causes;

    /*
     * With 1 only gpud_dispatcher_wait returns the outcome: poll and run do not deliver
     * it.
     * Default: [0].  Range: 0 or 1.
     * See: gpud_dispatcher_wait.
     */
    uint32_t awaited;

    /*
     * Names the class that runs the task.  A pooled dispatcher needs it, and every other
     * dispatcher refuses it: submit fails with GPUD_EINVAL.
     * Default: none.  Range: 1 to 63 bytes.
     * See: gpud_dispatcher_class_add, option pooled.
     */
    const char *class_name;

    /*
     * The worker that runs the task leaves after this time without another one, instead
     * of the keep_alive of its class.  A dispatcher that is not pooled refuses it, and so
     * does an external class, which has no workers.
     * Default: that of the class.  Range: GPUD_AT_ONCE, any time, GPUD_NEVER.  Unit: ns.
     * See: gpud_dispatcher_class_add, option pooled.
     */
    uint64_t keep_alive;

    /*
     * The needs of this task, in place of those of its class, with variants (sched.h).
     * The class must be transient or external: the workers of a resident class have
     * their devices already.  The task runs in a worker that has just these needs, and
     * that gets no other task before its end.  submit copies the records.  Tasks that
     * have not ended may have up to 1,024 requests that differ in class, priority or
     * needs.
     * Default: the needs of the class.
     * See: struct gpud_request, gpud_dispatcher_class_add.
     */
    const struct gpud_request *request;

    /*
     * The age of the task: of one priority, tasks with a smaller number are sent first,
     * and tasks with equal numbers in order of submission.  With it a host that keeps a
     * longer queue of its own, and submits it piece by piece, has the order of that
     * queue.
     * Default: one more than the largest number so far.  Range: 1 to 2^63 - 1.
     * Unit: none.
     * See: priority.
     */
    uint64_t order;
};

/* The initial value of a struct gpud_task_desc: no data, and every default. */
#define GPUD_TASK_DESC_INIT                                                              \
    { (uint32_t)sizeof(struct gpud_task_desc), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
      0, 0 }

/*
 * Submits one task.
 *
 * While the queue or the payload budget is full, the call fails at once (wait 0) or
 * waits for room.  With GPUD_DRIVE_CALLER a waiting submit needs another thread that
 * drives.  If no slot is left that could run the task, it is accepted all the same and
 * ends NO_WORKER.
 *
 * Parameters:
 *   d       the dispatcher
 *   task    the task
 *   wait    nanoseconds to wait for room; 0: not at all; GPUD_NEVER: until there is
 *           room
 *   ret_id  receives the id of the task, never 0 and never used again; may be NULL
 *   reterr  receives field, value and bound of a failure, may be NULL
 * Returns: 0 and *ret_id.  On failure the call has taken nothing [C15].
 * Errors:
 *   GPUD_EFULL     wait expired: queue_size or payload_budget is used up, or the
 *                  machine or memory cgroup has too little memory left.  Or task.request
 *                  is the 1,025th different one, with its class and priority, of tasks
 *                  that have not ended
 *   GPUD_ECLOSED   intake has ended: by stop, close, destroy or a callback of run,
 *                  before or during the wait.  Or the class of task is being removed
 *   GPUD_EINVAL    d or task is NULL, or a field of task is out of its range.  Or
 *                  task.class_name is NULL and d is pooled, or the reverse.  Or the
 *                  class is external, and data, size or keep_alive is set.  Or
 *                  task.request is set, and d is not pooled, or the class is resident;
 *                  or it has more than 4 variants, or names a set of devices beside 256
 *                  other ones that are in use.  Or data is NULL and size is not 0.  Or
 *                  data lies in payload memory, and is no lent buffer that holds size
 *                  bytes
 *   GPUD_EDEVICE   no device of d, or not the machine, could ever hold task.request, or
 *                  it names a device that d does not have
 *   GPUD_ELABEL    task.label has more than 63 bytes
 *   GPUD_ENODEFINITION  d is pooled and has no class with the name in task.class_name
 *   GPUD_ESTRUCT   task.struct_size is not a valid size
 *   GPUD_EVERSION  task is of a later version and uses a field that this library does
 *                  not know
 *   GPUD_ETOOBIG   task.size is more than payload_budget can ever hold for task data
 *   GPUD_EREENTER  wait is not 0 in a callback of run, or the caller is a worker
 *   GPUD_EFORKED   d belongs to the parent of this forked process
 * Owns: copies data, label, class_name and request.  It takes a buffer of buffer_alloc,
 * on success only.
 * Waits: up to wait, for room.
 * Thread: any.  From callbacks: with wait 0.  Process: host.  Since: 1.
 * See: gpud_task_desc, gpud_dispatcher_submit_many, gpud_dispatcher_poll,
 * gpud_dispatcher_wait, option queue_size.
 * Example: examples/hello.c
 */
GPUD_API int gpud_dispatcher_submit(gpud_dispatcher *d, const struct gpud_task_desc *task,
                                    uint64_t wait, uint64_t *ret_id,
                                    struct gpud_error *reterr);

/*
 * Submits the n tasks of an array in their order.
 *
 * It has the effect of n calls of gpud_dispatcher_submit and is cheaper.  Tasks of
 * other threads may be queued between them.  Outcomes may be delivered before the call
 * returns.  A task's `expires` counts from when that task is accepted.
 *
 * If a task is refused, the tasks before it stay accepted, and each gets an outcome.
 * The call takes neither the refused task nor those behind it: mend or leave out the
 * one, and submit the rest [C15].
 *
 * Parameters:
 *   d             the dispatcher
 *   tasks         an array of n records.  All have the struct_size of the first and lie
 *                 that many bytes apart
 *   n             the number of records; 0 is fine
 *   wait          nanoseconds to wait for room, one time for the whole call; 0: not at
 *                 all; GPUD_NEVER: until there is room for all
 *   ret_ids       has room for n ids; the call writes those of accepted tasks; may be
 *                 NULL
 *   ret_accepted  receives how many tasks were accepted, which is the index of the
 *                 refused one; always written; may be NULL
 *   reterr        receives the reason of a failure; if a task is refused, its text
 *                 begins with the index of that task; may be NULL
 * Returns: 0 if all tasks were accepted, also for n = 0.  Otherwise the code of the
 * refused task.
 * Errors:
 *   GPUD_EFULL     wait expired while queue_size or payload_budget had no room for the
 *                  next of tasks, or memory was short
 *   GPUD_ECLOSED   intake ended before the call had accepted all of tasks, or the
 *                  class of the refused one is being removed
 *   GPUD_EINVAL    d is NULL, tasks is NULL and n is not 0, or a record of tasks has a
 *                  value that gpud_dispatcher_submit refuses
 *   GPUD_ENODEFINITION  d has no class with the name in class_name of a task
 *   GPUD_EDEVICE   the request of a task fits nowhere, as in gpud_dispatcher_submit
 *   GPUD_ELABEL    a label in tasks has more than 63 bytes
 *   GPUD_ESTRUCT   the struct_size of tasks[0] is not a valid size, or that of
 *                  another record differs from it
 *   GPUD_EVERSION  tasks are of a later version, and one uses a field that this library
 *                  does not know
 *   GPUD_ETOOBIG   a size in tasks is more than payload_budget can ever hold for task
 *                  data
 *   GPUD_EREENTER  wait is not 0 in a callback of run, or the caller is a worker
 *   GPUD_EFORKED   d belongs to the parent of this forked process
 * Owns: copies data and labels.  It takes buffers of buffer_alloc, of accepted tasks
 * only.
 * Waits: up to wait, for room.
 * Thread: any.  From callbacks: with wait 0.  Process: host.  Since: 1.
 * See: gpud_dispatcher_submit, gpud_dispatcher_run.
 */
GPUD_API int gpud_dispatcher_submit_many(gpud_dispatcher *d,
                                         const struct gpud_task_desc *tasks, size_t n,
                                         uint64_t wait, uint64_t *ret_ids,
                                         size_t *ret_accepted, struct gpud_error *reterr);

/*
 * Lends memory that workers see, so that submit copies nothing.
 *
 * Write the payload there.  Then submit a task whose data is that address.  Its size
 * may be smaller than the buffer.
 *
 * Parameters:
 *   d         the dispatcher
 *   size      bytes of the buffer, at least 1
 *   ret_data  receives the address, aligned to 64 bytes
 * Returns: 0 and *ret_data.  On failure *ret_data stays as it was.
 * Errors:
 *   GPUD_EFULL     size does not fit into the budget now, or memory is short
 *   GPUD_ETOOBIG   size never fits into the data half of payload_budget
 *   GPUD_EINVAL    d or ret_data is NULL, or size is 0
 *   GPUD_EREENTER  d is used in a worker, not in the host
 *   GPUD_EFORKED   d belongs to the parent of this forked process
 * Owns: lends *ret_data until a submit takes it, gpud_dispatcher_buffer_free frees it,
 * or gpud_dispatcher_destroy ends the dispatcher.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_submit, gpud_dispatcher_buffer_free, gpud_task_result_alloc,
 * option payload_budget.
 * Example: docs/howto/large-data.md
 */
GPUD_API int gpud_dispatcher_buffer_alloc(gpud_dispatcher *d, uint64_t size,
                                          void **ret_data);

/*
 * Frees a buffer that no submit has taken.
 *
 * Parameters:
 *   d     the dispatcher that has lent the buffer
 *   data  an address of gpud_dispatcher_buffer_alloc, or NULL
 * Returns: 0, also if data is NULL.  On failure nothing has changed.
 * Errors:
 *   GPUD_EINVAL    d is NULL, or data is no buffer that d lends now
 *   GPUD_EREENTER  d is used in a worker, not in the host
 *   GPUD_EFORKED   d belongs to the parent of this forked process
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_buffer_alloc.
 */
GPUD_API int gpud_dispatcher_buffer_free(gpud_dispatcher *d, void *data);

/*
 * Drives, and returns the events that have happened, oldest first.
 *
 * Outcomes of awaited tasks are not among them.  After stop or close call it until it
 * returns GPUD_EEND: then every worker has ended or is quarantined.  GPUD_EEND does not
 * wait for outcomes of awaited tasks that no thread has fetched.  External work whose
 * outcome had phase KILL, or that GPUD_FINISH_LEAVE has left, may still run then.  Any
 * number of other threads may be inside wait and ready meanwhile.
 *
 * Parameters:
 *   d       the dispatcher
 *   events  an array of n records.  events[0].struct_size is the length of each record
 *           for the caller (GPUD_EVENT_INIT).  Each filled record has this struct_size,
 *           and zeros where the library that runs knows no field
 *   n       the number of records; the call fills at most 256
 *   wait    nanoseconds to wait for the first event; 0: not at all; GPUD_NEVER: until
 *           one arrives
 * Returns: the number of records filled, 0 if wait expired.
 * Errors:
 *   GPUD_EEND      d is closed, its workers have ended, and poll has delivered every
 *                  event
 *   GPUD_EBUSY     another thread is inside poll, run or destroy with d
 *   GPUD_EINVAL    d or events is NULL, or n is 0
 *   GPUD_ESTRUCT   events[0].struct_size is not a valid size
 *   GPUD_EREENTER  poll was called in a callback of run, or in a worker
 *   GPUD_EFORKED   d belongs to the parent of this forked process
 * Owns: lends the memory that the events point to, until the next poll, run or destroy.
 * gpud_event_keep keeps it longer.
 * Waits: up to wait.
 * Thread: one at a time.  From callbacks: no.  Process: host.  Since: 1.
 * See: gpud_dispatcher_run, gpud_dispatcher_wait, gpud_dispatcher_fd, gpud_event_keep,
 * gpud_event, option drive.
 * Example: examples/hello.c
 */
GPUD_API int gpud_dispatcher_poll(gpud_dispatcher *d, struct gpud_event *events, size_t n,
                                  uint64_t wait);

/*
 * Waits for the outcome of one awaited task and returns it.
 *
 * A task is awaited if it was submitted with awaited = 1.  Only this call returns its
 * outcome, and only once.  Until then the task counts against queue_size.  A result
 * larger than 4 KiB counts against its worker's share of the payload budget.  While
 * such results fill that share, the worker gets no task: so wait first for those tasks
 * that may have ended first.  Many threads may be inside the call at once, each for its
 * own task [C1].
 *
 * Parameters:
 *   d        the dispatcher
 *   task_id  the id that submit returned
 *   event    receives the outcome; set its struct_size (GPUD_EVENT_INIT)
 *   timeout  nanoseconds to wait; 0: checks once; GPUD_NEVER: until the task has ended
 *   reterr   receives argument and value of a failure, may be NULL
 * Returns: 0 and *event.  On failure nothing has changed [C15].
 * Errors:
 *   GPUD_ETIMEOUT     timeout expired, and the task has not ended
 *   GPUD_ENOTFOUND    no accepted task has task_id, or its outcome was returned before
 *   GPUD_ENOTAWAITED  the task with task_id was submitted without awaited = 1: poll or
 *                     run delivers its outcome
 *   GPUD_EINVAL       d or event is NULL
 *   GPUD_ESTRUCT      event.struct_size does not reach beyond `kept`, or is not a
 *                     valid size
 *   GPUD_EBUSY        another thread waits for the task with task_id, or destroy has
 *                     begun
 *   GPUD_EFULL        queue_size events are kept: release one, and wait again
 *   GPUD_ENOMEM       no memory for the event that wait would return
 *   GPUD_EREENTER     wait was called in a callback of run, or in a worker
 *   GPUD_EFORKED      d belongs to the parent of this forked process
 * Owns: hands over the memory that *event points to; gpud_event_release frees it.
 * Waits: up to timeout.  It drives when no other thread does.
 * Thread: any.  From callbacks: no; a source may.  Process: host.  Since: 1.
 * See: gpud_event_release, gpud_dispatcher_submit, gpud_dispatcher_cancel, gpud_event.
 * Example: examples/server.c
 */
GPUD_API int gpud_dispatcher_wait(gpud_dispatcher *d, uint64_t task_id,
                                  struct gpud_event *event, uint64_t timeout,
                                  struct gpud_error *reterr);

/*
 * Returns one file descriptor for an event loop of yours (poll, epoll, libuv, asyncio).
 *
 * The descriptor is readable, as a level, while gpud_dispatcher_poll with wait 0 would
 * deliver or do something.  When it is readable, poll with wait 0 until that returns 0
 * or GPUD_EEND.  Read nothing from the descriptor.  After the last event it stays
 * readable, for GPUD_EEND.
 *
 * With GPUD_DRIVE_THREAD it reports events, and such a poll only fetches them: the
 * library thread drives.  With GPUD_DRIVE_CALLER it also requests that you drive: your
 * poll sends tasks, enforces limits and replaces workers.
 *
 * The first call makes the descriptor, and later calls return the same one.  It takes 2
 * file descriptors, with GPUD_DRIVE_CALLER 3.
 *
 * Parameters:
 *   d  the dispatcher
 * Returns: the descriptor.  On failure nothing has changed.
 * Errors:
 *   GPUD_EINVAL    d is NULL
 *   GPUD_ESYSTEM   the system refused an epoll descriptor, an eventfd or a timerfd
 *   GPUD_EREENTER  d is used in a worker, not in the host
 *   GPUD_EFORKED   d belongs to the parent of this forked process
 * Owns: lends the descriptor until gpud_dispatcher_destroy, which closes it.  Take it
 * out of your loop before that, and never close it.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_poll, option drive.
 * Example: examples/epoll.c
 */
GPUD_API int gpud_dispatcher_fd(gpud_dispatcher *d);

/*
 * Keeps an event beyond the next poll or the end of the callback.
 *
 * The memory that it points to stays valid until gpud_event_release, also beyond
 * gpud_dispatcher_destroy.  The call sets its pointers to the places where the bytes
 * lie from now on.  At most queue_size events are kept at a time [C18] [C19].
 *
 * Results larger than 4 KiB are not copied.  They stay where the worker wrote them, and
 * count against its share of the payload budget.  While kept results fill the share of
 * a worker, its tasks that need room there fail with GPUD_ERESULTSPACE, at once or
 * after option result_wait.
 *
 * Parameters:
 *   d      the dispatcher of the event
 *   event  an event of the last poll, or your copy of an event that a callback
 *          received, while it is lent
 * Returns: 0.  On failure nothing has changed.
 * Errors:
 *   GPUD_EINVAL    d or event is NULL, or event is not lent now, or is kept already
 *   GPUD_ESTRUCT   event.struct_size is not a valid size, or ends before or in `kept`
 *   GPUD_EFULL     queue_size events are kept already
 *   GPUD_ENOMEM    no memory for a copy of the bytes that event points to
 *   GPUD_EREENTER  d is used in a worker, not in the host
 *   GPUD_EFORKED   d belongs to the parent of this forked process
 * Owns: hands over the memory that *event points to; gpud_event_release frees it.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_event_release, gpud_dispatcher_poll, option queue_size, option
 * payload_budget.
 * Example: docs/howto/large-data.md
 */
GPUD_API int gpud_event_keep(gpud_dispatcher *d, struct gpud_event *event);

/*
 * Frees the memory that a kept event points to.
 *
 * Call it once for each event that gpud_dispatcher_wait has returned or gpud_event_keep
 * has kept.  The event's pointers become NULL or "".  The dispatcher may have ended.
 * In a process that the host has forked the call only frees.
 *
 * Parameters:
 *   event  the event
 * Returns: 0, also if event is not kept.  On failure nothing has changed.
 * Errors:
 *   GPUD_EINVAL   event is NULL
 *   GPUD_ESTRUCT  event.struct_size is too small to hold `kept`, or not a valid size
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_event_keep, gpud_dispatcher_wait.
 * Example: examples/server.c
 */
GPUD_API int gpud_event_release(struct gpud_event *event);

/*
 * Supplies gpud_dispatcher_run with the next tasks: you write this function.
 *
 * Fill up to n records, from tasks[0] on, and return their number.  Fewer than n are
 * fine: waiting for more only delays those.  run never calls the function concurrently
 * with itself, and holds no lock meanwhile.  The function may block, which delays
 * neither dispatch nor limits.  It may call submit, wait, ready, cancel, stop and
 * stats.
 *
 * run refuses a task that submit would refuse, and one with awaited = 1: it returns
 * GPUD_EREFUSED.  The tasks before the refused one run.  run takes neither the refused
 * task nor those after it, nor their buffers.
 *
 * Parameters:
 *   tasks  n records, each as GPUD_TASK_DESC_INIT
 *   n      how many records may be filled, 1 to 64
 *   user   the pointer that was passed to gpud_dispatcher_run
 * Returns: the number of records filled.  0 is the end.  A negative value, or more than
 * n, is a failure: run returns GPUD_ESOURCE.
 * Owns: lends run the memory that the records point to, until the next call or the end
 * of run.
 * Thread: the feeder thread of run.  Process: host.  Since: 1.
 * See: gpud_dispatcher_run, gpud_callbacks, gpud_task_desc.
 * Example: examples/transcribe/main.c
 */
typedef int(gpud_source_fn)(struct gpud_task_desc *tasks, size_t n, void *user);

/*
 * Receives one event from gpud_dispatcher_run: you write this function.
 *
 * run calls it for one event at a time, and holds no lock meanwhile.  While it runs,
 * dispatch and limits go on if option drive is GPUD_DRIVE_THREAD.  It may call submit
 * with wait 0, cancel, stop, stats and every function with "From callbacks: yes".
 *
 * Any return value but 0 closes the dispatcher as GPUD_FINISH_RUNNING does: running
 * tasks run to their end, the other tasks end CANCELLED.  These outcomes still arrive
 * here, and run returns GPUD_ECALLBACK.  gpud_run_counts keeps the first such value.
 *
 * Parameters:
 *   event  the event
 *   user   the pointer that was passed to gpud_dispatcher_run
 * Returns: 0 to go on, any other value to stop.
 * Owns: borrows event and the memory that it points to.  Both are lent until the
 * function returns.  To keep them, copy the record and call gpud_event_keep with the
 * copy.
 * Thread: the thread inside run.  Process: host.  Since: 1.
 * See: gpud_dispatcher_run, gpud_callbacks, gpud_event, gpud_event_keep.
 * Example: examples/transcribe/main.c
 */
typedef int(gpud_event_fn)(const struct gpud_event *event, void *user);

/*
 * Counts the outcomes of a run.
 *
 * gpud_dispatcher_run fills it as it returns.  It leaves the record as it was if it
 * refuses its arguments: GPUD_EINVAL, GPUD_EVERSION, GPUD_EFORKED, GPUD_ESTRUCT for a
 * struct_size, and GPUD_EREENTER in a worker.
 *
 * It counts the outcomes that run delivered, also of tasks that were submitted beside
 * it.
 */
struct gpud_run_counts {
    uint32_t struct_size; /* bytes of this record, as GPUD_RUN_COUNTS_INIT sets it */
    int32_t value;        /* the return value of the callback or source that ended run;
                             0 = neither did */
    uint64_t pulled;      /* tasks that the source supplied and run took */
    uint64_t success;     /* outcomes SUCCESS */
    uint64_t error;       /* outcomes ERROR */
    uint64_t timeout;     /* outcomes TIMEOUT */
    uint64_t crashed;     /* outcomes CRASHED */
    uint64_t cancelled;   /* outcomes CANCELLED */
    uint64_t no_worker;   /* outcomes NO_WORKER */
};

/* The initial value of a struct gpud_run_counts: all counts are 0. */
#define GPUD_RUN_COUNTS_INIT \
    { (uint32_t)sizeof(struct gpud_run_counts), 0, 0, 0, 0, 0, 0, 0, 0 }

/*
 * The functions that gpud_dispatcher_run calls.
 *
 * Each function may be NULL.  An event without a function is only counted.
 */
struct gpud_callbacks {
    uint32_t struct_size;            /* bytes of this record, by GPUD_CALLBACKS_INIT */
    uint32_t task_size;              /* sizeof(struct gpud_task_desc) where the source was
                                        compiled; GPUD_CALLBACKS_INIT sets it
                                        [80, as in version 0.1] */
    gpud_event_fn *on_success;       /* outcome SUCCESS */
    gpud_event_fn *on_error;         /* outcomes ERROR, CRASHED, CANCELLED, NO_WORKER */
    gpud_event_fn *on_timeout;       /* outcome TIMEOUT [on_error] */
    gpud_event_fn *on_setup_failure; /* event SETUP_FAILURE [on_event] */
    gpud_event_fn *on_event;         /* every other event */
    void (*unblock)(void *user);     /* wakes a source that blocks: run calls it once when
                                        it stops early, on the thread inside run */
    struct gpud_run_counts *counts;  /* filled as run returns; may be NULL */
};

/* The initial value of a struct gpud_callbacks: no functions, and both sizes set. */
#define GPUD_CALLBACKS_INIT \
    { (uint32_t)sizeof(struct gpud_callbacks), (uint32_t)sizeof(struct gpud_task_desc), \
      0, 0, 0, 0, 0, 0, 0 }

/*
 * Pulls tasks from a source and delivers every event until all tasks have ended.
 *
 * Backpressure: while the queue is full, run requests one task from the source.  That
 * task waits for room, and run requests no further task until there is some.  The
 * workers stay: run may be called again unless a callback, stop or close ended it.
 *
 * Outcomes that no thread fetches with gpud_dispatcher_wait occupy the queue.  While
 * they fill it, run waits, until a stop or close with RUNNING or NOW.
 *
 * After 0, GPUD_ECALLBACK, GPUD_ESOURCE, GPUD_EREFUSED, GPUD_ENOWORKER and
 * GPUD_ESTOPPED every pulled task has had its outcome delivered.  After any other code
 * run has pulled nothing [C12].
 *
 * Parameters:
 *   d          the dispatcher
 *   source     supplies the tasks
 *   callbacks  receive the events; callbacks.counts receives the counts and the value
 *   user       passed to the source and to each callback
 *   reterr     receives value, field and reason of a failure, may be NULL
 * Returns: 0.  Once run has begun, a failure is the first of GPUD_ECALLBACK,
 * GPUD_ESOURCE, GPUD_EREFUSED, GPUD_ENOWORKER and GPUD_ESTOPPED whose condition holds.
 * With any other code run has not begun.
 * Errors:
 *   GPUD_ECALLBACK  one of callbacks returned a value other than 0
 *   GPUD_ESOURCE    source returned a negative value, or more than n
 *   GPUD_EREFUSED   a task of source was refused
 *   GPUD_ENOWORKER  a task ended NO_WORKER
 *   GPUD_ESTOPPED   stop or close was called, before or during the call of run
 *   GPUD_EBUSY      another thread is inside poll, run or destroy with d
 *   GPUD_EINVAL     d, source or callbacks is NULL
 *   GPUD_ESTRUCT    callbacks.struct_size, callbacks.task_size or counts.struct_size is
 *                   not a valid size
 *   GPUD_EVERSION   callbacks are of a later version and use a field that this library
 *                   does not know
 *   GPUD_EREENTER   run was called in one of its callbacks, or in a worker
 *   GPUD_ECLOSED    close, or a stop that a thread has already processed, had ended
 *                   intake before run
 *   GPUD_EFORKED    d belongs to the parent of this forked process
 *   GPUD_ENOMEM     no memory for the events and tasks of one round
 *   GPUD_ESYSTEM    the system refused the feeder thread
 * Owns: borrows callbacks and counts until it returns.
 * Waits: until the source has ended and all tasks have.
 * Thread: one at a time.  From callbacks: no.  Process: host.  Since: 1.
 * See: gpud_source_fn, gpud_event_fn, gpud_callbacks, gpud_run_counts,
 * gpud_dispatcher_stop.
 * Example: examples/transcribe/main.c
 */
GPUD_API int gpud_dispatcher_run(gpud_dispatcher *d, gpud_source_fn *source,
                                 const struct gpud_callbacks *callbacks, void *user,
                                 struct gpud_error *reterr);

/* Selects how gpud_dispatcher_cancel cancels. */
enum gpud_cancel {
    GPUD_CANCEL_SOFT = 0, /* never kills: the task sees gpud_task_cancelled and decides
                             how it ends */
    GPUD_CANCEL_HARD = 1  /* kills the worker if the task still runs after option grace */
};

/*
 * Cancels one task.
 *
 * A task that has not started ends CANCELLED at once.  For a running task
 * gpud_task_cancelled becomes true, and SIGALRM interrupts process.  A cancelled task
 * is not tried again.
 *
 * HARD: a task that returns after this call ends CANCELLED, phase PROCESS.  A task that
 * had returned, or exceeded its limit, before this call keeps its outcome.  After
 * option grace the keeper kills the worker: CANCELLED, phase HARD.
 *
 * SOFT: the task ends as process returns: SUCCESS for 0, CANCELLED for GPUD_ECANCELLED,
 * else ERROR.  Its time limit holds as before.  The worker lives, with everything that
 * it has loaded.  HARD may follow SOFT.
 *
 * External work: a task that was granted and not started ends CANCELLED at once, without
 * an event REVOKED.  Once it has started, each request is an event REVOKED.  HARD: SOFT
 * with the time of the kill in revoke_by, and after option grace HARD.  SOFT: SOFT with
 * revoke_by GPUD_NEVER, or that of an earlier request.  gpud_dispatcher_ended has the
 * outcomes.
 *
 * Parameters:
 *   d        the dispatcher
 *   task_id  the id that submit returned
 *   how      GPUD_CANCEL_SOFT or GPUD_CANCEL_HARD
 * Returns: 0.  On failure nothing has changed.
 * Errors:
 *   GPUD_ENOTFOUND  no task with task_id is queued, sent or running
 *   GPUD_EINVAL     d is NULL, or how is none of enum gpud_cancel
 *   GPUD_EREENTER   d is used in a worker, not in the host
 *   GPUD_EFORKED    d belongs to the parent of this forked process
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_task_cancelled, gpud_dispatcher_wait, gpud_dispatcher_stop, option grace.
 * Example: docs/howto/deadlines-and-cancel.md
 */
GPUD_API int gpud_dispatcher_cancel(gpud_dispatcher *d, uint64_t task_id, uint32_t how);

/*
 * Ends the intake of a dispatcher, also from a signal handler.
 *
 * The call is async-signal-safe: a SIGINT handler may call it.  Intake ends at once.
 * The rest happens when a thread drives next.  Later calls of stop and close can only
 * request more haste.
 *
 * Parameters:
 *   d    the dispatcher
 *   how  GPUD_FINISH_ALL, RUNNING or NOW: the tasks that still run
 * Returns: 0.  errno stays as it was.  On failure nothing has changed.
 * Errors:
 *   GPUD_EINVAL    d is NULL, or how is none of ALL, RUNNING and NOW
 *   GPUD_EREENTER  d is used in a worker, not in the host
 *   GPUD_EFORKED   d belongs to the parent of this forked process
 * Thread: any, also signal handlers.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_close, gpud_dispatcher_run, gpud_dispatcher_cancel.
 * Example: examples/tinybatch.c
 */
GPUD_API int gpud_dispatcher_stop(gpud_dispatcher *d, uint32_t how);

/*
 * Ends intake and limits the time for the tasks that are left.
 *
 * The call does not wait: poll until GPUD_EEND to collect the outcomes that are left.
 * Later calls can only request more haste, and change nothing otherwise.
 *
 * Of several calls the earliest limit holds.  When it expires, tasks that have not
 * started end CANCELLED, and the keepers kill the workers of running tasks.  Such a
 * task ends CANCELLED, phase HARD, code GPUD_ETIMEOUT.  It is never tried again, and
 * its text names the limit.  A LOG event of level WARNING (option log_level) has the
 * number of these tasks.  gpud_dispatcher_destroy has a limit of its own.
 *
 * A close does not end a pause or a drain.  After GPUD_FINISH_ALL the tasks of a paused
 * class, and tasks that fit on paused or drained devices alone, wait until the class
 * resumes or a device is returned, or for the limit.  gpud_dispatcher_explain names them.
 *
 * External work that has started gets an event REVOKED where a worker would be killed.
 * After GPUD_FINISH_LEAVE it gets no event and no outcome.  Neither GPUD_EEND nor
 * gpud_dispatcher_destroy waits for it.  The host may hand it to another dispatcher with
 * gpud_dispatcher_adopt.
 *
 * Parameters:
 *   d      the dispatcher
 *   how    a value of enum gpud_finish: the tasks that still run
 *   limit  nanoseconds from this call; any value, since it is often the rest of a
 *          deadline; 0: option close_limit for GPUD_FINISH_NOW, and no limit for ALL,
 *          RUNNING and LEAVE, where tasks end on their own; GPUD_NEVER: no limit
 * Returns: 0.  On failure nothing has changed.
 * Errors:
 *   GPUD_EINVAL    d is NULL, or how is none of enum gpud_finish
 *   GPUD_EREENTER  d is used in a worker, not in the host
 *   GPUD_EFORKED   d belongs to the parent of this forked process
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_stop, gpud_dispatcher_poll, gpud_dispatcher_destroy, option
 * close_limit.
 * Example: examples/hello.c
 */
GPUD_API int gpud_dispatcher_close(gpud_dispatcher *d, uint32_t how, uint64_t limit);

/*
 * Ends a dispatcher and frees everything; *d becomes NULL.
 *
 * The dispatcher ends as stop and close have requested, and as GPUD_FINISH_NOW if
 * neither was called.  After ALL the call waits for all accepted tasks, after RUNNING
 * for running ones.  Then it waits until the workers have ended.
 *
 * Option close_limit counts from this call, regardless of the limit of close.  When it
 * or an earlier limit of close expires, the keepers kill the workers of running tasks.
 * To wait for tasks of any length, poll until GPUD_EEND first.  The call returns within
 * the limit even if a worker cannot be killed [C10].  It does not wait for a keeper
 * that is stopped at that time: the spawner kills that keeper, and a worker that the
 * keeper still has dies with it.
 *
 * It does not wait for external work, since no event of it can be read any more.  Work
 * that has started goes on, as after GPUD_FINISH_LEAVE: end it yourself.  Tasks that have
 * not started end CANCELLED, also after ALL.  Both count in ret_uncollected.  After ALL a
 * task of a worker that waits for what such work has is waited for, until close_limit.
 *
 * If another thread waits for room in submit, or copies data there, its submit first
 * returns GPUD_ECLOSED.  Kept events stay valid.  Buffers and lent events end.  In a
 * process that the host has forked the call only closes and frees.
 *
 * Parameters:
 *   d                the address of the dispatcher's pointer; NULL is fine, also in *d
 *   ret_uncollected  receives the number of outcomes that no call has returned, awaited
 *                    ones included; may be NULL
 * Returns: 0 [C1] [C19].  On failure nothing has changed.
 * Errors:
 *   GPUD_EBUSY     a thread is inside poll, run, wait, ready or destroy with d
 *   GPUD_EREENTER  destroy was called in a callback of run
 * Waits: for tasks and workers, up to the limit above.
 * Thread: one.  From callbacks: no.  Process: host.  Since: 1.
 * See: gpud_dispatcher_close, gpud_dispatcher_poll, gpud_fini, option close_limit.
 * Example: examples/hello.c
 */
GPUD_API int gpud_dispatcher_destroy(gpud_dispatcher **d, uint64_t *ret_uncollected);

#ifdef __cplusplus
}
#endif
#endif
