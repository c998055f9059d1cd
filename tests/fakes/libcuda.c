/* SPDX-License-Identifier: MIT */
/*
 * libcuda.c - stands in for libcuda.so.1: what a host sees that uses CUDA already.  As with the real
 * one, nothing works in a process that was forked after cuInit.  FAKE_CUDA_RESULT is what
 * cuDeviceGetCount answers; fake_cuda_calls counts all calls.
 */
#include <stdlib.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_INITIALIZED = 3 };

int cuInit(unsigned flags);
int cuDeviceGetCount(int *ret_count);

extern unsigned fake_cuda_calls;
unsigned fake_cuda_calls;
static pid_t owner;

static int state(void)
{
    return owner == getpid() ? SUCCESS : NOT_INITIALIZED;
}

int cuInit(unsigned flags)
{
    (void)flags;
    fake_cuda_calls++;
    if (!owner)
        owner = getpid();
    return state();
}

int cuDeviceGetCount(int *ret_count)
{
    const char *told = getenv("FAKE_CUDA_RESULT");

    fake_cuda_calls++;
    *ret_count = 1;
    return told ? atoi(told) : state();
}
