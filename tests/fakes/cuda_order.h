/* SPDX-License-Identifier: MIT */
/* cuda_order.h - the order of a script's GPUs where CUDA orders in its own way. */
#ifndef FAKE_CUDA_ORDER_H
#define FAKE_CUDA_ORDER_H

#include "device/fake/lines.h"

/* Returns the GPU that has this number by its own line; GPI_UNKNOWN32 = none. */
static inline uint32_t fake_said_cuda(const struct gpi_script *s, uint32_t n)
{
    for (uint32_t i = 0; i < s->gpus; i++)
        if (s->gpu[i].cuda == n)
            return i;
    return GPI_UNKNOWN32;
}

/* Returns the GPU that is number `n` if CUDA_DEVICE_ORDER is not PCI_BUS_ID. */
static inline uint32_t fake_cuda_gpu(const struct gpi_script *s, uint32_t n)
{
    uint32_t gpu = fake_said_cuda(s, n), before = 0;

    if (n >= s->gpus || gpu != GPI_UNKNOWN32)
        return n < s->gpus ? gpu : GPI_UNKNOWN32;
    for (uint32_t i = 0; i < n; i++)
        before += fake_said_cuda(s, i) == GPI_UNKNOWN32;
    /* as many GPUs are left as numbers */
    for (gpu = 0; s->gpu[gpu].cuda != GPI_UNKNOWN32 || before--; gpu++)
        ;
    return gpu;
}

#endif
