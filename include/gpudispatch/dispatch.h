/* SPDX-License-Identifier: MIT */
/*
 * dispatch.h - the host's side: make a dispatcher, give it tasks, learn how each
 * one ended.
 *
 * Life: gpud_init (first thing in main) -> gpud_dispatcher_create -> run, or submit
 * and poll or wait -> close -> destroy -> gpud_fini.  Costs: one tiny process for the program
 * (the spawner), one tiny process (the keeper) and one worker process per slot.
 *
 * Guarantees, by id: every accepted task gets exactly one outcome, delivered exactly
 * once [C1]; only a task that had been claimed and had not ended is charged with its
 * worker's death [C2]; within a priority the host sends tasks in order of submission,
 * and every idle worker gets one task before any gets a second; a task that was sent
 * ahead to a worker in a long task goes back to its place in the queue and may start
 * after later ones, sent_ahead = 1 gives strict start order [C5]; if the host dies in
 * any way, every worker and everything it started is gone within 1 s [C11]; no signal
 * disposition, mask, directory, environment or stdio of the host is changed, and no child
 * of the host is waited for but our own [C13]; memory is bounded [C18]; nothing remains
 * after destroy [C19]; idle processes do not wake up, except the keeper of a stopped
 * worker, once a second until stop_limit; before it sleeps a worker looks for its next
 * task for up to 30 us after a batch of 4 or more and up to 100 us after setup, and its
 * alarm may ring once after its last task with a limit [C20].
 *
 * If a process that a worker has started traces the worker (ptrace), as crash reporters
 * do, and the worker dies or is killed, the keeper kills the tracer, and the outcome
 * arrives within 1 s [C8].  For a death that the keeper did not cause there are two
 * exceptions.  Without pidfds (Linux before 5.3) the keeper checks once a minute.  If the
 * tracer holds other threads of the worker as well, the keeper notices the death at a
 * limit, at a cancel, or when another process that the worker had started ends.  The
 * keeper does not kill a tracer that the worker has not started, such as a debugger: the
 * outcome arrives when that detaches, or, after a kill, at kill_limit [C10].
 *
 * The keeper kills a worker through its pidfd, else with kill(2).  If seccomp denies
 * both, the keeper exits, and the kernel kills the worker by its parent-death signal; the
 * worker's exit kind is then LOST.  The outcome's text and a LOG event (WARNING) name the
 * calls that failed.  If the worker survives this too (seccomp denied prctl), its slot is
 * QUARANTINED at kill_limit [C10].  This is the one exception to C11: if the host dies
 * then, this worker lives until its task returns.
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
 * Records the definitions, forks the spawner and waits for its reply, 10 s at most.
 * Call it once, early in main: after option parsing, daemonising and dropping
 * privileges, before threads, CUDA and big allocations.
 * Records may be shorter than this header's, as of a program that was built before: all of one length,
 * the first one's struct_size.
 * Returns: 0; GPUD_EINVAL (no definition, a bad or doubled name, no process
 * function, a struct_size that is not the first one's), GPUD_EVERSION (struct_size is of a later version), GPUD_EPROTOCOL (this
 * process was forked by a program that a dispatcher has executed as worker), GPUD_EBUSY when already
 * initialised in this process, GPUD_ESPAWNER (the spawner ended, or did not reply within
 * 10 s), GPUD_ENOMEM, GPUD_ESYSTEM; on failure nothing has changed.
 * If the system refuses a call that the library needs (a seccomp profile, a limit),
 * gpud_init, gpud_dispatcher_create, gpud_dispatcher_device_add and gpud_monitor_open fail
 * with GPUD_ESYSTEM, and *reterr names the call and its errno.  A call that only keepers
 * and workers make is named in the SETUP_FAILURE of each start, in the error of
 * gpud_dispatcher_ready and in the text of NO_WORKER.
 * In a program that a dispatcher has executed (start EXEC) it runs the worker and does not return.
 * Owns: copies the array and the names.  Thread: one, early.  Process: either.  Since: 1.
 */
GPUD_API int gpud_init(const struct gpud_definition *definitions, size_t n, struct gpud_error *reterr);

/*
 * Ends the spawner and forgets the definitions.  Dispatchers must be destroyed and monitors closed first.
 * Returns: 0, also when not initialised; GPUD_EBUSY while one lives, nothing
 * has changed.  In a process forked from the host it only frees.
 * Thread: one.  Process: host.  Since: 1.
 */
GPUD_API int gpud_fini(void);

/* Who drives when no thread of yours is inside poll, run, wait or ready. */
enum gpud_drive {
    GPUD_DRIVE_THREAD = 0, /* a library thread takes over after 1 ms (the default) */
    GPUD_DRIVE_CALLER = 1  /* nobody: limits and restarts happen inside your calls only */
};

/* How far to finish: for stop and close. */
enum gpud_finish {
    GPUD_FINISH_ALL = 0,     /* accept no more; all accepted tasks end by themselves */
    GPUD_FINISH_RUNNING = 1, /* as ALL, but what has not started ends CANCELLED */
    GPUD_FINISH_NOW = 2      /* as RUNNING, and what runs is cancelled as by GPUD_CANCEL_HARD */
};

