/* SPDX-License-Identifier: MIT */
/*
 * error.h - the codes a call can answer with, and the record that says more.
 *
 * Every call that can fail returns 0 (or a count) on success and one of the
 * negative codes below on failure; errno carries nothing.  Calls with several
 * causes also take an optional `struct gpud_error *reterr`, which names the
 * field and the value at fault.  A call that fails has changed nothing and
 * taken nothing; the one exception is gpud_dispatcher_submit_many, which
 * tells how many tasks it took.  The library never aborts, exits or
 * prints.                                                             [C15]
 *
 * Outcomes of tasks are not errors: see `enum gpud_outcome` in types.h.
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

/* X(name, value, sentence): the one list of codes. */
#define GPUD_ERROR_MAP(X)                                                                    \
    X(EINVAL, -1, "an argument is NULL or out of range")                                     \
    X(ENOMEM, -2, "out of memory")                                                           \
    X(ENOINIT, -3, "gpud_init has not been called in this process")                          \
    X(EFORKED, -4, "this process was forked from the one that owns the dispatcher")          \
    X(EBUSY, -5, "in use: a thread is inside poll, run, wait or ready, a dispatcher lives, or gpud_init was called") \
    X(EFULL, -6, "the queue or the payload budget is full")                                  \
    X(ECLOSED, -7, "the dispatcher takes no more tasks")                                     \
    X(EEND, -8, "closed, and all that poll delivers has been delivered")                     \
    X(ENOTFOUND, -9, "no live task has this id")                                             \
    X(ECREDS, -10, "credentials changed since gpud_init, so workers cannot be forked")       \
    X(ENODEFINITION, -11, "no definition has this name")                                     \
    X(EDEVICE, -12, "a device entry is not usable")                                          \
    X(ESYSTEM, -13, "the operating system refused a request")                                \
    X(ESPAWNER, -14, "the spawner process is gone, so no new worker keeper can be made")     \
    X(ETOOBIG, -15, "larger than the payload budget can ever hold")                          \
    X(EVERSION, -16, "a struct is larger than this library knows and its tail is not zero")  \
    X(EREENTER, -17, "not allowed inside a callback (submit: with wait 0 only) or in a worker") \
    X(ERESULTSPACE, -18, "no room for the result in the worker's share of the budget")       \
    X(ENOTSUP, -19, "this build or this way of starting workers cannot do that")             \
    X(ESTOPPED, -20, "stopped on request")                                                   \
    X(EPROTOCOL, -21, "a worker broke the protocol")                                         \
    X(ETIMEOUT, -22, "a time limit passed")                                                  \
    X(ECRASHED, -23, "the worker process died")                                              \
    X(ECANCELLED, -24, "cancelled by the host")                                              \
    X(ENOWORKER, -25, "no worker can ever run this")                                         \
    X(EQUARANTINED, -26, "a worker survived SIGKILL; its device is out of use")              \
    X(ENOPROGRAM, -27, "the worker program or the plugin does not exist")                    \
    X(ENOTEXEC, -28, "the worker program cannot be executed")                                \
    X(EOTHERVERSION, -29, "the worker program is of another version of the library")         \
    X(ENOANSWER, -30, "the worker program did not call gpud_init")                           \
    X(EPLUGIN, -31, "the plugin cannot be used")                                             \
    X(ESTRUCT, -32, "a record's struct_size is 0, too small, or larger than any version's")  \
    X(ENOTAWAITED, -33, "the task was submitted without awaited = 1")                        \
    X(ELABEL, -34, "a label has more than 63 bytes")                                         \
    X(ESOURCE, -35, "the source of run has failed")                                          \
    X(ECALLBACK, -36, "a callback of run asked to stop")                                     \
    X(EREFUSED, -37, "a task of the source was refused")

enum gpud_error_code {
    GPUD_OK = 0,
#define GPUD_ERROR_X(name, value, sentence) GPUD_##name = value,
    GPUD_ERROR_MAP(GPUD_ERROR_X)
#undef GPUD_ERROR_X
};

/* What went wrong, in a form fit for a log.  Filled only on failure. */
struct gpud_error {
    uint32_t struct_size; /* set by GPUD_ERROR_INIT */
    int32_t code;         /* same as the value returned */
    int32_t sys_errno;    /* errno of the refused system call, or 0 */
    uint32_t reserved;
    char field[32];       /* the option, field or argument at fault, or "" */
    char text[216];       /* one sentence with the value; for a refused system call it ends
                             with the call: "...: signalfd: Operation not permitted" */
};

#define GPUD_ERROR_INIT { (uint32_t)sizeof(struct gpud_error), 0, 0, 0, { 0 }, { 0 } }

/*
 * Explains a code in one sentence.
 * Returns: a constant string; for an unknown code "unknown error".
 * Thread: any.  Process: either.  Since: 1.
 */
GPUD_API const char *gpud_error_text(int code);

/*
 * Gives the name of a code, such as "EFULL".
 * Returns: a constant string; "OK" for 0, "?" for an unknown code.
 * Thread: any.  Process: either.  Since: 1.
 */
GPUD_API const char *gpud_error_name(int code);

#ifdef __cplusplus
}
#endif
#endif
