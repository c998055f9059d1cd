/* SPDX-License-Identifier: MIT */
/* probe.cu - compiled by meson.build here to learn whether nvcc works with the C++ compiler it
 * finds. */
#include <cuda_runtime.h>

__global__ void probe(int *p)
{
    *p = 1;
}

extern "C" int launch(int *p)
{
    probe<<<1, 1>>>(p);
    return (int)cudaGetLastError();
}
