/* SPDX-License-Identifier: MIT */
/*
 * accidents_gpu.cu - the accidents as kernels.  After an illegal address or a failed assert no CUDA
 * call works in this process any more: such errors are sticky, and no call restores the context.
 * So process only returns the error, and the library replaces the worker.
 */
#undef NDEBUG /* the assert must run */
#include <assert.h>
#include <cuda_runtime.h>
#include <stdio.h>

#include "accidents.h"

__global__ void sum_squares(unsigned n, unsigned long long *sum)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x + 1; i <= n;
         i += gridDim.x * blockDim.x)
        atomicAdd(sum, (unsigned long long)i * i);
}

__global__ void write_nowhere(int *nowhere)
{
    *nowhere = 1;
}

__global__ void loop(volatile unsigned *turns)
{
    while (*turns != 1)
        ;
}

__global__ void assert_less(unsigned a, unsigned b)
{
    assert(a < b);
}

static void launch(uint32_t which, void *memory)
{
    switch (which) {
    case ACCIDENT_ADDRESS:
        write_nowhere<<<1, 1>>>((int *)16);
        break;
    case ACCIDENT_ENDLESS:
        loop<<<1, 1>>>((unsigned *)memory); /* it holds 0 */
        break;
    case ACCIDENT_ASSERT:
        assert_less<<<1, 1>>>(2, 1);
        break;
    default:
        sum_squares<<<8, 64>>>(SQUARES, (unsigned long long *)memory);
    }
}

static int on_memory(gpud_task *t, uint32_t which, void *memory, char *text)
{
    unsigned long long sum = 0;
    cudaError_t e = cudaMemset(memory, 0, sizeof sum);
    if (e == cudaSuccess) {
        launch(which, memory);
        e = cudaGetLastError();
    }
    if (e == cudaSuccess) {
        /* returns at the task's limit, unlike cudaDeviceSynchronize */
        int code = gpud_cuda_stream_sync(t, NULL);
        if (code != 0)
            return code;
        e = cudaMemcpy(&sum, memory, sizeof sum, cudaMemcpyDeviceToHost);
    }
    if (e == cudaSuccess)
        return gpud_task_result_set(t, &sum, sizeof sum);
    (void)snprintf(text, TEXT_BYTES, "%s: %s", cudaGetErrorName(e), cudaGetErrorString(e));
    return (int)e;
}

static int accident(gpud_task *t, uint32_t which, char *text)
{
    void *memory = NULL;
    cudaError_t e = cudaMalloc(&memory, sizeof(unsigned long long));
    if (e != cudaSuccess) {
        (void)snprintf(text, TEXT_BYTES, "cudaMalloc: %s", cudaGetErrorName(e));
        return (int)e;
    }
    int code = on_memory(t, which, memory, text);
    if (code == 0)
        (void)cudaFree(memory); /* not while a kernel runs: cudaFree would wait for it */
    return code;
}

extern "C" accident_fn *const accident_gpu = accident;
