/* SPDX-License-Identifier: MIT */
/*
 * error.h - the error codes, and the record that explains a failure.
 *
 * Every call that can fail returns 0 or a count on success, and one of the negative codes
 * below on failure.  errno has no meaning after a call.  Calls with several causes also
 * take an optional `struct gpud_error *reterr`, which names the field and the value at
 * fault.
 *
 * A failed call has changed nothing and has taken nothing.  There are two exceptions:
 * gpud_dispatcher_submit_many may have accepted the first tasks of its array, and counts
 * them in *ret_accepted; gpud_dispatcher_run may have run tasks.  The library never
 * aborts, exits or prints.  [C15]
 *
 * Outcomes of tasks are not errors: see `enum gpud_outcome` in types.h.  The field code
 * of an event uses these codes as well.
 *
 * Stability: stable (appending only).
 */
#ifndef GPUDISPATCH_ERROR_H
#define GPUDISPATCH_ERROR_H

#include <stdint.h>

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The one list of codes, as X(name, value, sentence).
 *
 * Causes and remedies:
 *   EINVAL         an argument, an option or a field of a task is NULL, out of range, or
 *                  contradicts another one.  Remedy: read field and text of the
 *                  gpud_error; a call without reterr lists its causes in its own comment.
 *   ENOMEM         the host could not get memory, or machine or memory cgroup has not
 *                  enough left for gpud_shared_create.  Remedy: free memory, raise the
 *                  cgroup's limit, or use a smaller queue_size.
 *   ENOINIT        gpud_dispatcher_create needs gpud_init, since options argv and plugin
 *                  are NULL.  Remedy: call gpud_init early in main, or set one of the
 *                  two.
 *   EFORKED        the handle was made by the process that this one was forked from.
 *                  Remedy: call gpud_init in the child and make handles of its own.
 *   EBUSY          another thread is inside poll, run, wait or ready; another thread
 *                  waits for the same task; gpud_fini found a dispatcher or a monitor;
 *                  gpud_init was called before; a class has this name already.  Remedy:
 *                  end the other use first; choose another name for the class.
 *   EFULL          queue_size tasks are accepted and not delivered; the part of
 *                  payload_budget for task data is used up; machine or memory cgroup is
 *                  short of memory; queue_size events are kept; this process has 256
 *                  dispatchers and monitors or 1,024 slots; 64 additions of GPUs or fakes
 *                  are in use; a dispatcher has 256 classes.  Remedy: collect and release
 *                  events, then try again; submit with a wait if another thread collects;
 *                  or raise queue_size or payload_budget.
 *   ECLOSED        stop, close or destroy has ended the intake, or a callback of run did.
 *                  Remedy: collect the remaining events, then make another dispatcher.
 *   EEND           the dispatcher is closed and poll has delivered its last event.
 *                  Remedy: none, this is the normal end: call gpud_dispatcher_destroy.
 *   ENOTFOUND      no task with this id is live, no device has this name or UUID, or
 *                  there is no counter with this index.  Remedy: a task may have ended
 *                  already; take names from gpud_dispatcher_devices or gpud_monitor_read.
 *   ECREDS         option start is FORK, and the host has changed its credentials since
 *                  gpud_init; or the spawner of a pooled dispatcher cannot make the
 *                  workers of a class.  Remedy: call gpud_init after dropping privileges
 *                  and before gpud_dispatcher_create, or leave start at AUTO; for a class
 *                  read the text.
 *   ENODEFINITION  option definition names none of the definitions of gpud_init, or the
 *                  worker program has no definition of that name; or a pooled dispatcher
 *                  has no class of that name.  Remedy: compare the names; the text of a
 *                  SETUP_FAILURE lists those of the program.
 *   EDEVICE        an entry of option devices, CUDA_VISIBLE_DEVICES or a script cannot be
 *                  used, or there is no GPU; as the code of a CRASHED task: its device
 *                  failed; of an ERROR: CUDA reported an error; of a SETUP_FAILURE: CUDA
 *                  does not start, or shows other devices.  Remedy: read the text, which
 *                  has the entry and its position, or the evidence; `gpudispatch doctor`.
 *   ESYSTEM        the operating system refused a call.  Remedy: sys_errno and the text
 *                  name the call: look for a limit (ulimit -n, ulimit -f), a full table
 *                  or a seccomp profile.
 *   ESPAWNER       the spawner has ended or did not reply within 10 s, or the monitor
 *                  process has died.  Remedy: for a monitor, open another one; otherwise
 *                  end dispatchers and monitors, then call gpud_fini and gpud_init.
 *   ETOOBIG        a task, a buffer or the setup data is larger than payload_budget can
 *                  ever hold, or queue_size needs more of it than there is.  Remedy:
 *                  raise payload_budget, or use setup_shared for setup data.
 *   EVERSION       a record is longer than this library knows, and the part that it does
 *                  not know is not zero.  Remedy: run with the library of the headers
 *                  that the program was compiled with, or leave newer fields zero.
 *   EREENTER       a callback of run called poll, run, wait, ready or destroy, or submit
 *                  with a wait; or a worker called gpud_init, gpud_dispatcher_create, or
 *                  a function with a handle of the host.  Remedy: submit with wait 0 in
 *                  callbacks, and drive outside of them.
 *   ERESULTSPACE   a result of more than 4 KiB finds no room in the worker's share of the
 *                  payload budget.  Remedy: raise payload_budget or result_wait, collect
 *                  outcomes sooner, release kept events.
 *   ENOTSUP        a CUDA call of the library was made in a worker without CUDA, such as
 *                  one on a CPU slot.  Remedy: a CPU slot has no device to wait for, so
 *                  leave the call out there.
 *   ESTOPPED       stop or close was called, and run ended for it.  Remedy: none, it was
 *                  requested.
 *   EPROTOCOL      a worker overwrote memory that it shares with the host; a program sent
 *                  an unexpected reply; a process that was started as a worker makes a
 *                  dispatcher; or a child of a worker program calls gpud_init.  Remedy:
 *                  look for a wild pointer in the task; let the worker program itself
 *                  call gpud_init.
 *   ETIMEOUT       a time limit expired: of a call that waits, of a task, of setup or
 *                  cleanup, or of close.  Remedy: the text names the limit and the option
 *                  that sets it; after gpud_dispatcher_wait wait again or cancel.
 *   ECRASHED       the worker died inside process, setup or cleanup.  Remedy: exit_kind,
 *                  exit_status and output of the event show the reason; after signal 9 of
 *                  unknown origin read the kernel log for out of memory.
 *   ECANCELLED     the host cancelled the task, or a stop or close did.  Remedy: none, it
 *                  was requested.
 *   ENOWORKER      no slot is left that could run the task, or fewer workers can become
 *                  ready than requested.  Remedy: the text has the reason of a slot that
 *                  failed; mend that, then use gpud_dispatcher_device_return.
 *   EQUARANTINED   a worker survived SIGKILL inside setup.  Remedy: its slot is out of
 *                  use; read the kernel log, since the process hangs in the kernel, and
 *                  restart the machine if it stays.
 *   ENOPROGRAM     the worker program, its interpreter or the plugin does not exist, or
 *                  /proc did not show the host's own program.  Remedy: check the path in
 *                  the text, PATH, and GPUD_WORKER_PROGRAM.
 *   ENOTEXEC       the system cannot execute the worker program: rights, a directory, an
 *                  unknown format.  Remedy: check its file mode and its format.
 *   EOTHERVERSION  the worker program has a library with another protocol.  Remedy:
 *                  install host and worker program with the same version.
 *   ENOANSWER      the worker program ended, or two minutes or setup_limit expired,
 *                  before it called gpud_init on its main thread; or the bundled worker
 *                  program did not reply as spawner.  Remedy: a wrapper must exec the
 *                  program; call gpud_init earlier.
 *   EPLUGIN        the plugin is not readable, not an ELF file for this machine, does not
 *                  load, or has no usable gpud_plugin.  Remedy: the program that
 *                  `pkg-config --variable=worker_program gpudispatch` names, with the
 *                  plugin as its argument, prints the reason.
 *   ESTRUCT        a record's struct_size is 0, too small, above 4,096 or not a multiple
 *                  of 8.  Remedy: initialise the record with its ..._INIT macro.
 *   ENOTAWAITED    gpud_dispatcher_wait got a task whose outcome poll or run delivers.
 *                  Remedy: submit it with awaited = 1.
 *   ELABEL         a task's label has more than 63 bytes.  Remedy: shorten it, and keep
 *                  the rest in the task's data.
 *   ESOURCE        the source of run returned a negative value, or more than it was lent
 *                  room for.  Remedy: its value is in gpud_run_counts.
 *   ECALLBACK      a callback of run returned a value other than 0, which ends run.
 *                  Remedy: its value is in gpud_run_counts.
 *   EREFUSED       a task from the source of run is one that submit would refuse.
 *                  Remedy: the text has the number of the task, the code and the reason.
 */
