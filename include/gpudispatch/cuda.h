/* SPDX-License-Identifier: MIT */
/*
 * cuda.h - for process on a GPU: waiting for a stream without losing the task's limit.
 *
 * This header needs no CUDA header: pass a cudaStream_t as the pointer that it is.
 * Option cuda (enum gpud_cuda in dispatch.h) decides which CUDA calls the library itself
 * makes in a worker.
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
 * Waits for a CUDA stream, until the task's limit expires or the host cancels the task.
 *
 * Use it in place of cudaStreamSynchronize, which sleeps through a limit: there a kernel
 * that never ends costs the worker, its context and its model.
 *
 * The work itself continues, since no API stops a kernel.  After GPUD_ETIMEOUT or
 * GPUD_ECANCELLED, process has two choices.  It may stop its kernel through memory that
 * the kernel reads, and wait again with cudaStreamSynchronize, within the grace.
 * Otherwise it must not touch the memory which that work uses, and returns.  The check
 * after the task (option cuda) then waits for the unfinished work until limit and grace
 * have expired, and the keeper kills the worker.
 *
 * Parameters:
 *   t       the task whose limit and cancel end the wait
 *   stream  a cudaStream_t; NULL is the default stream
 * Returns: 0, all work in stream is done.
 * Errors:
 *   GPUD_ETIMEOUT    the limit or the stall limit of t has expired, and stream has work
 *                    left
 *   GPUD_ECANCELLED  the host has cancelled t, and stream has work left
 *   GPUD_EDEVICE     CUDA reports an error for stream.  Its name becomes the text of t if
 *                    process fails and has not called gpud_task_fail
 *   GPUD_ENOTSUP     the worker of t has no CUDA: it is on a CPU slot or a fake
 *   GPUD_EINVAL      t is NULL
 * Thread: any of the worker's, while process runs.  Process: worker.  Since: 1.
 * See: gpud_task_expired, gpud_task_cancelled, option grace.
 * Example: examples/cuda/spectrogram/spectrum_gpu.cu
 */
GPUD_API int gpud_cuda_stream_sync(gpud_task *t, void *stream);

/*
 * Names the cudaGetLastError of a CUDA runtime that the worker links statically.
 *
 * Call it in setup.  An error that process met and handled, such as "out of memory", is
 * still pending in the CUDA runtime.  The check after each task clears it, so that no
 * later task receives it.  The library finds runtimes that are shared objects
 * (libcudart.so) without this call.  It cannot find a runtime inside your program, and
 * nvcc links one there by default.
 *
 *     static int last_error(void) { return (int)cudaGetLastError(); }
 *     static int setup(gpud_worker *w, void **ret_state)
 *     {
 *         gpud_cuda_last_error(w, last_error);
 *         ...
 *     }
 *
 * Parameters:
 *   w           the worker
 *   last_error  called on the thread that runs process, after each call of process; it
 *               may call CUDA.  NULL ends the calls
 * Returns: 0.  On failure nothing has changed.
 * Errors:
 *   GPUD_ENOTSUP  the worker w has no CUDA: it is on a CPU slot or a fake.  Nothing needs
 *                 to be done there
 *   GPUD_EINVAL   w is NULL
 * Thread: the main one of the worker.  Process: worker.  Since: 1.
 * See: option cuda.
 * Example: examples/cuda/spectrogram/work.c
 */
GPUD_API int gpud_cuda_last_error(gpud_worker *w, int (*last_error)(void));

#ifdef __cplusplus
}
#endif
#endif