/*
 * How workers come into being.
 *
 * EXEC runs a program that comes to a gpud_init of its own, on its main thread.  There gpud_init
 * does not return: it finds the definition by its name, runs the worker and leaves by _exit.  "The
 * same program" is the file that runs now, also when it was deleted or replaced since, with the
 * arguments that /proc/self/cmdline shows at gpud_init: whatever main does before gpud_init, each
 * worker does too.  Such a worker has the environment and directory of gpud_init, no file but 0, 1,
 * 2 and ours, its own session and group, and default signals; the host may use CUDA and threads.
 *
 * A program that cannot be a worker is a SETUP_FAILURE and counts towards failures_in_a_row:
 * ENOPROGRAM (it is missing, or its interpreter), ENOTEXEC (it cannot be executed), EOTHERVERSION,
 * ENOANSWER (it ended, or two minutes or setup_limit passed, before gpud_init; or gpud_init was
 * called in a child of it or on another thread), EPROTOCOL (it answered nonsense), ENODEFINITION (it
 * has none of that name), EPLUGIN.
 */
enum gpud_start {
    GPUD_START_AUTO = 0, /* EXEC where argv or plugin is given, where CUDA was in use at gpud_init, or where
                            credentials have changed since; else FORK (the default) */
    GPUD_START_FORK = 1, /* forked from the program as it was at gpud_init */
    GPUD_START_EXEC = 2  /* forked and executed: the same program again, option argv, or option plugin */
};

/*
 * Where a worker's stdout and stderr go.
 *
 * With TAIL and EVENTS the host reads both streams and keeps the last 8 KiB of each
 * worker.  An outcome carries these bytes in two parts.  `output` begins with the first
 * byte that the host read after it saw that the attempt had started.  `output_before`
 * holds the bytes before that one: of setup and of earlier tasks.  Each outcome whose
 * task has started has both parts, of its last attempt; a SUCCESS without output has
 * neither.  A SETUP_FAILURE or CLEANUP_FAILURE event carries all these bytes as `output`.
 * [C18]
 *
 * Before the host takes the end of a task it reads what the worker has written: the bytes
 * that a task wrote before process returned are in its outcome.  The exceptions:
 * - The worker printed nothing during its last 16 tasks, and the host polled its
 *   descriptors less than 1 ms ago.  The host may then miss the task's bytes; they are in
 *   the next outcome of the worker.
 * - Tasks are sent ahead (option sent_ahead), or run in a batch.  A line may then be in
 *   the outcome of a neighbour, or in both. sent_ahead = 1 prevents the former.
 * - The bytes are still in a buffer of the worker, such as a line of stdout without its
 *   end.
 *
 * With EVENTS each line is a LOG event as well, of level INFO, with slot, task_id and
 * stream.  A line ends with a newline, which is not part of the text.  A line of more
 * than 1,024 bytes becomes events of 1,024 bytes each and one for the rest.  When the
 * worker ends, the bytes behind the last newline become an event, ahead of the outcome or
 * failure.  A zero byte becomes a blank. task_id is the task that ran when the host read
 * the line (of a batch the first member), 0 between tasks.  Like other LOG events, lines
 * are dropped while too many events wait, and counted in events_dropped.  EVENTS does not
 * keep the order between stdout and stderr, TAIL does.
 *
 * The host reads nothing from a worker that prints nothing (counter output_reads).  It
 * polls such a worker's output when it takes the ends of the first 16 tasks, and later
 * only after it was elsewhere for a millisecond (counter output_polls).  With TAIL one INFO line per
 * dispatcher names this option when the first worker prints.
 */
enum gpud_stdio {
    GPUD_STDIO_TAIL = 0,    /* to the host, for `output` of events (the default) */
    GPUD_STDIO_INHERIT = 1, /* where the host's go when the dispatcher is created */
    GPUD_STDIO_FILE = 2,    /* appended to option stdio_path, which each worker opens */
    GPUD_STDIO_DISCARD = 3, /* nowhere */
    GPUD_STDIO_EVENTS = 4   /* as TAIL, and each line is a LOG event */
};

/*
 * Which ends of an attempt may be tried again while attempts are left: bits.
 * Such an end gives no outcome and its result is dropped.  The task waits (retry_backoff), counts as
 * queued meanwhile, and returns to its old place in the queue.  At most max_attempts are made, which is 1 unless you
 * set it; the outcome is that of the last one, and its text tells the ends of all.  What was cancelled is not tried again, nor
 * what ends after a stop or close that lets nothing more start.                               [C3]
 */
enum gpud_retry {
    GPUD_RETRY_CRASH = 1,   /* the worker died */
    GPUD_RETRY_ERROR = 2,   /* process returned another value or called fail */
    GPUD_RETRY_TIMEOUT = 4, /* the attempt passed its limit, or its worker stop_limit */
    GPUD_RETRY_DEVICE = 8   /* the device failed under it; on cpu:N none ever does */
};

/*
 * What the library does with CUDA in a worker that has GPUs: bits.  By default it makes sure, before setup, that
 * the worker sees exactly its devices; makes the first one current with blocking synchronisation (a
 * worker that waits for its GPU sleeps); after each task waits for the GPU and looks for an error, so that
 * a fault is charged to the task that caused it; and runs a canary (a context, a small kernel, its result
 * compared) after each kill and before a device returns to use.
 */