#define GPUD_ERROR_MAP(X)                                                                \
    X(EINVAL, -1, "an argument is NULL or out of range")                                 \
    X(ENOMEM, -2, "out of memory")                                                       \
    X(ENOINIT, -3, "gpud_init has not been called in this process")                      \
    X(EFORKED, -4, "this process was forked from the owner of the handle")               \
    X(EBUSY, -5,                                                                         \
      "in use: a thread is inside a call, a handle is alive, or gpud_init was called")   \
    X(EFULL, -6, "full: the queue, the payload budget, or another bounded resource")     \
    X(ECLOSED, -7, "the dispatcher takes no more tasks")                                 \
    X(EEND, -8, "closed, and poll has delivered its last event")                         \
    X(ENOTFOUND, -9, "no live task, device or counter of this name or number")           \
    X(ECREDS, -10, "credentials changed since gpud_init, so workers cannot be forked")   \
    X(ENODEFINITION, -11, "no definition, or no class, has this name")                   \
    X(EDEVICE, -12, "a device cannot be used, or has failed")                            \
    X(ESYSTEM, -13, "the operating system refused a call")                               \
    X(ESPAWNER, -14, "the spawner or monitor process is gone or does not reply")         \
    X(ETOOBIG, -15, "larger than the payload budget can ever hold")                      \
    X(EVERSION, -16,                                                                     \
      "a record is longer than this library knows, and its tail is not zero")            \
    X(EREENTER, -17,                                                                     \
      "not allowed inside a callback (submit: with wait 0 only) or in a worker")         \
    X(ERESULTSPACE, -18, "no room for the result in the worker's share of the budget")   \
    X(ENOTSUP, -19, "not supported here: this worker has no CUDA")                       \
    X(ESTOPPED, -20, "stopped on request")                                               \
    X(EPROTOCOL, -21, "a process broke the protocol between host and workers")           \
    X(ETIMEOUT, -22, "a time limit expired")                                             \
    X(ECRASHED, -23, "the worker process died")                                          \
    X(ECANCELLED, -24, "cancelled by the host")                                          \
    X(ENOWORKER, -25, "no worker is left, or fewer than requested")                      \
    X(EQUARANTINED, -26, "a worker survived SIGKILL; its slot is out of use")            \
    X(ENOPROGRAM, -27, "the worker program or the plugin does not exist")                \
    X(ENOTEXEC, -28, "the worker program cannot be executed")                            \
    X(EOTHERVERSION, -29, "the worker program is of another version of the library")     \
    X(ENOANSWER, -30, "the worker program did not call gpud_init, or did not reply")     \
    X(EPLUGIN, -31, "the plugin cannot be used")                                         \
    X(ESTRUCT, -32,                                                                      \
      "a record's struct_size is 0, too small, or larger than any version's")            \
    X(ENOTAWAITED, -33, "the task was submitted without awaited = 1")                    \
    X(ELABEL, -34, "a label has more than 63 bytes")                                     \
    X(ESOURCE, -35, "the source of run failed")                                          \
    X(ECALLBACK, -36, "a callback of run returned a value other than 0")                 \
    X(EREFUSED, -37, "a task from the source was refused")

