/* SPDX-License-Identifier: MIT */
/*
 * cuda.h - the CUDA side of a worker. The driver API through libcuda.so.1, loaded at run time: it
 * is there wherever a GPU can be used, shares the primary context with whichever runtime the user's
 * code links (shared or static), and a fake one can stand in for it in the
 * tests. (docs/design/0004-cuda.md)
 *
 * No CUDA call is made on a worker without GPUs, nor in a signal handler.        [C14]
 */
#ifndef GPI_WORKER_CUDA_H
#define GPI_WORKER_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/page.h"

struct gpi_cuda; /* one per worker */

/* Whether its devices are GPUs or MIG instances: no CPU slots, no fakes. */
bool gpi_cuda_on_gpu(const struct gpi_page *page);

/* Before setup, SIGALRM blocked: loads the driver, checks that exactly the assigned devices are
 * seen, in order, by UUID (if they are not, and were given by number, sets `miscounted` in the
 * page), sets the synchronisation mode and makes the first device current, as option cuda says. A
 * fake device takes its time to boot, and no driver is loaded. 0 and *ret (NULL where there is
 * nothing to do: CPU slots), or GPUD_EDEVICE with words in text. */
int gpi_cuda_open(struct gpi_cuda **ret, struct gpi_page *page, char *text, size_t size);

/* A context on each device, a small kernel, its result compared; of a fake, what its script says.
 * 0, or GPUD_EDEVICE with words. */
int gpi_cuda_canary(struct gpi_cuda *c, char *text, size_t size);

/* Pins [at, at + size) for the current context; in pieces, since every process's calls to CUDA and
 * NVML wait while one is being pinned. Silently not, where that fails: then not a byte of it. */
bool gpi_cuda_pin(struct gpi_cuda *c, void *at, uint64_t size, bool read_only);

/* After process: waits for the devices and looks; takes what is pending in the CUDA runtimes. What
 * it found. */
enum gpi_cuda_check {
    GPI_CUDA_FINE,
    GPI_CUDA_ERROR /* not sticky: the worker may go on */,
    GPI_CUDA_STICKY /* it must go */
};
enum gpi_cuda_check gpi_cuda_check(struct gpi_cuda *c, int32_t *ret_code, char *text, size_t size);

#endif