enum gpud_cuda {
    GPUD_CUDA_SPIN = 1,      /* waiting spins on a CPU core: some microseconds sooner */
    GPUD_CUDA_NO_BIND = 2,   /* no device is made current; setup does that */
    GPUD_CUDA_NO_CHECK = 4,  /* no wait and no look after a task; process does that, or a fault may hit a later task */
    GPUD_CUDA_NO_CANARY = 8, /* no canary; a device that was quarantined returns with its driver's word alone */
    GPUD_CUDA_PIN = 16       /* the arenas for task data and results are pinned, in pieces, where that works */
};

/*
 * How a worker on GPUs finds its devices in CUDA_VISIBLE_DEVICES (option visible), in the
 * order of its set.  CUDA_DEVICE_ORDER is PCI_BUS_ID beside it, and GPUD_DEVICE_UUIDS
 * has the UUIDs in each case.
 *
 * Some frameworks read only numbers there, such as vLLM (int() of each entry), others
 * take both.  A number is a GPU's place by PCI address among the GPUs that the process
 * can open, and changes when a GPU before it is lost.  So each worker compares the UUIDs
 * that CUDA shows with its own before setup: a wrong number never runs a task.
 */
enum gpud_visible {
    GPUD_VISIBLE_AUTO = 0, /* Numbers where they are certain at the start of the worker:
                              no GPU of the machine is in MIG mode, none of the dispatcher
                              is LOST, CUDA finds no MPS daemon, and NVML's number of
                              each is its place by PCI address among the GPUs in
                              /proc/driver/nvidia/gpus.  Else UUIDs.  A wrong number is a
                              SETUP_FAILURE; after it workers get UUIDs until the monitor
                              of their devices has died and another one has listed all
                              GPUs (the default) */
    GPUD_VISIBLE_UUID = 1, /* "GPU-5c10...,GPU-77cc..." */
    GPUD_VISIBLE_INDEX = 2 /* "3,0".  create and device_add refuse MIG instances, which
                              have no number (GPUD_EINVAL).  If CUDA's numbers differ,
                              each start is a SETUP_FAILURE, code GPUD_EDEVICE, whose
                              text has the number and the UUID that was expected */
};

/*
 * Options of a dispatcher.  Zero means the default given in brackets.
 *
 * Times are nanoseconds: GPUD_S(30) is 30 s.  create refuses a time of 2 to 999 ns, and
 * one of 2^63 ns and more that is not GPUD_NEVER, with GPUD_EINVAL: "task_limit is 30 ns;
 * times are nanoseconds, GPUD_S(30) is 30 s".  GPUD_AT_ONCE in grace, memory_wait,
 * batch_wait, result_wait and the backoffs is no time at all; every other time refuses it.  A cap below
 * its backoff counts as the backoff.
 */
