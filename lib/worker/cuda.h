/* SPDX-License-Identifier: MIT */
/*
 * cuda.h - the CUDA side of a worker: the driver API through libcuda.so.1, loaded at run time.
 * That library is there wherever a GPU can be used.  It shares the primary context with the runtime
 * that the user's code links (shared or static), and a fake one can stand in for it in the tests.
 * (docs/design/0004-cuda.md)
 *
 * A worker without GPUs makes no CUDA call, and no signal handler does.  [C14]
 */
#ifndef GPI_WORKER_CUDA_H
#define GPI_WORKER_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/page.h"

struct gpi_cuda; /* one per worker */

/* Returns whether its devices are GPUs or MIG instances: no CPU slots, no fakes. */
bool gpi_cuda_on_gpu(const struct gpi_page *page);

/* Runs before setup, with SIGALRM blocked.  Loads the driver, and checks that CUDA shows exactly
 * the assigned devices, in order, by UUID.  Sets the synchronisation mode and makes the first
 * device current, as option cuda requires.  If CUDA shows other devices than those assigned by
 * number, sets `miscounted` in the page.  A fake device takes its time to boot, and needs no
 * driver.  Returns 0 and *ret (NULL where there is nothing to do: CPU slots), or GPUD_EDEVICE with
 * the cause in text. */
int gpi_cuda_open(struct gpi_cuda **ret, struct gpi_page *page, char *text, size_t size);

/* Makes a context on each device, runs a small kernel and compares its result; a fake does as its
 * script requires.  Returns 0, or GPUD_EDEVICE with the cause in text. */
int gpi_cuda_canary(struct gpi_cuda *c, char *text, size_t size);

/* Pins [at, at + size) for the current context; in pieces, since the calls of every process to CUDA
 * and NVML wait while one is being pinned.  Where that fails, returns false without an error, and
 * not a byte is pinned. */
bool gpi_cuda_pin(struct gpi_cuda *c, void *at, uint64_t size, bool read_only);

/* After process: waits for the devices, checks them, and takes the pending errors of the CUDA
 * runtimes.  Returns the finding. */
enum gpi_cuda_check {
    GPI_CUDA_FINE,
    GPI_CUDA_ERROR /* not sticky: the worker may go on */,
    GPI_CUDA_STICKY /* the worker must exit */
};
enum gpi_cuda_check gpi_cuda_check(struct gpi_cuda *c, int32_t *ret_code, char *text, size_t size);

#endif