/* Error codes: GPUD_OK, and GPUD_ with each name of GPUD_ERROR_MAP. */
enum gpud_error_code {
    GPUD_OK = 0,
#define GPUD_ERROR_X(name, value, sentence) GPUD_##name = value,
    GPUD_ERROR_MAP(GPUD_ERROR_X)
#undef GPUD_ERROR_X
};

/*
 * The cause of a failure, in a form fit for a log.
 *
 * A call fills the record only when it fails.  A record whose struct_size does not reach
 * beyond text stays untouched.
 */
struct gpud_error {
    uint32_t struct_size; /* set by GPUD_ERROR_INIT */
    int32_t code;         /* the value that the call returned */
    int32_t sys_errno;    /* errno of the refused system call, or 0 */
    uint32_t reserved;    /* 0 */
    char field[32];       /* the option, field or argument at fault, or "" */
    /*
     * One sentence with the value at fault.  For a refused system call it ends with that
     * call and its errno: "...: signalfd: Operation not permitted".
     */
    char text[216];
};

#define GPUD_ERROR_INIT { (uint32_t)sizeof(struct gpud_error), 0, 0, 0, { 0 }, { 0 } }

/*
 * Returns the sentence that explains an error code.
 *
 * Returns: a constant string; "success" if code is 0, "unknown error" for an unknown
 * code.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_error_name, struct gpud_error.
 * Example: examples/server.c
 */
GPUD_API const char *gpud_error_text(int code);

/*
 * Returns the name of an error code, such as "EFULL".
 *
 * Returns: a constant string without the prefix GPUD_; "OK" if code is 0, "?" for an
 * unknown code.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_error_text.
 */
GPUD_API const char *gpud_error_name(int code);

#ifdef __cplusplus
}
#endif
#endif