struct gpud_options {
    uint32_t struct_size;
    uint32_t drive;              /* enum gpud_drive */
    const char *definition;      /* name given to gpud_init, by the program that workers run [the only one] */
    const char *devices;         /* comma-separated, blanks around an entry are ignored:
                                    "all" (GPUs), an index ("0"), "gpu:0", a MIG instance "0:1", a UUID or
                                    a beginning of one that fits one device ("GPU-5c", "MIG-..."), "cpu:N" (N CPU slots),
                                    "fake:N" or "fake:N,script=FILE" (see docs/reference/fake-scripts.md); each with "/K" for K workers per device.
                                    Indices and "all" count what CUDA_VISIBLE_DEVICES of the host allows, in its order (unset: all, in
                                    the order of PCI addresses, in which its own numbers count, too); see docs/explain/devices.md ["cpu:1"] */
    uint32_t queue_size;         /* tasks accepted and not yet delivered [1,024], at most 1,048,576 */
    uint32_t sent_ahead;         /* tasks at a worker, the running one included, 1..64;
                                    1: strict start order, see C5 above
                                    [2, and up to 64 while the mean run time is below 0.5 ms] */
    uint64_t payload_budget;     /* bytes of shared memory for task data and results
                                    [a quarter of what machine or memory cgroup has left] */
    const void *setup_data;      /* bytes every worker sees in setup; copied */
    uint64_t setup_size;
    uint64_t seed;               /* base for gpud_worker_seed */
    uint64_t setup_limit;        /* [15 min] */
    uint64_t task_limit;         /* for tasks that name none; one that ignores it is killed at limit + grace [GPUD_NEVER] */
    uint64_t grace;              /* between a task's limit and the kill [2 s] */
    uint64_t cleanup_limit;      /* [10 s] */
    uint64_t close_limit;        /* from destroy, or from close with NOW, until everything is killed [30 s] */
    uint64_t kill_limit;         /* The slot of a worker that is still there this long after
                                    SIGKILL is QUARANTINED.  A keeper that was ordered to
                                    start a worker and is stopped is killed after this
                                    time: a SETUP_FAILURE, and the slot gets a new keeper.
                                    [10 s; 60 s on a GPU that is no fake] */
    uint64_t backoff;            /* wait before a failed slot's next start, doubling [1 s] */
    uint64_t backoff_cap;        /* longest such wait [60 s] */
    uint32_t failures_in_a_row;  /* of setups and idle workers, no task done between: then the slot is FAILED,
                                    until gpud_dispatcher_device_return [3] */
    uint32_t max_attempts;       /* for tasks that name none [1]; see retry_causes */
    uint32_t log_level;          /* lines up to this level become LOG events [GPUD_LEVEL_INFO] */
    uint32_t slot_events;        /* 1 = each change of a slot's state is a SLOT event, but for READY <-> BUSY [0] */
    uint32_t start;              /* enum gpud_start */
    uint32_t stdio;              /* enum gpud_stdio */
    uint32_t devices_per_worker; /* each worker owns so many neighbours of the device list, up to 16; the list is
                                    divided without rest, and where it says cpu:N/K each set has K workers [1] */
    uint32_t setup_concurrency;  /* setups that may run at the same time; other slots wait in STARTING without a
                                    worker, the longest waiting first [all] */
    uint32_t max_batch;          /* tasks that process_batch may get in one call, up to 64; sent_ahead is at least that [1] */
    uint32_t retry_causes;       /* for tasks that name none: bits of enum gpud_retry [GPUD_RETRY_CRASH] */
    uint64_t batch_wait;         /* how long a worker with fewer tasks waits for more, up to 1 h [0: not at all] */
    uint64_t retry_backoff;      /* from the end of a task's first attempt to its second, doubling [0: none] */
    uint64_t retry_backoff_cap;  /* longest such wait [60 s] */
    uint64_t expires;            /* for tasks that name none: not started so long after it was accepted,
                                    a task ends TIMEOUT, phase QUEUED [GPUD_NEVER] */
    uint64_t stall_limit;        /* for tasks that name none: no gpud_task_progress for so long counts as
                                    the limit passing [GPUD_NEVER] */
    const char *const *env;      /* "NAME=value" sets, "NAME" unsets, in this order, NULL ends; for the workers only.
                                    GPUD_SLOT, GPUD_INCARNATION, GPUD_DEVICES,
                                    GPUD_DEVICE_UUIDS, GPUD_WORKER are ours, and refused;
                                    so are CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER with
                                    a GPU or a fake among devices: workers on these see
                                    their own devices (option visible), and so do workers
                                    on one that is added later, whatever env says */
    const char *cwd;             /* the workers' directory [as at gpud_init]; if it cannot be entered, SETUP_FAILURE says why */
    const char *stdio_path;      /* for GPUD_STDIO_FILE, relative to the workers' directory; {slot} in it becomes the
                                    slot's number; if it cannot be opened, SETUP_FAILURE says why */
    const char *const *argv;     /* start EXEC by itself: the program that calls gpud_init and its arguments, NULL ends; without
                                    a slash it is looked up in PATH, once, now.  It must know from its arguments that it
                                    is a worker: a host that names itself needs one more [the same program again] */
    const char *plugin;          /* start EXEC by itself: a shared object for the bundled worker program, see plugin.h */
    const gpud_shared *setup_shared; /* in place of setup_data: every worker maps it, nothing is copied; see shared.h */
    uint32_t cuda;               /* bits of enum gpud_cuda; on GPUs and fakes only [0] */
    uint32_t canary_passes;      /* canaries in a row that bring a device back [2] */
    uint64_t canary_backoff;     /* wait between such tries, doubling [10 s] */
    uint64_t canary_backoff_cap; /* longest such wait [5 min] */
    uint64_t memory_wait;        /* how long the successor of a dead worker waits for the device's memory to come back [30 s] */
    const char *xid_rules;       /* what XIDs mean, in place of the built-in table: "79=reset,43=ignore,13=restart"; words: ignore,
                                    task, restart, reset, lost, suspect, see docs/explain/devices.md [environment GPUD_XID_RULES, else none] */
    uint32_t max_tasks_per_worker; /* A worker that has ended this many attempts is
                                    replaced: it gets no further task, runs cleanup and
                                    exits, and its slot starts the next worker at once.
                                    This is no failure and costs no attempt; stats count
                                    it in restarts.  With one slot the number is exact,
                                    also with process_batch (the last batch may be
                                    smaller), and tasks wait for the next worker.  Of
                                    several slots one at a time replaces its worker: its
                                    turn lasts until the next worker is ready, or the
                                    slot is given up or out of use.  Meanwhile the number
                                    is a minimum for the others: no task waits for the
                                    replacement while another worker is idle.
                                    [0: never] */
    uint32_t reserved;
    uint64_t result_wait;        /* How long gpud_task_result_alloc and _set wait for
                                    room for a result larger than 4 KiB; GPUD_NEVER: no
                                    limit of its own.  Room comes back as outcomes are
                                    delivered and kept events released.  The wait also
                                    ends at the task's limit or stall limit, when the
                                    task is cancelled, and with a stop or close of any
                                    kind, after which none begins: collect outcomes
                                    before.  Then the call fails with GPUD_ERESULTSPACE.
                                    It does not wait for one of several tasks in a call
                                    of process_batch, nor for more than the worker's
                                    share of the payload budget holds.  A wait longer than
                                    1 s is a LOG event, level WARNING, with what is kept
                                    in the share and by whom.  [0: not at all] */
    uint64_t stop_limit;         /* The longest time that a worker may stay stopped (SIGSTOP,
                                    SIGTSTP, SIGTTIN, SIGTTOU), no matter which process
                                    stopped it; SIGCONT resets the count.  The keeper
                                    counts, in steps of at most 1 s, and only time during
                                    which it and the host's process run: stop_limit kills
                                    no worker of a job that is suspended as a whole, of a
                                    frozen container, or that a debugger has stopped.
                                    Then the worker is killed, without grace.  Its task,
                                    each member of a batch, ends TIMEOUT, phase HARD, code
                                    GPUD_ETIMEOUT, text "stopped for 60.000 s (stop_limit)";
                                    retry_causes calls it a TIMEOUT.  In setup it is a
                                    SETUP_FAILURE, in cleanup a CLEANUP_FAILURE, both with
                                    GPUD_ETIMEOUT and this text.  An idle worker is
                                    replaced: a LOG event (WARNING), which does not count
                                    in failures_in_a_row.  GPUD_NEVER: no limit.  [60 s] */
    uint32_t visible;            /* enum gpud_visible: numbers or UUIDs in the workers'
                                    CUDA_VISIBLE_DEVICES.  On GPUs and fakes only; on
                                    fakes, which no driver lists, AUTO is UUID
                                    [GPUD_VISIBLE_AUTO] */
    uint32_t reserved2;
};

