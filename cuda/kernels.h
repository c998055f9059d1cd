/* SPDX-License-Identifier: MIT */
/*
 * kernels.h - what tests and benchmarks do on a GPU, as C functions for workers. kernels.cu does
 * it; kernels_cpu.c stands in where there is no toolkit, so that a test's own logic can be
 * rehearsed without a GPU.
 *
 * Each int is a number of CUDA's errors (cudaError_t), 0 for none. All work goes to the default
 * stream of the current device.
 */
#ifndef CUDA_KERNELS_H
#define CUDA_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 1: kernels.cu; 0: the stand-in. */
extern const int gpu_built;

const char *gpu_error(int error);

/* Numbers that the tests name. */
enum {
    GPU_OUT_OF_MEMORY = 2,
    GPU_ILLEGAL_ADDRESS = 700,
    GPU_ASSERT = 710,
    GPU_STACK = 714,
    GPU_INSTRUCTION = 715,
    GPU_MISALIGNED = 716,
    GPU_ADDRESS_SPACE = 717,
    GPU_PC = 718,
    GPU_LAUNCH_FAILURE = 719,
    GPU_NOT_SUPPORTED = 801
};

/* Makes the context of the first device, if there is none yet. */
int gpu_context(void);

/* Adds up the numbers from 1 to n in a kernel, and waits for it. */
int gpu_sum(uint32_t n, uint64_t *ret_sum);

/* Puts a kernel into the stream that takes so long, by the GPU's own clock, on one multiprocessor;
 * does not wait. */
int gpu_busy(uint64_t ns);

/* The same, for ever.  The kernel ends when *stop becomes 1; NULL: never. */
int gpu_endless(volatile uint32_t *stop);

/* Gives a word that both sides see. */
int gpu_flag(volatile uint32_t **ret_flag);

/* Puts a kernel into the stream that makes this error, or tries to; does not wait. */
int gpu_provoke(int error);

/* Waits for all work of this process; its error, or one that lasts. */
int gpu_sync(void);
/* The error that the last failed call has left behind, taken away (drained) or not. */
int gpu_left(int drain);

int gpu_alloc(size_t size, void **ret_memory);
int gpu_free(void *memory);
int gpu_host_alloc(size_t size, void **ret_memory); /* pinned */
int gpu_host_free(void *memory);
int gpu_memory(size_t *ret_free, size_t *ret_total);

/* Pins memory of ours; `read_only` where it is mapped so. */
int gpu_pin(const void *at, size_t size, int read_only);
int gpu_unpin(const void *at);

/* Copies from host memory to the device `times` times, and waits; the seconds it took in all. */
int gpu_copy(void *to, const void *from, size_t size, unsigned times, double *ret_seconds);

#ifdef __cplusplus
}
#endif
#endif
