/* SPDX-License-Identifier: MIT */
/*
 * kernels_cpu.c - the stand-in for kernels.cu: a "stream" that is busy until a time, memory that is
 * the process's own. It shows nothing about a GPU; it lets the tests' and benchmarks' own logic
 * run.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "kernels.h"

const int gpu_built = 0;

static uint64_t busy_until;
static volatile uint32_t *stop_flag;
static int endless, sticky, left;

static uint64_t now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The words of cudaGetErrorName. */
const char *gpu_error(int error)
{
    switch (error) {
    case 0:
        return "cudaSuccess";
    case GPU_OUT_OF_MEMORY:
        return "cudaErrorMemoryAllocation";
    case GPU_ILLEGAL_ADDRESS:
        return "cudaErrorIllegalAddress";
    default:
        return "unrecognized error code";
    }
}

int gpu_context(void)
{
    return sticky;
}

int gpu_sum(uint32_t n, uint64_t *ret_sum)
{
    *ret_sum = 0;
    for (uint64_t i = 1; i <= n; i++)
        *ret_sum += i;
    return gpu_sync();
}

int gpu_busy(uint64_t ns)
{
    uint64_t t = now();
    busy_until = (busy_until > t ? busy_until : t) + ns;
    return sticky;
}

int gpu_endless(volatile uint32_t *stop)
{
    endless = 1;
    stop_flag = stop;
    return sticky;
}

int gpu_flag(volatile uint32_t **ret_flag)
{
    *ret_flag = calloc(1, sizeof(uint32_t));
    return *ret_flag ? 0 : GPU_OUT_OF_MEMORY;
}

/*
 * In a worker on a GPU of the fake libcuda.so.1 (tests/fakes) the context fails too, since the
 * library's check after a task asks that: a kernel "fails_N" ends with error N. Elsewhere there is
 * no context, and nothing is launched.
 */
static void fail_context(int error)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *module = NULL, *function = NULL;
    char name[32];

    if (!cuda)
        return;
    const union {
        void *found;
        int (*load)(void **, const void *);
    } load = { dlsym(cuda, "cuModuleLoadData") };
    const union {
        void *found;
        int (*get)(void **, void *, const char *);
    } function_of = { dlsym(cuda, "cuModuleGetFunction") };
    const union {
        void *found;
        int (*start)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     void *, void **, void **);
    } launch = { dlsym(cuda, "cuLaunchKernel") };

    (void)snprintf(name, sizeof(name), "fails_%d", error);
    if (load.found && function_of.found && launch.found && load.load(&module, ".entry") == 0 &&
        function_of.get(&function, module, name) == 0)
        (void)launch.start(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    (void)dlclose(cuda);
}

int gpu_provoke(int error)
{
    sticky = error;
    fail_context(error);
    return 0;
}

int gpu_sync(void)
{
    const struct timespec pause = { .tv_nsec = 20000 };
    while (endless && (!stop_flag || *stop_flag != 1))
        (void)nanosleep(&pause, NULL);
    while (!endless && now() < busy_until) {
        const struct timespec end = { .tv_sec = (time_t)(busy_until / 1000000000u),
                                      .tv_nsec = (long)(busy_until % 1000000000u) };
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
    }
    endless = 0;
    return sticky;
}

int gpu_left(int drain)
{
    int error = sticky ? sticky : left;
    if (drain)
        left = 0;
    return error;
}

/* Not by malloc, which may fill it: memory of a GPU costs the processor nothing. */
enum { HEAD = 4096 };

int gpu_alloc(size_t size, void **ret_memory)
{
    char *memory;

    *ret_memory = NULL;
    if (sticky || size > (size_t)1 << 40)
        return sticky ? sticky : (left = GPU_OUT_OF_MEMORY);
    memory = mmap(NULL, size + HEAD, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return left = GPU_OUT_OF_MEMORY;
    memcpy(memory, &size, sizeof(size));
    *ret_memory = memory + HEAD;
    return 0;
}

int gpu_free(void *memory)
{
    size_t size;

    if (memory) {
        memcpy(&size, (char *)memory - HEAD, sizeof(size));
        (void)munmap((char *)memory - HEAD, size + HEAD);
    }
    return sticky;
}

int gpu_host_alloc(size_t size, void **ret_memory)
{
    return gpu_alloc(size, ret_memory);
}

int gpu_host_free(void *memory)
{
    return gpu_free(memory);
}

int gpu_memory(size_t *ret_free, size_t *ret_total)
{
    *ret_free = *ret_total = (size_t)1 << 34;
    return sticky;
}

int gpu_pin(const void *at, size_t size, int read_only)
{
    (void)at, (void)size, (void)read_only;
    return sticky;
}

int gpu_unpin(const void *at)
{
    (void)at;
    return sticky;
}

int gpu_copy(void *to, const void *from, size_t size, unsigned times, double *ret_seconds)
{
    uint64_t start = now();
    for (unsigned i = 0; i < times; i++)
        memcpy(to, from, size);
    *ret_seconds = (double)(now() - start) / 1e9;
    return sticky;
}
