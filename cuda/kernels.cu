/* SPDX-License-Identifier: MIT */
/* kernels.cu - owns the calls into the CUDA runtime, and the kernels. */
#undef NDEBUG /* provoke's assert */
#include <assert.h>
#include <cuda_runtime.h>
#include <time.h>

#include "kernels.h"

extern "C" const int gpu_built = 1;

/* The GPU's clock, in nanoseconds (its steps may be up to a microsecond). */
__device__ static unsigned long long gpu_clock(void)
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__global__ void sum_kernel(unsigned n, unsigned long long *sum)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x + 1; i <= n;
         i += gridDim.x * blockDim.x)
        atomicAdd(sum, (unsigned long long)i);
}

__global__ void busy_kernel(unsigned long long ns)
{
    unsigned long long end = gpu_clock() + ns;
    while (gpu_clock() < end)
        ;
}

__global__ void endless_kernel(volatile unsigned *stop)
{
    while (!stop || *stop != 1)
        (void)gpu_clock(); /* an instruction that is not removed */
}

__global__ void address_kernel(int *nowhere)
{
    *nowhere = 1;
}

__global__ void assert_kernel(unsigned a, unsigned b)
{
    assert(a < b);
}

__global__ void trap_kernel(void)
{
    asm volatile("trap;");
}

__global__ void misaligned_kernel(char *p)
{
    *(volatile int *)(p + 1) = 1;
}

/* An atomic operation works in global and shared memory; this address is in the thread's own. */
__global__ void space_kernel(int which, int *out)
{
    int mine[16];
    for (int i = 0; i < 16; i++)
        mine[i] = which + i;
    /* in asm, or the compiler objects */
    asm volatile("red.add.u32 [%0], 1;" : : "l"(&mine[which & 15]) : "memory");
    *out = mine[which & 15];
}

typedef void (*jump_fn)(int *);

__global__ void jump_kernel(jump_fn to, int *out)
{
    to(out);
}

/* Each call has an array of its own, and needs the one below: no tail call, no loop. */
__device__ __noinline__ int deep(int n, volatile int *out)
{
    volatile int mine[256];
    mine[n & 255] = n;
    if (*out == n)
        return 0;
    return deep(n + 1, out) + mine[n & 255];
}

__global__ void stack_kernel(int *out)
{
    *out = deep(1, out);
}

const char *gpu_error(int error)
{
    return cudaGetErrorName((cudaError_t)error);
}

int gpu_context(void)
{
    return (int)cudaFree(NULL);
}

int gpu_sum(uint32_t n, uint64_t *ret_sum)
{
    unsigned long long *memory = NULL, sum = 0;
    cudaError_t e = cudaMalloc((void **)&memory, sizeof sum);
    if (e == cudaSuccess)
        e = cudaMemset(memory, 0, sizeof sum);
    if (e == cudaSuccess) {
        sum_kernel<<<4, 64>>>(n, memory);
        e = cudaGetLastError();
    }
    if (e == cudaSuccess)
        e = cudaMemcpy(&sum, memory, sizeof sum, cudaMemcpyDeviceToHost); /* waits for the kernel */
    (void)cudaFree(memory);
    *ret_sum = sum;
    return (int)e;
}

int gpu_busy(uint64_t ns)
{
    busy_kernel<<<1, 1>>>(ns);
    return (int)cudaGetLastError();
}

int gpu_endless(volatile uint32_t *stop)
{
    endless_kernel<<<1, 1>>>(stop);
    return (int)cudaGetLastError();
}

int gpu_flag(volatile uint32_t **ret_flag)
{
    void *memory = NULL;
    cudaError_t e = cudaHostAlloc(&memory, sizeof(uint32_t), cudaHostAllocMapped);
    if (e == cudaSuccess) {
        *ret_flag = (volatile uint32_t *)memory;
        **ret_flag = 0;
    }
    return (int)e;
}

int gpu_provoke(int error)
{
    int *memory = NULL;
    cudaError_t e = cudaMalloc((void **)&memory, 64);
    if (e != cudaSuccess)
        return (int)e;
    switch (error) {
    case GPU_ILLEGAL_ADDRESS:
        address_kernel<<<1, 1>>>((int *)16);
        break;
    case GPU_ASSERT:
        assert_kernel<<<1, 1>>>(2, 1);
        break;
    case GPU_MISALIGNED:
        misaligned_kernel<<<1, 1>>>((char *)memory);
        break;
    case GPU_ADDRESS_SPACE:
        space_kernel<<<1, 1>>>(3, memory);
        break;
    case GPU_PC:
    case GPU_INSTRUCTION:
        jump_kernel<<<1, 1>>>(
            (jump_fn)(error == GPU_PC ? (uintptr_t)0x7ffffff0 : (uintptr_t)memory), memory);
        break;
    case GPU_STACK:
        (void)cudaMemset(memory, 0, 64);
        stack_kernel<<<1, 1>>>(memory);
        break;
    default:
        trap_kernel<<<1, 1>>>();
    }
    return (int)cudaGetLastError();
}

int gpu_sync(void)
{
    return (int)cudaDeviceSynchronize();
}

int gpu_left(int drain)
{
    return (int)(drain ? cudaGetLastError() : cudaPeekAtLastError());
}

int gpu_alloc(size_t size, void **ret_memory)
{
    return (int)cudaMalloc(ret_memory, size);
}

int gpu_free(void *memory)
{
    return (int)cudaFree(memory);
}

int gpu_host_alloc(size_t size, void **ret_memory)
{
    return (int)cudaMallocHost(ret_memory, size);
}

int gpu_host_free(void *memory)
{
    return (int)cudaFreeHost(memory);
}

int gpu_memory(size_t *ret_free, size_t *ret_total)
{
    return (int)cudaMemGetInfo(ret_free, ret_total);
}

int gpu_pin(const void *at, size_t size, int read_only)
{
    return (int)cudaHostRegister((void *)(uintptr_t)at, size,
                                 read_only ? cudaHostRegisterReadOnly : cudaHostRegisterDefault);
}

int gpu_unpin(const void *at)
{
    return (int)cudaHostUnregister((void *)(uintptr_t)at);
}

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int gpu_copy(void *to, const void *from, size_t size, unsigned times, double *ret_seconds)
{
    double start = now_s();
    cudaError_t e = cudaSuccess;
    for (unsigned i = 0; i < times && e == cudaSuccess; i++)
        e = cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, 0);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(0);
    *ret_seconds = now_s() - start;
    return (int)e;
}