#define GPUD_OPTIONS_INIT \
    { (uint32_t)sizeof(struct gpud_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/*
 * Makes a dispatcher and begins to start its workers; does not wait for setup.  Where devices has GPUs or fakes it
 * waits for what the driver says of them: up to 10 s, then the driver hangs (EDEVICE), and 1 s for a first reading of each.
 * Needs no gpud_init when option argv or plugin is given: then the dispatcher has a spawner of its
 * own, which is the bundled worker program; nothing of the host is copied, and it may use CUDA and
 * threads.  The same is done when credentials have changed since gpud_init.
 * Returns: 0 and *ret_d; GPUD_EINVAL, GPUD_EVERSION, GPUD_ENOINIT, GPUD_EFORKED,
 * GPUD_ENODEFINITION, GPUD_EDEVICE (with the entry and its position, or why there is no GPU), GPUD_ECREDS (start is FORK, and credentials have changed),
 * GPUD_ENOPROGRAM, GPUD_ENOTEXEC, GPUD_EPLUGIN (the program or plugin as it lies there now),
 * GPUD_EOTHERVERSION, GPUD_ENOANSWER, GPUD_EPROTOCOL (the bundled worker program; or this process is itself to be a worker), GPUD_ESPAWNER, GPUD_ETOOBIG (setup bytes
 * or queue_size do not fit the payload budget), GPUD_EFULL (256 dispatchers and monitors live, or the dispatchers
 * of this process would have more than 1,024 slots together), GPUD_ENOMEM, GPUD_ESYSTEM; on failure *ret_d is untouched and nothing has changed.
 * A dispatcher needs 8 to 13 file descriptors and 8 more for each slot (9 with stdio
 * EVENTS).  If fewer are free below the soft limit RLIMIT_NOFILE, create fails with
 * GPUD_ESYSTEM, sys_errno EMFILE and field "devices"; the text has the need, the
 * descriptors left and the limit.
 * Owns: copies what options point to; gives *ret_d, ended with destroy.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_create(gpud_dispatcher **ret_d, const struct gpud_options *options,
                                    struct gpud_error *reterr);

/*
 * Waits until workers are ready: `slots` of them, or with 0 all that can become ready.
 * A worker is ready once it has passed setup, also while it runs tasks.  A slot that is
 * FAILED or QUARANTINED, or whose device is drained, does not count among all.  A slot in
 * BACKOFF counts: the call waits for its next start.
 * Waits up to `wait` nanoseconds (0: checks once; GPUD_NEVER: without a limit).  Drives
 * when no other thread does.  Events wait for poll or run meanwhile.
 * Returns: 0; GPUD_ETIMEOUT (the text names what the first missing worker waits for:
 * "3 of 4 workers ready; slot 2: in setup for 12 s"); GPUD_ENOWORKER (fewer can become
 * ready, with the reason: "1 of 2 workers can be ready; slot 0: setup exited with status
 * 1"); GPUD_EINVAL (`slots` is more than the slots there are); GPUD_ECLOSED (after stop or
 * close); GPUD_EREENTER (in a callback); GPUD_EFORKED.  On failure nothing has changed.
 * Thread: any, many at once.  From callbacks: no; a source may.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_ready(gpud_dispatcher *d, uint32_t slots, uint64_t wait,
                                   struct gpud_error *reterr);

/*
 * A task to be.  Zero means the default given in brackets.
 *
 * limit, expires and stall_limit take any time in nanoseconds, since they are often the
 * rest of a deadline.  0 is the default: for a deadline that has passed give 1.  With
 * expires = 1 the task ends TIMEOUT and never starts; with limit = 1 it starts, and ends TIMEOUT.
 */
struct gpud_task_desc {
    uint32_t struct_size;
    int32_t priority;      /* higher first; equal ones are sent in order of submission */
    const void *data;      /* copied, or a buffer of gpud_dispatcher_buffer_alloc: then taken */
    uint64_t size;
    const char *label;     /* up to 63 bytes, else GPUD_ELABEL; copied; shown in stats and events */
    uint64_t tag;          /* yours; comes back with each event */
    uint64_t limit;        /* time limit of one attempt; GPUD_NEVER: none [option task_limit] */
    uint32_t max_attempts; /* starts at most [option max_attempts] */
    uint32_t cost;         /* relative cost, for the ETA only [1] */
    uint64_t expires;      /* not started so long after it was accepted: TIMEOUT, phase QUEUED, and it never
                              starts, wherever it waits; a second attempt may come later [option expires] */
    uint64_t stall_limit;  /* no gpud_task_progress for so long counts as the limit passing [option stall_limit] */
    uint32_t retry_causes; /* bits of enum gpud_retry [option retry_causes] */
    uint32_t awaited;      /* 1 = the outcome is for gpud_dispatcher_wait, poll and run do not deliver it [0] */
};

#define GPUD_TASK_DESC_INIT { (uint32_t)sizeof(struct gpud_task_desc), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/*
 * Hands one task over.
 * When queue or budget is full it answers at once (wait 0) or blocks up to `wait`
 * nanoseconds for room (GPUD_NEVER: until there is).  With DRIVE_CALLER a blocked
 * submit waits for another thread to drive.
 * Returns: 0 and *ret_id (never reused; ret_id may be NULL); GPUD_EFULL (queue_size or payload_budget
 * is used up, or memory is short), GPUD_ECLOSED, GPUD_EINVAL, GPUD_ELABEL, GPUD_ESTRUCT, GPUD_EVERSION,
 * GPUD_ETOOBIG, GPUD_EFORKED, GPUD_EREENTER (a wait inside a callback; in a worker).  On failure nothing
 * has been taken, and *reterr (may be NULL) names field, value and bound.                    [C15]
 * Owns: copies data and label; takes a buffer of buffer_alloc, on success only.
 * Thread: any.  From callbacks: with wait 0.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_submit(gpud_dispatcher *d, const struct gpud_task_desc *task, uint64_t wait,
                                    uint64_t *ret_id, struct gpud_error *reterr);

/*
 * Submits the n tasks of an array in their order, like n calls of gpud_dispatcher_submit
 * but cheaper.  Tasks of other threads may come between them, and outcomes may be
 * delivered before the call returns.  Each record has the struct_size of the first (else
 * GPUD_ESTRUCT), and they lie that many bytes apart.  `wait` is one time for the whole
 * call; a task's `expires` counts from when that task is accepted.  If a task is refused,
 * the tasks before it stay accepted, and each gets an outcome; that task and those behind
 * it are not taken: mend or leave out the one, and submit the rest.                  [C15]
 * Returns: 0, all were accepted (also for n = 0); else the code of the refused task, as
 * gpud_dispatcher_submit returns it, and the text of *reterr (may be NULL) begins with
 * its index.  *ret_accepted (may be NULL) is always written: how many were accepted, which
 * is the index of the refused one.  ret_ids (may be NULL) has room for n; only the ids of
 * accepted tasks are written.
 * Owns: copies data and labels; takes buffers of buffer_alloc, of accepted tasks only.
 * Thread: any.  From callbacks: with wait 0.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_submit_many(gpud_dispatcher *d,
                                         const struct gpud_task_desc *tasks, size_t n,
                                         uint64_t wait, uint64_t *ret_ids,
                                         size_t *ret_accepted, struct gpud_error *reterr);

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
 * one comes).  events[0].struct_size says how long one record is for the caller; each record filled says
 * the same, and holds zeros where the library that runs knows no field.
 * At most 256 events a call.  What the events point to is lent until the next poll, or kept
 * with gpud_event_keep.  Outcomes of awaited tasks are not among them.
 * Returns: the number filled, 0 when `wait` passed; GPUD_EEND when closed and all that poll
 * delivers has been delivered; GPUD_EBUSY, GPUD_EINVAL, GPUD_EREENTER (in a callback), GPUD_EFORKED.
 * Thread: one at a time, beside any number in wait.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_poll(gpud_dispatcher *d, struct gpud_event *events, size_t n, uint64_t wait);

/*
 * Waits for the outcome of one task that was submitted with awaited = 1, and gives it.
 * Waits up to `timeout` nanoseconds (0: looks once; GPUD_NEVER: until it has ended).  Drives
 * when no other thread does.  Until it is given the task counts against queue_size, and a result larger than 4 KiB against its
 * worker's share of the payload budget: while that is full of such the worker gets no task, so wait for those that may have
 * ended first.
 * Returns: 0 and *event, which must be released with gpud_event_release; GPUD_ETIMEOUT (not ended
 * yet), GPUD_ENOTFOUND (no such task, or its outcome has been given), GPUD_ENOTAWAITED, GPUD_EINVAL
 * (event is NULL), GPUD_ESTRUCT (its struct_size does not reach beyond `kept`), GPUD_EBUSY (another
 * thread waits for this task, or destroy has begun), GPUD_EFULL (queue_size events are kept),
 * GPUD_ENOMEM, GPUD_EREENTER (in a callback or a worker), GPUD_EFORKED: nothing has changed, and
 * *reterr (may be NULL) names argument and value.                                      [C1] [C15]
 * Owns: gives what *event points to, until gpud_event_release.
 * Thread: any, many at once; one per task.  From callbacks: no; a source may.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_wait(gpud_dispatcher *d, uint64_t task_id, struct gpud_event *event,
                                  uint64_t timeout, struct gpud_error *reterr);

/*
 * Gives one file descriptor for a loop of yours (poll, epoll, libuv, asyncio): readable, as a level,
 * while gpud_dispatcher_poll with wait 0 would deliver or do something.
 * When it is readable call that until it answers 0; read nothing from the fd.  With DRIVE_THREAD it
 * tells of events, and such a poll only fetches them: the library thread drives.  With DRIVE_CALLER
 * it also asks you to drive: your poll sends tasks, keeps limits and replaces workers.  After the
 * last event it stays readable, for GPUD_EEND.  It is the same fd each time, made at the first call.
 * Returns: the fd; GPUD_EINVAL, GPUD_ESYSTEM, GPUD_EFORKED: nothing has changed.
 * Owns: lends it until destroy, which closes it: take it out of your loop before; never close it.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_fd(gpud_dispatcher *d);

/*
 * Keeps what an event points to beyond the next poll, or the end of the callback, until
 * gpud_event_release; also beyond destroy.
 * `event` is one of the last poll, or a copy of what a callback received; its pointers are changed
 * to where the bytes lie from now on.  Results larger than 4 KiB are not copied: they stay where the
 * worker wrote them and count against its share of the payload budget, so a worker whose share is
 * kept fails tasks with GPUD_ERESULTSPACE, at once or after option result_wait.
 * At most queue_size events are kept at a time.
 * Returns: 0; GPUD_EINVAL (not an event that is lent now, or kept already, or its struct_size does
 * not reach beyond `kept`), GPUD_EFULL, GPUD_ENOMEM, GPUD_EFORKED: nothing has changed.       [C18] [C19]
 * Owns: gives what *event points to, until gpud_event_release.
 * Thread: any, while the event is lent.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_event_keep(gpud_dispatcher *d, struct gpud_event *event);

/*
 * Gives back what a kept event points to, once per event: of wait, or kept with gpud_event_keep.
 * Its pointers become NULL or "".  The dispatcher may be gone.  In a process forked from the host it
 * only frees.
 * Returns: 0, also when the event is not kept; GPUD_EINVAL (NULL, or its struct_size does not reach beyond `kept`).
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_event_release(struct gpud_event *event);

/*
 * Gives run the next tasks.
 * Fill up to `n` records, 1 to 64, from tasks[0] on, and return how many: 0 is the end, a negative
 * value a failure.  Fewer than n are fine: waiting for more only delays those.  The records come in as
 * GPUD_TASK_DESC_INIT.  What they point to must stay until the next call, or until run returns.
 * A failure ends run with GPUD_ESOURCE, a task that submit would refuse, or one with awaited = 1, with
 * GPUD_EREFUSED: the tasks before it run; it and those after it are not taken, nor are their buffers.
 * Runs in the host, on the feeder thread of run, never concurrent with itself, no lock held; it may
 * block, which delays neither dispatch nor limits.  May call submit, wait, cancel, stop and stats.
 */
typedef int(gpud_source_fn)(struct gpud_task_desc *tasks, size_t n, void *user);

/*
 * Receives one event.  Runs in the host on the thread inside run, one at a time, no lock
 * held; while it runs, dispatch and limits go on if drive is THREAD.  May call submit with
 * wait 0, cancel, stop and stats.  Return 0 to go on.  Any other value closes the dispatcher as
 * GPUD_FINISH_RUNNING does: what runs ends, the rest is CANCELLED, these outcomes still come here, and
 * run returns GPUD_ECALLBACK.  The first such value is kept in the counts.
 */
typedef int(gpud_event_fn)(const struct gpud_event *event, void *user);

/* What a run has seen: filled as it returns, unless it refuses its arguments (EINVAL, ESTRUCT, EVERSION,
 * EFORKED).  Outcomes are those it delivered, also of tasks that were submitted beside it. */
struct gpud_run_counts {
    uint32_t struct_size;
    int32_t value;       /* what the callback or the source returned that ended the run; 0 = neither did */
    uint64_t pulled;     /* tasks that the source gave and run took */
    uint64_t success;    /* outcomes SUCCESS */
    uint64_t error;      /* ERROR */
    uint64_t timeout;    /* TIMEOUT */
    uint64_t crashed;    /* CRASHED */
    uint64_t cancelled;  /* CANCELLED */
    uint64_t no_worker;  /* NO_WORKER */
};

#define GPUD_RUN_COUNTS_INIT { (uint32_t)sizeof(struct gpud_run_counts), 0, 0, 0, 0, 0, 0, 0, 0 }

struct gpud_callbacks {
    uint32_t struct_size;
    uint32_t task_size;              /* sizeof(struct gpud_task_desc) where the source was compiled;
                                        GPUD_CALLBACKS_INIT sets it [80, as in version 0.1] */
    gpud_event_fn *on_success;       /* outcome SUCCESS */
    gpud_event_fn *on_error;         /* ERROR, CRASHED, CANCELLED, NO_WORKER */
    gpud_event_fn *on_timeout;       /* TIMEOUT [on_error] */
    gpud_event_fn *on_setup_failure; /* event SETUP_FAILURE [on_event] */
    gpud_event_fn *on_event;         /* every other event */
    void (*unblock)(void *user);     /* called once when the run stops early, on run's thread, so that
                                        a source that blocks can be woken; may be NULL */
    struct gpud_run_counts *counts;  /* filled as run returns; may be NULL */
};

#define GPUD_CALLBACKS_INIT \
    { (uint32_t)sizeof(struct gpud_callbacks), (uint32_t)sizeof(struct gpud_task_desc), 0, 0, 0, 0, 0, 0, 0 }

/*
 * Pulls tasks from `source` until it ends, and delivers every event until all tasks have
 * ended.  Backpressure: with the queue full the source is asked for one task, which waits for room, and
 * then for no more until there is some.  The workers stay: run may be called again unless a callback, stop or close ended it.  Outcomes that nobody fetches with
 * gpud_dispatcher_wait occupy the queue.  While they fill it, run waits, until a stop or close that
 * lets nothing more start.
 * Returns the first code of this list whose condition holds; every pulled task has had its outcome
 * delivered:
 * GPUD_ECALLBACK (a callback returned another value than 0), GPUD_ESOURCE (the source returned a
 * negative value, or more than n), GPUD_EREFUSED (a task of the source was refused), GPUD_ENOWORKER (a
 * task ended NO_WORKER), GPUD_ESTOPPED (stop or close was called), 0.
 * After any other code nothing was pulled: GPUD_EBUSY, GPUD_EINVAL, GPUD_ESTRUCT, GPUD_EVERSION,
 * GPUD_EREENTER, GPUD_ECLOSED, GPUD_EFORKED, GPUD_ENOMEM, GPUD_ESYSTEM.  On failure *reterr (may be NULL)
 * has value, field and reason; gpud_callbacks.counts has the value and the counts.        [C12]
 * Thread: one at a time.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_run(gpud_dispatcher *d, gpud_source_fn *source,
                                 const struct gpud_callbacks *callbacks, void *user,
                                 struct gpud_error *reterr);

/* How to cancel. */
enum gpud_cancel {
    GPUD_CANCEL_SOFT = 0, /* never kills: the task sees gpud_task_cancelled and decides how it ends */
    GPUD_CANCEL_HARD = 1  /* its worker is killed if the task still runs after option grace */
};

/*
 * Cancels one task (how: enum gpud_cancel).  A task that has not started ends CANCELLED at once.  In one
 * that runs gpud_task_cancelled becomes true and SIGALRM interrupts it; it is not tried again.
 * HARD: a task that returns after this call ends CANCELLED, phase PROCESS; one that had returned, or
 * passed its limit, before keeps its outcome.  After option grace its worker is killed: CANCELLED,
 * phase HARD.
 * SOFT: the task ends as process returns: SUCCESS for 0, CANCELLED for GPUD_ECANCELLED, else ERROR.  Its
 * time limit holds as before.  The worker lives, with all it has loaded.  HARD may follow SOFT.
 * Returns: 0; GPUD_ENOTFOUND when no live task has this id; GPUD_EINVAL; GPUD_EFORKED, GPUD_EREENTER (in
 * a worker).
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
 * Ends intake (how: enum gpud_finish) and sets a time limit for the rest.  Does not wait: poll until
 * GPUD_EEND to collect what is left.  Later calls may only ask for more haste; others change nothing.
 * `limit` counts from this call, in nanoseconds, and takes any value: it is often the rest of a deadline.
 * 0 means no limit for ALL and RUNNING, where tasks end by themselves, and option close_limit for NOW;
 * GPUD_NEVER means none.  (gpud_dispatcher_destroy has a limit of its own.)  Of several calls the earliest
 * limit holds.  When it passes, what has not started is cancelled, and what runs is killed: it ends
 * CANCELLED, phase HARD, code GPUD_ETIMEOUT, is never tried again, and its text names the limit.  A LOG
 * event of level WARNING (option log_level) says how many tasks that were.
 * Returns: 0; GPUD_EINVAL; GPUD_EFORKED, GPUD_EREENTER (in a worker).
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_close(gpud_dispatcher *d, uint32_t how, uint64_t limit);

/*
 * Ends the dispatcher as close and stop asked, and as GPUD_FINISH_NOW where neither was called: after
 * ALL it waits for the accepted tasks, after RUNNING for those that run.  Option close_limit counts from
 * this call, whatever limit close had; when it passes, or an earlier limit of close, what still runs is
 * killed.  To wait for tasks of any length, poll until GPUD_EEND first.  Then it waits until the
 * workers are gone and frees everything; *d becomes NULL.  Returns within the limit, also
 * when a worker cannot be killed.  A keeper that is stopped then is not waited for: it is
 * killed, and a worker that it still has dies with it.  Outcomes that nobody collected, of
 * whatever kind, are counted in *ret_uncollected (may be NULL).          [C1] [C10] [C19]
 * A submit that waits for room or copies in another thread answers ECLOSED first.  Kept events stay valid.
 * Returns: 0, also for NULL; GPUD_EBUSY while a thread is inside poll, run, wait or ready,
 * GPUD_EREENTER in a callback: nothing has changed.  In a process forked from the host it only
 * closes and frees.
 * Thread: one.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_destroy(gpud_dispatcher **d, uint64_t *ret_uncollected);

#ifdef __cplusplus
}
#endif
#endif
