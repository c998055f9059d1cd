/* SPDX-License-Identifier: MIT */
/*
 * cuda.h - for process on a GPU: waiting for a stream without losing the task's limit.
 *
 * Needs no CUDA header; a cudaStream_t is passed as the pointer it is.  What the library itself does
 * with CUDA in a worker is option cuda (enum gpud_cuda in dispatch.h).
 *
 * Stability: stable (appending only).
 */
#ifndef GPUDISPATCH_CUDA_H
#define GPUDISPATCH_CUDA_H

#include "error.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Waits until all work in `stream` is done, or the task's limit passes, or the host cancels the task.
 * In place of cudaStreamSynchronize, which sleeps through a limit: a kernel that never ends then costs
 * the worker, its context and its model.  NULL is the default stream.
 * The work itself goes on: no API stops a kernel.  After ETIMEOUT or ECANCELLED process may tell its
 * kernel to stop, through memory that the kernel looks at, and wait again with cudaStreamSynchronize,
 * within the grace; else it must not touch what that work uses, and returns.  What has not ended when the
 * check after the task begins is waited for there, until limit and grace have passed and the worker is killed.
 * Returns: 0; GPUD_ETIMEOUT, GPUD_ECANCELLED; GPUD_EDEVICE when CUDA reports an error (the task's fault text has
 * its name); GPUD_ENOTSUP where there is no CUDA; GPUD_EINVAL (t is NULL).
 * Thread: any of the worker's, while process runs.  Process: worker.  Since: 1.
 */
GPUD_API int gpud_cuda_stream_sync(gpud_task *t, void *stream);

/*
 * In setup: names cudaGetLastError of a CUDA runtime that is linked statically, as nvcc does by default.
 * The check after each task takes the error that is pending in a runtime, such as "out of memory" that process has
 * met and lived with, so that no later task meets it.  Runtimes that are shared objects (libcudart.so) are
 * found without this; one that is a part of your program is seen by nobody else.
 *
 *     static int last_error(void) { return (int)cudaGetLastError(); }
 *     static int setup(gpud_worker *w, void **ret_state) { gpud_cuda_last_error(w, last_error); ...
 *
 * last_error is called on the thread that runs process, after each call of it; NULL: no more.  It may call CUDA.
 * Returns: 0; GPUD_ENOTSUP where there is no CUDA (nothing has changed, and nothing needs to be done); GPUD_EINVAL (w is NULL).
 * Thread: the one that runs setup and process.  Process: worker.  Since: 1.
 */
GPUD_API int gpud_cuda_last_error(gpud_worker *w, int (*last_error)(void));

#ifdef __cplusplus
}
#endif
#endif
